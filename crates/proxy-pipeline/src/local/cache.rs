//! Serves responses from the cache's store, and stores new ones. `proxy-cache` decides which
//! responses may be stored and served; these modules carry out its decisions, in the order of
//! [`answer`].

mod cache_result;
mod cached_route;
mod fetch;
mod fill_wait;
mod forwarded_claims;
mod hit;
mod invalidation;
mod lookup;
mod refresh;
mod store_response;
mod stored_reply;

pub(crate) use cache_result::CacheResult;

use crate::exchange::Exchange;
use crate::response::body::Body;
use crate::worker::cache_counters::CacheOutcome;
use cache_result::UncachedRequest;
use cached_route::CachedRoute;
use fetch::Fetch;
use fill_wait::Waited;
use http::{Method, Response};
use lookup::Lookup;
use proxy_cache::{BypassReason, CacheStatus, CacheStore, Joined, MissReason};
use proxy_errors::{Problem, Reason};
use proxy_plan::{Outcome, RoutePlan};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of other requests' fetches that one request waits for. A fetch may end with its
/// client, without a response.
const MAX_WAITS: usize = 3;

/// The result for a request of a route with a cache.
enum LookUpOutcome {
    Response(Response<Body>),
    /// The request is forwarded without the store.
    Bypass(CacheStatus),
}

/// Returns true if requests of this method on `route` read or change the store. An unsafe request
/// removes the stored responses of its URL, on every route.
#[inline]
pub(crate) fn uses_store(route: &RoutePlan, method: &Method) -> bool {
    route.cache.is_some() || !method.is_safe()
}

/// Answers the request from the store or by a fetch for the store, if the route has a cache and the
/// request allows it. `end_by` is the end of the request's time, since the worker's start.
pub(crate) async fn handle<'p>(
    exchange: &mut Exchange,
    route: &'p RoutePlan,
    store: &'p Arc<CacheStore>,
    outcome: &Outcome<'p>,
    end_by: Option<Duration>,
) -> Result<CacheResult<'p>, Problem> {
    let changed = invalidation::changed_target(exchange);
    let mut cache_status = None;
    if let Some(settings) = route.cache.as_deref()
        && may_replace(route, outcome)
    {
        let cached = CachedRoute {
            route,
            settings,
            store,
        };
        match answer(exchange, cached, outcome, end_by).await? {
            LookUpOutcome::Response(response) => return Ok(CacheResult::Response(response)),
            LookUpOutcome::Bypass(status) => cache_status = Some((cached, status)),
        }
    }
    Ok(CacheResult::Forward(Box::new(UncachedRequest {
        store,
        changed,
        cache_status,
    })))
}

/// Returns true if a stored response may be sent in place of `outcome`: always if the request would
/// be forwarded, and if its upstream has no usable target. Other refusals are final, and so is
/// every refusal of a route with credentials, since the credentials of refused requests are not
/// checked.
fn may_replace(route: &RoutePlan, outcome: &Outcome<'_>) -> bool {
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

/// Sends a stored response, or joins the fetch of another request for the same response, or fetches
/// it.
async fn answer(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    outcome: &Outcome<'_>,
    end_by: Option<Duration>,
) -> Result<LookUpOutcome, Problem> {
    let lookup = match Lookup::new(exchange, cached) {
        Ok(lookup) => lookup,
        Err(reason) => return Ok(bypass(exchange, cached, reason)),
    };
    // Responses to HEAD and to ranges are not complete.
    let may_fill = exchange.head.method == Method::GET && !lookup.is_partial;
    let collapse_wait = cached.settings.settings.collapse;
    let mut found = lookup.find(exchange);
    let mut waits = 0;
    let (miss_reason, fill) = loop {
        let is_collapsed = waits > 0;
        let miss_reason = match hit::serve(exchange, &lookup, &found, is_collapsed, end_by).await? {
            ControlFlow::Break(response) => return Ok(LookUpOutcome::Response(response)),
            ControlFlow::Continue(miss_reason) => miss_reason,
        };
        if !may_fill || waits >= MAX_WAITS {
            break (miss_reason, None);
        }
        match lookup.join(exchange) {
            Joined::Fill(fill) => break (miss_reason, Some(fill)),
            Joined::Wait(_) if collapse_wait.is_zero() => break (miss_reason, None),
            Joined::Wait(wait) => {
                match fill_wait::wait(exchange, wait, collapse_wait, end_by).await? {
                    Waited::Finished(fetched) => {
                        waits += 1;
                        found = lookup.find_after_wait(exchange, fetched);
                    }
                    Waited::TimedOut => waits = MAX_WAITS,
                }
            }
        }
    };
    let is_selected = matches!(miss_reason, MissReason::Stale | MissReason::Request);
    let earlier = found.response.filter(|_| is_selected);
    // A stale response may replace an error even if the new one is not stored.
    if fill.is_none() && earlier.is_none() {
        return Ok(miss(exchange, cached, miss_reason));
    }
    let fetch = Fetch {
        cached,
        fill,
        earlier,
        miss_reason,
        is_complete: may_fill,
    };
    let response = fetch.run(exchange, outcome, end_by).await?;
    Ok(LookUpOutcome::Response(response))
}

fn bypass(exchange: &mut Exchange, cached: CachedRoute<'_>, reason: BypassReason) -> LookUpOutcome {
    cached.record(exchange, CacheOutcome::Bypass);
    LookUpOutcome::Bypass(CacheStatus {
        forwarded: Some("bypass"),
        detail: Some(reason.name()),
        ..CacheStatus::default()
    })
}

/// A miss of a request that does not fetch for the store.
fn miss(exchange: &mut Exchange, cached: CachedRoute<'_>, reason: MissReason) -> LookUpOutcome {
    cached.record(exchange, CacheOutcome::Miss);
    LookUpOutcome::Bypass(CacheStatus {
        forwarded: Some(reason.name()),
        ..CacheStatus::default()
    })
}
