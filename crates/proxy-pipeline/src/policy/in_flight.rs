//! Refuses new requests while too many are in flight, or queues them.

use crate::exchange::Exchange;
use crate::failure::timeout_problem;
use crate::limits::admission::{Refusal, Shortage};
use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::{Claim, LimitReached};
use proxy_plan::{RoutePlan, UpstreamPlan};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// The holders that a request's permit counts against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlightScope<'a> {
    pub(crate) route: &'a RoutePlan,
    /// `None` for static files.
    pub(crate) upstream: Option<&'a UpstreamPlan>,
}

/// Takes a permit for a request in flight at once, if there is one. It is held until the response's
/// body ends.
#[inline]
pub(crate) fn try_admit(exchange: &mut Exchange, holders: InFlightScope<'_>) -> bool {
    let admission = &exchange.worker().admission;
    let place = admission.try_enter(|| claim(exchange, holders));
    let is_admitted = place.is_some();
    exchange.record().permits.in_flight = place;
    is_admitted
}

/// Waits for a permit in turn with the requests of other routes and clients, until `end_by` at
/// most, since the worker's start.
#[cold]
pub(crate) async fn wait(
    exchange: &mut Exchange,
    holders: InFlightScope<'_>,
    end_by: Option<Duration>,
) -> Result<(), Problem> {
    let worker = Rc::clone(exchange.worker());
    let claim = claim(exchange, holders);
    let since = worker.time.elapsed();
    let timers = exchange.timers(end_by.map(|end| end.saturating_sub(since)));
    let mut waiting = pin!(worker.admission.wait(claim, since));
    let place = poll_fn(|cx| {
        if let Poll::Ready(place) = waiting.as_mut().poll(cx) {
            return Poll::Ready(place.map_err(problem));
        }
        match timers.deadline().take_expired() {
            Some((timer, after)) => Poll::Ready(Err(timeout_problem(timer, after))),
            None => Poll::Pending,
        }
    });
    let place = place.await;
    let queued = worker.time.elapsed().saturating_sub(since);
    exchange.record().waits.add_queued(queued);
    exchange.record().permits.in_flight = Some(place?);
    Ok(())
}

#[cold]
fn claim(exchange: &Exchange, holders: InFlightScope<'_>) -> Claim {
    let InFlightScope { route, upstream } = holders;
    let name = upstream.map_or("", |upstream| &upstream.name);
    let client = exchange.completion.record.client_ip;
    let admission = &exchange.worker().admission;
    let mut claim = admission.claim(&route.id, name, client);
    if upstream.is_none() {
        // Routes with static files have no upstream in common. An ID distinct from the ID of an
        // upstream with the same name as the route.
        claim.destination.upstream = !claim.destination.route;
    }
    claim
}

fn problem(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::InFlight(shortage) => shortage_problem(Reason::InFlightLimit, shortage),
        Refusal::Waited(shortage) => shortage_problem(Reason::QueueTimeout, shortage),
        Refusal::QueueFull(full) => counted(Reason::QueueFull, full),
        Refusal::MemoryShort => Problem::new(Reason::MemoryPressure, Detail::None),
    }
}

fn shortage_problem(reason: Reason, shortage: Shortage) -> Problem {
    let Shortage {
        full,
        is_worker_limit,
        is_share,
    } = shortage;
    let reason = if is_share {
        Reason::InFlightShare
    } else {
        reason
    };
    counted(reason, full).with_setting(if is_worker_limit {
        "limits.max-in-flight-requests-per-worker"
    } else {
        "limits.max-in-flight-requests"
    })
}

fn counted(reason: Reason, full: LimitReached) -> Problem {
    let (current, limit) = (u64::from(full.wanted()), u64::from(full.max));
    Problem::new(reason, Detail::Limit { current, limit })
}
