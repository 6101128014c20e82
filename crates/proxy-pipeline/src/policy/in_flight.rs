//! Refuses new requests while too many are in flight, or queues them.

use crate::admission::Refusal;
use crate::exchange::Exchange;
use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::{ClientKey, LimitReached};
use std::rc::Rc;
use std::time::Duration;

/// Takes a place among the requests in flight at once, if there is one: held until the response's body
/// ends.
#[inline]
pub(crate) fn try_admit(exchange: &mut Exchange) -> bool {
    let place = exchange.worker().admission.try_enter();
    let is_admitted = place.is_some();
    exchange.record().places.in_flight = place;
    is_admitted
}

/// Waits for a place in turn with the requests of other clients.
#[cold]
pub(crate) async fn wait(exchange: &mut Exchange) -> Result<(), Problem> {
    let worker = Rc::clone(exchange.worker());
    let client = ClientKey::from(exchange.completion.record.client_ip);
    let since = worker.time.elapsed();
    let place = worker.admission.wait(client, since).await;
    let waited = || worker.time.elapsed().saturating_sub(since);
    let place = place.map_err(|refusal| problem(refusal, waited()))?;
    exchange.record().places.in_flight = Some(place);
    Ok(())
}

fn problem(refusal: Refusal, waited: Duration) -> Problem {
    let counted = |reason, full: LimitReached| {
        let (current, limit) = (u64::from(full.wanted()), u64::from(full.max));
        Problem::new(reason, Detail::Limit { current, limit })
    };
    match refusal {
        Refusal::InFlight(full) => counted(Reason::InFlightLimit, full),
        Refusal::InFlightOfWorker(full) => counted(Reason::InFlightLimit, full)
            .with_setting("limits.max-in-flight-requests-per-worker"),
        Refusal::QueueFull(full) => counted(Reason::QueueFull, full),
        Refusal::WaitedFor(limit) => {
            let current = waited.max(limit);
            Problem::new(Reason::QueueTimeout, Detail::TimeLimit { current, limit })
        }
        Refusal::MemoryShort => Problem::new(Reason::MemoryPressure, Detail::None),
    }
}
