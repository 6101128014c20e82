//! The fetch of a response for the store, and for all requests that wait for it.

use super::cached_route::CachedRoute;
use super::store_response::{CachePolicy, FetchRequest, StoreResult, store_response};
use super::stored_reply;
use crate::exchange::Exchange;
use crate::forward;
use crate::forward::destination::Destination;
use crate::forward::shadow;
use crate::policy::in_flight::InFlightScope;
use crate::policy::{admission, sticky_cookie};
use crate::response::body::Body;
use crate::worker::cache_counters::CacheOutcome;
use http::header::{AGE, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{HeaderMap, Response, StatusCode};
use proxy_cache::{CacheStatus, Fill, MissReason, RefuseReason, StoredResponse, Times};
use proxy_errors::{Detail, Problem, Reason};
use proxy_plan::{CachePlan, Outcome};
use std::sync::Arc;
use std::time::Duration;

/// A fetch for the store.
pub(super) struct Fetch<'p> {
    pub(super) cached: CachedRoute<'p>,
    /// The entry of the store to fill; `None` if another request fills it.
    pub(super) fill: Option<Fill>,
    /// The stored response that is no longer fresh.
    pub(super) earlier: Option<Arc<StoredResponse>>,
    pub(super) miss_reason: MissReason,
    /// False for HEAD and ranges: their responses are not stored, but a stale one may replace them.
    pub(super) is_complete: bool,
}

impl<'p> Fetch<'p> {
    /// Fetches the response. On an error, the stale response replaces it as long as
    /// `stale-if-error` allows. [RFC 5861 §4]
    pub(super) async fn run(
        self,
        exchange: &mut Exchange,
        outcome: &Outcome<'p>,
        end_by: Option<Duration>,
    ) -> Result<Response<Body>, Problem> {
        let (cached, earlier) = (self.cached, self.earlier.clone());
        let client_headers = exchange.head.headers.as_map().clone();
        let fetched = self.forward(exchange, &client_headers, outcome, end_by);
        let problem = match fetched.await {
            Ok(response) => return Ok(response),
            Err(problem) => problem,
        };
        let now = exchange.worker().time.clock_reading();
        let is_usable = |stored: &Arc<StoredResponse>| {
            problem.status().is_server_error() && stored.freshness.is_usable_on_error(now)
        };
        let Some(stored) = earlier.filter(is_usable) else {
            return Err(problem);
        };
        if exchange.record().permits.in_flight.is_none() {
            let scope = InFlightScope {
                route: cached.route,
                upstream: None,
            };
            admission::enter(exchange, scope, end_by).await?;
        }
        let reply = stale_if_error(exchange, cached, &client_headers, &stored, None);
        Ok(reply)
    }

    /// Forwards the request, and stores the response if it may be stored.
    async fn forward(
        self,
        exchange: &mut Exchange,
        client_headers: &HeaderMap,
        outcome: &Outcome<'p>,
        end_by: Option<Duration>,
    ) -> Result<Response<Body>, Problem> {
        let Self {
            cached,
            fill,
            earlier,
            miss_reason,
            is_complete,
        } = self;
        let now = admission::admit(exchange, cached.route, outcome, end_by).await?;
        let Outcome::Forward(upstream, choice) = outcome else {
            return Err(Problem::new(Reason::InternalError, Detail::None));
        };
        if cached.route.shadow.is_some() {
            shadow::begin(exchange, cached.route);
        }
        // If the last response could not be stored, this one is for its client only: the client's
        // own conditions may save the body.
        let is_shared = fill.as_ref().is_some_and(Fill::is_shared);
        if is_complete && (earlier.is_some() || is_shared) {
            set_conditions(exchange, earlier.as_deref());
        }
        let destination = Destination {
            route: cached.route,
            upstream,
            choice: *choice,
            total: end_by.map(|end| end.saturating_sub(now)),
        };
        let requested_at = exchange.worker().time.clock_reading();
        exchange.is_for_store = is_complete;
        let sending = forward::send(exchange, destination).await;
        exchange.is_for_store = false;
        let response = sending?;
        let status = response.status();
        let received_at = exchange.worker().time.clock_reading();
        let may_replace = |stored: &&Arc<StoredResponse>| {
            is_replaceable_error(status) && stored.freshness.is_usable_on_error(received_at)
        };
        if let Some(stored) = earlier.as_ref().filter(may_replace) {
            let reply = stale_if_error(exchange, cached, client_headers, stored, Some(status));
            return Ok(reply);
        }
        if !is_complete {
            return Ok(pass_on(exchange, cached, miss_reason, response));
        }
        let request = FetchRequest {
            headers: client_headers,
            is_personal: is_personal(exchange, cached.settings),
            times: Times {
                requested_at,
                received_at,
            },
        };
        let policy = CachePolicy::from(cached);
        let result = store_response(exchange, policy, fill, earlier, request, response);
        let is_refused = matches!(result, StoreResult::Refused(..));
        let revalidation = (status == StatusCode::NOT_MODIFIED).then_some(status);
        let mut response = reply(
            exchange,
            cached,
            client_headers,
            miss_reason,
            revalidation,
            result,
        );
        if is_refused {
            sticky_cookie::apply(exchange, upstream, choice, response.headers_mut());
        }
        Ok(response)
    }
}

