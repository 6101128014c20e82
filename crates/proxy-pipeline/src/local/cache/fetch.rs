//! The fetch of a response for the store, and for all requests that wait for it.

use super::outcome::record;
use super::{CachedRoute, lookup, served};
use crate::exchange::Exchange;
use crate::forward;
use crate::forward::destination::Destination;
use crate::forward::shadow;
use crate::policy::in_flight::Holders;
use crate::policy::{admission, sticky_cookie};
use crate::response::body::{Body, FillTarget};
use crate::worker::cache_counters::CacheOutcome;
use http::header::{AGE, CONTENT_LENGTH, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::response::Parts;
use http::{HeaderMap, Method, Response, StatusCode};
use proxy_cache::{
    CacheStatus, Fill, MissReason, RefuseReason, ResponseHead, StoredResponse, StoringRequest,
    Times, may_store,
};
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

/// The request behind a response, and its times.
#[derive(Clone, Copy)]
pub(super) struct Sent<'s> {
    pub(super) headers: &'s HeaderMap,
    pub(super) is_personal: bool,
    pub(super) times: Times,
}

impl<'s> Sent<'s> {
    fn request(&self) -> StoringRequest<'s> {
        StoringRequest {
            method: &Method::GET,
            headers: self.headers,
            is_personal: self.is_personal,
        }
    }
}

/// The response of the upstream, after a part of it has gone into the store.
pub(super) enum Received {
    /// The stored response is right, or again so.
    Stored(Arc<StoredResponse>),
    /// It is being stored while it is sent.
    Filling(Parts, Body),
    /// It is not stored, for this reason if it could have been.
    Refused(Option<RefuseReason>, Parts, Body),
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
            let holders = Holders {
                route: cached.route,
                upstream: None,
            };
            admission::enter(exchange, holders, end_by).await?;
        }
        Ok(instead_of_error(exchange, cached, (&sent, &stored), None))
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
        ask(exchange, earlier.as_deref());
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
            let stored = (sent, &**stored);
            return Ok(instead_of_error(exchange, cached, stored, Some(status)));
        }
        let request = Sent {
            headers: sent,
            is_personal: is_personal(exchange, cached.settings),
            times: Times {
                requested_at,
                received_at,
            },
        };
        let received = receive(
            exchange,
            cached.settings,
            (fill, earlier),
            request,
            response,
        );
        let add_cookie = |exchange: &Exchange, headers: &mut HeaderMap| {
            sticky_cookie::apply(exchange, upstream, choice, headers);
        };
        Ok(deliver(
            exchange,
            cached,
            (sent, missed, status),
            received,
            add_cookie,
        ))
    }
}

