//! Responses from the store, and into it. `proxy-cache` decides what may be stored and served; this is the order of the
//! steps.

mod consulted;
mod fetch;
mod invalidation;
mod lookup;
mod outcome;
mod refresh;
mod served;
mod storing;

pub(crate) use consulted::Consulted;

use crate::exchange::Exchange;
use crate::failure::timeout_problem;
use crate::policy::admission;
use crate::policy::in_flight::InFlightScope;
use crate::response::body::Body;
use crate::worker::cache_counters::CacheOutcome;
use consulted::{Answer, Uncached};
use fetch::Fetch;
use http::{Method, Response};
use lookup::Lookup;
use outcome::CachedRoute;
use proxy_cache::{
    CacheStatus, CacheStore, Decision, FillWait, Found, Joined, MissReason, StoredResponse, decide,
    stored_miss,
};
use proxy_clock::Timer;
use proxy_errors::{Detail, Problem, Reason};
use proxy_plan::{Outcome, RoutePlan};
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Responses to other requests that one request waits for: a fetch may end with its client.
const MAX_WAITS: usize = 3;

/// Whether requests of this method on `route` read or change a store of responses. An unsafe one removes the responses
/// of its URL, on every route.
#[inline]
pub(crate) fn concerns(route: &RoutePlan, method: &Method) -> bool {
    route.cache.is_some() || !method.is_safe()
}

/// Answers the request from the store, or fetches its response for the store, unless it is to be forwarded without.
pub(crate) async fn consult<'p>(
    exchange: &mut Exchange,
    route: &'p RoutePlan,
    store: &'p Arc<CacheStore>,
    outcome: &Outcome<'p>,
    end_by: Option<Duration>,
) -> Result<Consulted<'p>, Problem> {
    let changed = invalidation::changed_target(exchange);
    let settings = route.cache.as_deref();
    let Some(settings) = settings.filter(|_| may_answer(route, outcome)) else {
        let uncached = Uncached {
            store,
            changed,
            mark: None,
        };
        return Ok(Consulted::Forward(Box::new(uncached)));
    };
    let cached = CachedRoute {
        route,
        settings,
        store,
    };
    Ok(match answer(exchange, cached, outcome, end_by).await? {
        Answer::Response(response) => Consulted::Answered(response),
        Answer::Bypassed(status) => Consulted::Forward(Box::new(Uncached {
            store,
            changed,
            mark: Some((cached, status)),
        })),
    })
}

/// Whether the store may answer in place of `outcome`. The refusal of a client is final. A refusal for lack of a target is
/// not, unless the route requires credentials, which are not checked for refused requests.
fn may_answer(route: &RoutePlan, outcome: &Outcome<'_>) -> bool {
    match outcome {
        Outcome::Forward(..) => true,
        Outcome::Refuse(problem) => {
            let lacks_target = matches!(
                problem.reason(),
                Reason::DnsFailed | Reason::NoTargets | Reason::AllTargetsUnhealthy
            );
            lacks_target && route.credentials.is_none()
        }
        Outcome::Answer(_) | Outcome::Files | Outcome::Redirect(_) | Outcome::Respond(_) => false,
    }
}

async fn answer(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    outcome: &Outcome<'_>,
    end_by: Option<Duration>,
) -> Result<Answer, Problem> {
    let lookup = match Lookup::read(exchange, cached) {
        Ok(lookup) => lookup,
        Err(reason) => {
            outcome::record(exchange, cached, CacheOutcome::Bypass);
            return Ok(Answer::Bypassed(CacheStatus {
                forwarded: Some("bypass"),
                detail: Some(reason.name()),
                ..CacheStatus::default()
            }));
        }
    };
    let is_shared = exchange.head.method == Method::GET && !lookup.is_partial;
    let collapse = cached.settings.settings.collapse;
    let mut waits = 0;
    let mut found = look(exchange, cached, &lookup);
    loop {
        let looked = serve(exchange, cached, &lookup, &found, waits > 0, end_by).await?;
        let missed = match looked {
            ControlFlow::Break(response) => return Ok(Answer::Response(response)),
            ControlFlow::Continue(reason) => reason,
        };
        let joined = (is_shared && waits < MAX_WAITS).then(|| {
            let headers = exchange.head.headers.as_map();
            let now = lookup::now(exchange);
            cached.store.join(&lookup.key, headers, now)
        });
        let fill = match joined {
            Some(Joined::Wait(wait)) if !collapse.is_zero() => {
                match wait_for(exchange, wait, collapse, end_by).await? {
                    Some(fetched) => {
                        waits += 1;
                        found = after_wait(exchange, cached, &lookup, fetched);
                    }
                    // It took too long.
                    None => waits = MAX_WAITS,
                }
                continue;
            }
            Some(Joined::Fill(fill)) => Some(fill),
            Some(Joined::Wait(_)) | None => None,
        };
        let is_selected = matches!(missed, MissReason::Stale | MissReason::Request);
        let earlier = found.response.filter(|_| is_selected);
        if fill.is_none() && (!is_shared || earlier.is_none()) {
            outcome::record(exchange, cached, CacheOutcome::Miss);
            return Ok(Answer::Bypassed(CacheStatus {
                forwarded: Some(missed.name()),
                ..CacheStatus::default()
            }));
        }
        // Without a place in the store a stale response may still stand in for an error.
        let fetch = Fetch {
            cached,
            fill,
            earlier,
            missed,
        };
        let response = fetch.run(exchange, outcome, end_by).await?;
        return Ok(Answer::Response(response));
    }
}