/// The upstream's response to HEAD or to a range, which is not stored.
fn pass_on(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    miss_reason: MissReason,
    mut response: Response<Body>,
) -> Response<Body> {
    cached.record(exchange, CacheOutcome::Miss);
    let status = CacheStatus {
        forwarded: Some(miss_reason.name()),
        ..CacheStatus::default()
    };
    stored_reply::add_cache_status(cached, &mut response, &status);
    response
}

/// Replaces the client's conditions by those for the stored response, if there is one. The client's
/// own are applied to the stored response afterwards.
pub(super) fn set_conditions(exchange: &mut Exchange, earlier: Option<&StoredResponse>) {
    let headers = &mut exchange.head.headers;
    headers.remove(&IF_NONE_MATCH);
    headers.remove(&IF_MODIFIED_SINCE);
    if let Some(earlier) = earlier {
        for (name, value) in earlier.conditions() {
            headers.insert(name, value);
        }
    }
}

/// Returns true if the response may be for this client only, for reasons other than
/// `Authorization`.
pub(super) fn is_personal(exchange: &Exchange, settings: &CachePlan) -> bool {
    let session = exchange.client().session.as_deref();
    let certificate = session.and_then(|session| session.verdict.certificate());
    settings.is_personal || certificate.is_some()
}

/// Returns true for statuses that a stale response may replace. [RFC 5861 §4]
pub(super) fn is_replaceable_error(status: StatusCode) -> bool {
    matches!(status.as_u16(), 500 | 502 | 503 | 504)
}

/// The response for the client that caused the fetch. `revalidation` is the upstream's 304, if it
/// sent one.
fn reply(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    client_headers: &HeaderMap,
    miss_reason: MissReason,
    revalidation: Option<StatusCode>,
    result: StoreResult,
) -> Response<Body> {
    // Without a selected stored response, the 304 answers the client's own condition.
    let has_selected = matches!(miss_reason, MissReason::Stale | MissReason::Request);
    let is_revalidated = revalidation.is_some() && has_selected;
    let outcome = if is_revalidated {
        CacheOutcome::Revalidated
    } else {
        CacheOutcome::Miss
    };
    cached.record(exchange, outcome);
    let mut cache_status = CacheStatus {
        forwarded: Some(miss_reason.name()),
        forwarded_status: revalidation.map(|status| status.as_u16()),
        ..CacheStatus::default()
    };
    let response = match result {
        StoreResult::Stored(stored) => {
            cache_status.is_stored = true;
            let mut response = stored_reply::from_stored(
                exchange,
                cached,
                Some(client_headers),
                &stored,
                &cache_status,
            );
            // A new response of its origin has no age.
            if stored.freshness.initial_age == 0 && !is_revalidated {
                response.headers_mut().remove(AGE);
            }
            return response;
        }
        StoreResult::Filling(response) => {
            cache_status.is_stored = true;
            response
        }
        StoreResult::Refused(reason, response) => {
            cache_status.detail = reason.map(RefuseReason::name);
            response
        }
    };
    stored_reply::finish(exchange, cached, response, &cache_status)
}

/// The stale response in place of an error. `status` is the upstream's; `None` if it sent no
/// response.
fn stale_if_error(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    client_headers: &HeaderMap,
    stored: &StoredResponse,
    status: Option<StatusCode>,
) -> Response<Body> {
    cached.record(exchange, CacheOutcome::Stale);
    let now = exchange.worker().time.clock_reading();
    let cache_status = CacheStatus {
        forwarded: Some(MissReason::Stale.name()),
        forwarded_status: status.map(|status| status.as_u16()),
        rest: Some(stored.freshness.rest(now)),
        detail: Some("stale-if-error"),
        ..CacheStatus::default()
    };
    stored_reply::from_stored(
        exchange,
        cached,
        Some(client_headers),
        stored,
        &cache_status,
    )
}
