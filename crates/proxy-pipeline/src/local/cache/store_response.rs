//! Storage of upstream responses.

use super::cached_route::CachedRoute;
use crate::exchange::Exchange;
use crate::headers::{header_edits, names};
use crate::response::body::{Body, FillTarget};
use crate::response::held_response::is_stream;
use http::header::{CONTENT_LENGTH, IF_MODIFIED_SINCE, IF_NONE_MATCH};
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

/// The rules of a route for storage.
#[derive(Clone, Copy)]
pub(super) struct CachePolicy<'p> {
    pub(super) route: &'p RoutePlan,
    pub(super) settings: &'p CachePlan,
}

#[derive(Clone, Copy)]
pub(super) struct FetchRequest<'r> {
    /// The fields as the client sent them.
    pub(super) headers: &'r HeaderMap,
    /// The response may be for this client only, for reasons other than `Authorization`.
    pub(super) is_personal: bool,
    pub(super) times: Times,
}

/// An upstream's response after the attempt to store it.
pub(super) enum StoreResult {
    Stored(Arc<StoredResponse>),
    /// The response is stored once its body is complete, or stored already; it is sent with its own
    /// head.
    Filling(Response<Body>),
    /// The response is not stored; `None` if it was not meant for the store.
    Refused(Option<RefuseReason>, Response<Body>),
}

impl<'p> From<CachedRoute<'p>> for CachePolicy<'p> {
    fn from(cached: CachedRoute<'p>) -> Self {
        Self {
            route: cached.route,
            settings: cached.settings,
        }
    }
}

impl CachePolicy<'_> {
    /// Freshness and variant of a response, if it may be stored. A response that varies by a field
    /// in which the proxy describes the client may not: the upstream got another value than the
    /// request has.
    fn may_store(
        self,
        request: FetchRequest<'_>,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<(Freshness, Variant), RefuseReason> {
        let storing = StoringRequest {
            method: &Method::GET,
            headers: request.headers,
            is_personal: request.is_personal,
        };
        let settings = &self.settings.settings;
        let (freshness, variant) =
            proxy_cache::may_store(storing, status, headers, settings, request.times)?;
        let edits = &self.route.request_headers;
        let is_set_by_proxy = |name: &HeaderName| {
            CLIENT_FIELDS.contains(name)
                || edits.has_values() && header_edits::names(edits).any(|set| set == name)
        };
        if variant.names().any(is_set_by_proxy) {
            return Err(RefuseReason::Vary);
        }
        Ok((freshness, variant))
    }
}

/// Stores a response as far as it may be stored, and ends the fill. `earlier` is the stored
/// response that was validated or is replaced.
pub(super) fn store_response(
    exchange: &Exchange,
    policy: CachePolicy<'_>,
    fill: Option<Fill>,
    earlier: Option<Arc<StoredResponse>>,
    request: FetchRequest<'_>,
    response: Response<Body>,
) -> StoreResult {
    if response.status() == StatusCode::NOT_MODIFIED {
        return match earlier {
            Some(earlier) => store_validated(policy, fill, &earlier, request, response),
            // The answer to the client's own condition is not the whole response.
            None => StoreResult::Refused(None, response),
        };
    }
    let Some(fill) = fill else {
        return StoreResult::Refused(None, response);
    };
    if is_stream(&response) {
        drop(fill.mark_uncacheable(request.times.received_at));
        return StoreResult::Refused(Some(RefuseReason::Stream), response);
    }
    let replaces = earlier.is_some() && !response.status().is_server_error();
    store_new(exchange, policy, fill, replaces, request, response)
}

