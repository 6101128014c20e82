//! Responses into the store.

use super::outcome::CachedRoute;
use crate::exchange::Exchange;
use crate::headers::{header_edits, names};
use crate::response::body::{Body, FillTarget};
use crate::response::held_response::is_stream;
use http::header::{CONTENT_LENGTH, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use proxy_cache::{
    Fill, Freshness, RefuseReason, ResponseHead, StoredResponse, StoringRequest, Times, Variant,
};
use proxy_plan::{CachePlan, RoutePlan};
use std::sync::Arc;

/// Fields with which the proxy describes the client, or the request, to the upstream.
const CLIENT_FIELDS: [HeaderName; 4] = [
    names::FORWARDED_FOR,
    names::CORRELATION_ID,
    names::TRACE_PARENT,
    names::TRACE_STATE,
];

/// A route with its caching.
#[derive(Clone, Copy)]
pub(super) struct Caching<'p> {
    pub(super) route: &'p RoutePlan,
    pub(super) settings: &'p CachePlan,
}

/// The request of a response, and its times.
#[derive(Clone, Copy)]
pub(super) struct Sent<'s> {
    pub(super) headers: &'s HeaderMap,
    pub(super) is_personal: bool,
    pub(super) times: Times,
}

impl<'p> From<CachedRoute<'p>> for Caching<'p> {
    fn from(cached: CachedRoute<'p>) -> Self {
        Self {
            route: cached.route,
            settings: cached.settings,
        }
    }
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

/// A response of the upstream, after the store has had it.
pub(super) enum Received {
    /// The response that is now stored.
    Stored(Arc<StoredResponse>),
    /// It is being stored while it is sent.
    Filling(Parts, Body),
    /// It is not stored, for this reason if it could have been.
    Refused(Option<RefuseReason>, Parts, Body),
}

/// Puts a response into the store, as far as it may be, and ends the fill.
pub(super) fn receive(
    exchange: &Exchange,
    caching: Caching<'_>,
    fill: Option<Fill>,
    earlier: Option<Arc<StoredResponse>>,
    sent: Sent<'_>,
    response: Response<Body>,
) -> Received {
    let is_stream = is_stream(&response);
    let (head, body) = response.into_parts();
    match (fill, earlier) {
        (fill, Some(earlier)) if head.status == StatusCode::NOT_MODIFIED => {
            validated(caching, fill, &earlier, sent, head)
        }
        // The answer to the client's own condition says nothing about the whole response.
        (Some(_), None) if head.status == StatusCode::NOT_MODIFIED => {
            Received::Refused(None, head, body)
        }
        (None, _) => Received::Refused(None, head, body),
        (Some(fill), _) if is_stream => {
            drop(fill.pass(sent.times.received_at));
            Received::Refused(Some(RefuseReason::Stream), head, body)
        }
        (Some(fill), earlier) => {
            let replaces = earlier.is_some() && !head.status.is_server_error();
            let response = Response::from_parts(head, body);
            store(exchange, caching, fill, replaces, sent, response)
        }
    }
}

/// The stored response after a 304 with the head `fresh`.
fn validated(
    caching: Caching<'_>,
    fill: Option<Fill>,
    earlier: &StoredResponse,
    sent: Sent<'_>,
    mut fresh: Parts,
) -> Received {
    let now = sent.times.received_at;
    let is_validated = earlier.is_validated_by(&fresh.headers);
    let headers = earlier.freshened(&fresh.headers);
    let decided = may_store(caching, sent, earlier.status, &headers).map_err(Some);
    let decided = decided.and_then(|decided| is_validated.then_some(decided).ok_or(None));
    let refused = match (fill, decided) {
        (Some(fill), Ok((freshness, variant))) => {
            let head = ResponseHead::new(earlier.status, &headers, freshness);
            return Received::Stored(fill.publish_validated(head, variant, earlier, now));
        }
        (Some(fill), Err(reason)) => {
            if !reason.is_some_and(RefuseReason::is_of_request) {
                fill.forget_stored();
            }
            drop(fill.pass(now));
            reason
        }
        (None, _) => None,
    };
    // It is right for this request, with the new fields, and those are not kept.
    fresh.status = earlier.status;
    fresh.headers = headers;
    if fresh.status != StatusCode::NO_CONTENT {
        let length = HeaderValue::from(earlier.body.len());
        fresh.headers.insert(CONTENT_LENGTH, length);
    }
    Received::Refused(refused, fresh, Body::bytes(earlier.body.clone()))
}

/// Stores a new response, which `replaces` a stored one.
fn store(
    exchange: &Exchange,
    caching: Caching<'_>,
    mut fill: Fill,
    replaces: bool,
    sent: Sent<'_>,
    response: Response<Body>,
) -> Received {
    let (head, mut body) = response.into_parts();
    let now = sent.times.received_at;
    let decided = may_store(caching, sent, head.status, &head.headers);
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
            if replaces && !reason.is_of_request() {
                fill.forget_stored();
            }
            drop(fill.pass(now));
            return Received::Refused(Some(reason), head, body);
        }
    };
    let stored_head = ResponseHead::new(head.status, &head.headers, freshness);
    if let Some(bytes) = whole {
        let stored = fill.publish(stored_head, variant, Box::from(&*bytes), now);
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

/// Freshness and variant of a response that may be stored. One that varies by a field with which the proxy describes
/// the client to the upstream may not: the request has another value than the upstream got.
fn may_store(
    caching: Caching<'_>,
    sent: Sent<'_>,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<(Freshness, Variant), RefuseReason> {
    let settings = &caching.settings.settings;
    let (freshness, variant) =
        proxy_cache::may_store(sent.request(), status, headers, settings, sent.times)?;
    let edits = &caching.route.request_headers;
    let is_own = |name: &HeaderName| {
        CLIENT_FIELDS.contains(name)
            || edits.has_values() && header_edits::names(edits).any(|set| set == name)
    };
    if variant.names().any(is_own) {
        return Err(RefuseReason::Vary);
    }
    Ok((freshness, variant))
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
