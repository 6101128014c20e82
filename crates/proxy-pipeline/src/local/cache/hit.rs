//! Service of a stored response without a fetch.

use super::lookup::Lookup;
use super::{refresh, stored_reply};
use crate::exchange::Exchange;
use crate::policy::admission;
use crate::policy::in_flight::InFlightScope;
use crate::response::body::Body;
use crate::worker::cache_counters::CacheOutcome;
use http::Response;
use proxy_cache::{CacheStatus, Decision, Found, MissReason, decide, stored_miss};
use proxy_errors::{Detail, Problem, Reason};
use std::ops::ControlFlow;
use std::time::Duration;

/// The stored response for the client, or the reason of a miss. `is_collapsed` is true after a wait
/// for another request's fetch.
///
/// # Errors
/// The client accepts only a stored response and none can be used, or the limit on requests in
/// flight refuses the request.
pub(super) async fn serve(
    exchange: &mut Exchange,
    lookup: &Lookup<'_>,
    found: &Found,
    is_collapsed: bool,
    end_by: Option<Duration>,
) -> Result<ControlFlow<Response<Body>, MissReason>, Problem> {
    let cached = lookup.cached;
    let now = exchange.worker().time.clock_reading();
    let decision = decide(&lookup.directives, found, &cached.settings.settings, now);
    let (stored, outcome, detail) = match (decision, &found.response) {
        (Decision::Hit, Some(stored)) => (stored, CacheOutcome::Hit, None),
        (Decision::StaleWhileRevalidate, Some(stored)) => {
            refresh::begin(exchange, lookup, stored);
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
    cached.record(exchange, outcome);
    // Counts as a request in flight, as a static file does.
    let scope = InFlightScope {
        route: cached.route,
        upstream: None,
    };
    admission::enter(exchange, scope, end_by).await?;
    let response = stored_reply::from_stored(exchange, cached, None, stored, &status);
    Ok(ControlFlow::Break(response))
}
