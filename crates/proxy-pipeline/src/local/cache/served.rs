//! Responses for the client: stored ones, and those that are being stored.

use super::outcome::CachedRoute;
use crate::exchange::Exchange;
use crate::response::body::Body;
use http::{HeaderMap, HeaderName, Response};
use proxy_cache::{CacheStatus, SelectedResponse, StoredResponse, select};

const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// The name of this cache in `Cache-Status`.
const NAME: &str = "proxyd";

/// The response made of `stored` for a request that still has its head.
pub(super) fn from_head(
    exchange: &Exchange,
    cached: CachedRoute<'_>,
    stored: &StoredResponse,
    status: &CacheStatus,
) -> Response<Body> {
    from_fields(
        exchange,
        cached,
        exchange.head.headers.as_map(),
        stored,
        status,
    )
}

/// The same for a request with these fields.
pub(super) fn from_fields(
    exchange: &Exchange,
    cached: CachedRoute<'_>,
    sent: &HeaderMap,
    stored: &StoredResponse,
    status: &CacheStatus,
) -> Response<Body> {
    let now = super::lookup::now(exchange);
    let SelectedResponse {
        status: code,
        headers,
        body,
    } = select(&exchange.head.method, sent, stored, now);
    let mut response = Response::new(Body::bytes(body));
    *response.status_mut() = code;
    *response.headers_mut() = headers;
    finish(exchange, cached, response, status)
}

/// Adds the fields for this client.
pub(super) fn finish(
    exchange: &Exchange,
    cached: CachedRoute<'_>,
    mut response: Response<Body>,
    status: &CacheStatus,
) -> Response<Body> {
    let edits = exchange.response_edits(cached.route);
    edits.apply(response.headers_mut());
    mark(cached, &mut response, status);
    response
}

/// Adds `Cache-Status`, if the route sends it.
pub(super) fn mark(cached: CachedRoute<'_>, response: &mut Response<Body>, status: &CacheStatus) {
    if cached.settings.settings.cache_status
        && let Some(value) = status.value(NAME)
    {
        response.headers_mut().append(CACHE_STATUS, value);
    }
}
