//! The fetch of a response for the store, and for all requests that wait for it.

use super::outcome::{CachedRoute, record};
use super::storing::{Received, Sent, receive};
use super::{lookup, served};
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
    /// The place in the store; `None` for a response that another request stores.
    pub(super) fill: Option<Fill>,
    /// The stored response that is no longer fresh.
    pub(super) earlier: Option<Arc<StoredResponse>>,
    pub(super) missed: MissReason,
}

impl<'p> Fetch<'p> {
    pub(super) async fn run(
        self,
        exchange: &mut Exchange,
        outcome: &Outcome<'p>,
        end_by: Option<Duration>,
    ) -> Result<Response<Body>, Problem> {
        let (cached, earlier) = (self.cached, self.earlier.clone());
        let sent = exchange.head.headers.as_map().clone();
        let problem = match self.forward(exchange, &sent, outcome, end_by).await {
            Ok(response) => return Ok(response),
            Err(problem) => problem,
        };
        let now = lookup::now(exchange);
        let is_usable = |stored: &Arc<StoredResponse>| {
            problem.status().is_server_error() && stored.freshness.is_usable_on_error(now)
        };
        let Some(stored) = earlier.filter(is_usable) else {
            return Err(problem);
        };
        if exchange.record().permits.in_flight.is_none() {
            let holders = InFlightScope {
                route: cached.route,
                upstream: None,
            };
            admission::enter(exchange, holders, end_by).await?;
        }
        Ok(instead_of_error(exchange, cached, &sent, &stored, None))
    }

    /// Forwards the request, and puts its response into the store as far as it may be.
    async fn forward(
        self,
        exchange: &mut Exchange,
        sent: &HeaderMap,
        outcome: &Outcome<'p>,
        end_by: Option<Duration>,
    ) -> Result<Response<Body>, Problem> {
        let Self {
            cached,
            fill,
            earlier,
            missed,
        } = self;
        let now = admission::admit(exchange, cached.route, outcome, end_by).await?;
        let Outcome::Forward(upstream, choice) = outcome else {
            return Err(Problem::new(Reason::InternalError, Detail::None));
        };
        if cached.route.shadow.is_some() {
            shadow::begin(exchange, cached.route);
        }
        // The last response could not be stored: the client's own conditions save it this one.
        let is_alone = fill.as_ref().is_none_or(Fill::is_alone);
        if earlier.is_some() || !is_alone {
            set_conditions(exchange, earlier.as_deref());
        }
        let to = Destination {
            route: cached.route,
            upstream,
            choice: *choice,
            total: end_by.map(|end| end.saturating_sub(now)),
        };
        let requested_at = lookup::now(exchange);
        exchange.is_for_store = true;
        let sending = forward::send(exchange, to).await;
        exchange.is_for_store = false;
        let response = sending?;
        let status = response.status();
        let received_at = lookup::now(exchange);
        let may_replace = |stored: &&Arc<StoredResponse>| {
            is_failure(status) && stored.freshness.is_usable_on_error(received_at)
        };
        if let Some(stored) = earlier.as_ref().filter(may_replace) {
            let status = Some(status);
            return Ok(instead_of_error(exchange, cached, sent, stored, status));
        }
        let request = Sent {
            headers: sent,
            is_personal: is_personal(exchange, cached.settings),
            times: Times {
                requested_at,
                received_at,
            },
        };
        let received = receive(exchange, cached.into(), fill, earlier, request, response);
        let is_refused = matches!(received, Received::Refused(..));
        let mut response = deliver(exchange, cached, sent, missed, status, received);
        if is_refused {
            sticky_cookie::apply(exchange, upstream, choice, response.headers_mut());
        }
        Ok(response)
    }
}

/// Replaces the client's conditions by those of the stored response: the answer to the client's own is made of the
/// stored one.
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

/// Whether a response may be for this client only, for reasons other than `Authorization`.
pub(super) fn is_personal(exchange: &Exchange, settings: &CachePlan) -> bool {
    let session = exchange.client().session.as_deref();
    let certificate = session.and_then(|session| session.verdict.certificate());
    settings.is_personal || certificate.is_some()
}

/// Statuses in place of which a stale response is sent. [RFC 5861 §4]
pub(super) fn is_failure(status: StatusCode) -> bool {
    matches!(status.as_u16(), 500 | 502 | 503 | 504)
}

/// The response for the client that fetched it.
fn deliver(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    sent: &HeaderMap,
    missed: MissReason,
    status: StatusCode,
    received: Received,
) -> Response<Body> {
    let is_not_modified = status == StatusCode::NOT_MODIFIED;
    let is_validated = is_not_modified && matches!(missed, MissReason::Stale | MissReason::Request);
    let outcome = if is_validated {
        CacheOutcome::Revalidated
    } else {
        CacheOutcome::Miss
    };
    record(exchange, cached, outcome);
    let mut cache_status = CacheStatus {
        forwarded: Some(missed.name()),
        forwarded_status: is_not_modified.then_some(status.as_u16()),
        ..CacheStatus::default()
    };
    match received {
        Received::Stored(stored) => {
            cache_status.is_stored = true;
            let mut response = served::from_fields(exchange, cached, sent, &stored, &cache_status);
            if stored.freshness.initial_age == 0 && !is_validated {
                // It comes from its origin.
                response.headers_mut().remove(AGE);
            }
            response
        }
        Received::Filling(head, body) => {
            cache_status.is_stored = true;
            let response = Response::from_parts(head, body);
            served::finish(exchange, cached, response, &cache_status)
        }
        Received::Refused(reason, head, body) => {
            cache_status.detail = reason.map(RefuseReason::name);
            let response = Response::from_parts(head, body);
            served::finish(exchange, cached, response, &cache_status)
        }
    }
}

fn instead_of_error(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    sent: &HeaderMap,
    stored: &StoredResponse,
    status: Option<StatusCode>,
) -> Response<Body> {
    record(exchange, cached, CacheOutcome::Stale);
    let rest = stored.freshness.rest(lookup::now(exchange));
    let cache_status = CacheStatus {
        forwarded: Some(MissReason::Stale.name()),
        forwarded_status: status.map(|status| status.as_u16()),
        rest: Some(rest),
        detail: Some("stale-if-error"),
        ..CacheStatus::default()
    };
    served::from_fields(exchange, cached, sent, stored, &cache_status)
}