/// Stores `earlier` again, with the fields of the 304. Without a fill, it is only sent.
fn store_validated(
    policy: CachePolicy<'_>,
    fill: Option<Fill>,
    earlier: &StoredResponse,
    request: FetchRequest<'_>,
    response: Response<Body>,
) -> StoreResult {
    let now = request.times.received_at;
    let (mut head, _) = response.into_parts();
    let is_validated = earlier.is_validated_by(&head.headers);
    // A 304 about another response updates nothing: its tag would name the wrong body. [RFC 9111
    // §4.3.4]
    let headers = if is_validated {
        earlier.freshened(&head.headers)
    } else {
        earlier.headers.clone()
    };
    let mut refused = None;
    if let Some(fill) = fill {
        let storable = policy.may_store(request, earlier.status, &headers);
        match storable {
            Ok((freshness, variant)) if is_validated => {
                let stored_head = ResponseHead::new(earlier.status, &headers, freshness);
                let stored = fill.publish_validated(stored_head, variant, earlier, now);
                return StoreResult::Stored(stored);
            }
            Ok(_) => fill.forget_stored(),
            Err(reason) => {
                if !is_validated || !reason.is_request_specific() {
                    fill.forget_stored();
                }
                refused = Some(reason);
            }
        }
        drop(fill.mark_uncacheable(now));
    }
    // Sent in response to this request only. These fields are not stored: they are the new ones if
    // the 304 was about the stored response.
    head.status = earlier.status;
    head.headers = headers;
    if head.status != StatusCode::NO_CONTENT {
        let length = HeaderValue::from(earlier.body.len());
        head.headers.insert(CONTENT_LENGTH, length);
    }
    let body = Body::bytes(earlier.body.clone());
    StoreResult::Refused(refused, Response::from_parts(head, body))
}

/// Stores a new response. With `replaces`, the stored responses of its URL are removed even if the
/// new one may not be stored.
fn store_new(
    exchange: &Exchange,
    policy: CachePolicy<'_>,
    mut fill: Fill,
    replaces: bool,
    request: FetchRequest<'_>,
    response: Response<Body>,
) -> StoreResult {
    let now = request.times.received_at;
    let (head, mut body) = response.into_parts();
    let length = content_length(&head.headers);
    let whole = body.whole();
    let bytes = whole.as_ref().map(|body| body.len() as u64).or(length);
    let storable = policy
        .may_store(request, head.status, &head.headers)
        .and_then(|storable| {
            let has_room = has_room(exchange, &mut fill, bytes.unwrap_or(0));
            has_room.then_some(storable).ok_or(RefuseReason::NoRoom)
        });
    let (freshness, variant) = match storable {
        Ok(storable) => storable,
        Err(reason) => {
            if replaces && !reason.is_request_specific() {
                fill.forget_stored();
            }
            drop(fill.mark_uncacheable(now));
            return StoreResult::Refused(Some(reason), Response::from_parts(head, body));
        }
    };
    let stored_head = ResponseHead::new(head.status, &head.headers, freshness);
    if let Some(bytes) = whole {
        let stored = fill.publish(stored_head, variant, Box::from(&*bytes), now);
        let conditions = [IF_NONE_MATCH, IF_MODIFIED_SINCE];
        if conditions
            .iter()
            .any(|name| request.headers.contains_key(name))
        {
            return StoreResult::Stored(stored);
        }
        // The client of the fetch also gets the fields that are not stored.
        let body = Body::bytes(stored.body.clone());
        return StoreResult::Filling(Response::from_parts(head, body));
    }
    let target = FillTarget {
        fill,
        head: stored_head,
        variant,
        length,
    };
    body.begin_fill(exchange.worker(), target);
    StoreResult::Filling(Response::from_parts(head, body))
}

/// Reserves memory for a body of `bytes` bytes. False if the store has no room, or if the process
/// sheds load for lack of memory.
fn has_room(exchange: &Exchange, fill: &mut Fill, bytes: u64) -> bool {
    let has_memory = !exchange.worker().shared.memory.is_shedding();
    has_memory && fill.reserve(bytes, bytes)
}

/// The length in `Content-Length`; `None` for a chunked body.
fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