fn look(exchange: &Exchange, cached: CachedRoute<'_>, lookup: &Lookup) -> Found {
    let headers = exchange.head.headers.as_map();
    cached.store.find(&lookup.key, headers)
}

/// Sends a stored response, if one may be; else the reason why none may.
async fn serve(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    lookup: &Lookup,
    found: &Found,
    is_collapsed: bool,
    end_by: Option<Duration>,
) -> Result<ControlFlow<Response<Body>, MissReason>, Problem> {
    let now = lookup::now(exchange);
    let decision = decide(&lookup.directives, found, &cached.settings.settings, now);
    let (stored, outcome, detail) = match (decision, &found.response) {
        (Decision::Hit, Some(stored)) => (stored, CacheOutcome::Hit, None),
        (Decision::StaleWhileRevalidate, Some(stored)) => {
            refresh::begin(exchange, cached, lookup, stored, now);
            (stored, CacheOutcome::Stale, Some("stale-while-revalidate"))
        }
        (Decision::OnlyIfCached, _) => return Err(Problem::new(Reason::NotStored, Detail::None)),
        (Decision::Miss(reason), _) => return Ok(ControlFlow::Continue(reason)),
        (Decision::Revalidate | Decision::Hit | Decision::StaleWhileRevalidate, stored) => {
            let stored = stored.as_ref();
            let is_fresh = stored.is_some_and(|stored| stored.freshness.is_fresh(now));
            return Ok(ControlFlow::Continue(stored_miss(is_fresh)));
        }
    };
    let status = CacheStatus {
        is_hit: true,
        rest: Some(stored.freshness.rest(now)),
        is_collapsed,
        detail,
        ..CacheStatus::default()
    };
    outcome::record(exchange, cached, outcome);
    // It counts among the requests in flight like a file.
    let holders = InFlightScope {
        route: cached.route,
        upstream: None,
    };
    admission::enter(exchange, holders, end_by).await?;
    let response = served::from_head(exchange, cached, stored, &status);
    Ok(ControlFlow::Break(response))
}

/// The stored responses after a wait; the awaited response counts even if there was no room for it.
fn after_wait(
    exchange: &Exchange,
    cached: CachedRoute<'_>,
    lookup: &Lookup,
    response: Option<Arc<StoredResponse>>,
) -> Found {
    let headers = exchange.head.headers.as_map();
    let found = look(exchange, cached, lookup);
    let fetched = response.filter(|response| response.variant.matches(headers));
    Found {
        response: fetched.or(found.response),
        has_other_variants: found.has_other_variants,
    }
}

/// The response to another request; `None` if it took longer than `most`, and within that none if there is nothing to
/// be shared.
async fn wait_for(
    exchange: &Exchange,
    wait: FillWait,
    most: Duration,
    end_by: Option<Duration>,
) -> Result<Option<Option<Arc<StoredResponse>>>, Problem> {
    let since = exchange.worker().time.elapsed();
    let timers = exchange.timers(end_by.map(|end| end.saturating_sub(since)));
    timers.start(Timer::ResponseHeader, most);
    let mut wait = pin!(wait);
    let waited = poll_fn(|cx| {
        if let Poll::Ready(response) = wait.as_mut().poll(cx) {
            return Poll::Ready(Ok(Some(response)));
        }
        match timers.deadline().take_expired() {
            Some((timer @ Timer::Total, after)) => Poll::Ready(Err(timeout_problem(timer, after))),
            Some(_) => Poll::Ready(Ok(None)),
            None => Poll::Pending,
        }
    });
    let waited = waited.await;
    timers.stop();
    waited
}