/// Replaces the client's conditions by those of the stored response: the answer to the client's own is made of the
/// stored one.
pub(super) fn ask(exchange: &mut Exchange, earlier: Option<&StoredResponse>) {
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

/// Puts a response into the store, as far as it may be, and ends the fill.
pub(super) fn receive(
    exchange: &Exchange,
    settings: &CachePlan,
    (fill, earlier): (Option<Fill>, Option<Arc<StoredResponse>>),
    sent: Sent<'_>,
    response: Response<Body>,
) -> Received {
    let (head, body) = response.into_parts();
    match (fill, earlier) {
        (fill, Some(earlier)) if head.status == StatusCode::NOT_MODIFIED => {
            Received::Stored(validated(settings, (fill, earlier), sent, &head.headers))
        }
        (None, _) => Received::Refused(None, head, body),
        (Some(fill), earlier) => {
            let replaces = earlier.is_some() && !head.status.is_server_error();
            store(exchange, settings, (fill, replaces), sent, (head, body))
        }
    }
}

/// The stored response after a 304 with these fields.
fn validated(
    settings: &CachePlan,
    (fill, earlier): (Option<Fill>, Arc<StoredResponse>),
    sent: Sent<'_>,
    fields: &HeaderMap,
) -> Arc<StoredResponse> {
    let Some(fill) = fill else {
        return earlier;
    };
    let now = sent.times.received_at;
    let headers = earlier.freshened(fields);
    let response = (earlier.status, &headers);
    match may_store(sent.request(), response, &settings.settings, sent.times) {
        Ok((freshness, variant)) if earlier.is_validated_by(fields) => {
            let head = ResponseHead::new(earlier.status, &headers, freshness);
            fill.publish_validated((head, variant), &earlier, now)
        }
        // It is right for this request, and is not kept.
        Ok(_) | Err(_) => {
            fill.forget_stored();
            drop(fill.pass(now));
            earlier
        }
    }
}

/// Stores a new response, which `replaces` a stored one.
fn store(
    exchange: &Exchange,
    settings: &CachePlan,
    (mut fill, replaces): (Fill, bool),
    sent: Sent<'_>,
    (head, mut body): (Parts, Body),
) -> Received {
    let now = sent.times.received_at;
    let response = (head.status, &head.headers);
    let decided = may_store(sent.request(), response, &settings.settings, sent.times);
    let length = announced(&head.headers);
    let whole = body.whole();
    let decided = decided.and_then(|decided| {
        let bytes = whole
            .as_ref()
            .map_or(length.unwrap_or(0), |body| body.len() as u64);
        let has_memory = !exchange.worker().shared.memory.is_shedding();
        let has_room = has_memory && fill.reserve(bytes, bytes);
        has_room.then_some(decided).ok_or(RefuseReason::NoRoom)
    });
    let (freshness, variant) = match decided {
        Ok(decided) => decided,
        Err(reason) => {
            if replaces {
                fill.forget_stored();
            }
            drop(fill.pass(now));
            return Received::Refused(Some(reason), head, body);
        }
    };
    let stored_head = ResponseHead::new(head.status, &head.headers, freshness);
    if let Some(bytes) = whole {
        let stored = fill.publish((stored_head, variant), Box::from(&*bytes), now);
        let names = [IF_NONE_MATCH, IF_MODIFIED_SINCE];
        if names.iter().any(|name| sent.headers.contains_key(name)) {
            return Received::Stored(stored);
        }
        // With the fields that are not stored: they are for the client that fetched it.
        return Received::Filling(head, Body::bytes(stored.body.clone()));
    }
    let target = FillTarget {
        fill,
        head: stored_head,
        variant,
        length,
    };
    body.begin_fill(exchange.worker(), target);
    Received::Filling(head, body)
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The response for the client that fetched it.
fn deliver(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    (sent, missed, status): (&HeaderMap, MissReason, StatusCode),
    received: Received,
    add_cookie: impl FnOnce(&Exchange, &mut HeaderMap),
) -> Response<Body> {
    let is_validated = status == StatusCode::NOT_MODIFIED;
    let mut cache_status = CacheStatus {
        forwarded: Some(missed.name()),
        forwarded_status: is_validated.then_some(status.as_u16()),
        ..CacheStatus::default()
    };
    match received {
        Received::Stored(stored) => {
            let outcome = if is_validated {
                CacheOutcome::Revalidated
            } else {
                CacheOutcome::Miss
            };
            record(exchange, cached, outcome);
            cache_status.is_stored = true;
            let mut response =
                served::from_fields(exchange, cached, (sent, &stored), &cache_status);
            if stored.freshness.initial_age == 0 && !is_validated {
                // It comes from its origin.
                response.headers_mut().remove(AGE);
            }
            response
        }
        Received::Filling(head, body) => {
            record(exchange, cached, CacheOutcome::Miss);
            cache_status.is_stored = true;
            let response = Response::from_parts(head, body);
            served::finish(exchange, cached, response, &cache_status)
        }
        Received::Refused(reason, mut head, body) => {
            record(exchange, cached, CacheOutcome::Miss);
            cache_status.detail = reason.map(RefuseReason::name);
            add_cookie(exchange, &mut head.headers);
            let response = Response::from_parts(head, body);
            served::finish(exchange, cached, response, &cache_status)
        }
    }
}

fn instead_of_error(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    (sent, stored): (&HeaderMap, &StoredResponse),
    status: Option<StatusCode>,
) -> Response<Body> {
    record(exchange, cached, CacheOutcome::Stale);
    let rest = stored.freshness.rest(lookup::now(exchange));
    let cache_status = CacheStatus {
        is_hit: true,
        forwarded_status: status.map(|status| status.as_u16()),
        rest: Some(rest),
        detail: Some("stale-if-error"),
        ..CacheStatus::default()
    };
    served::from_fields(exchange, cached, (sent, stored), &cache_status)
}
