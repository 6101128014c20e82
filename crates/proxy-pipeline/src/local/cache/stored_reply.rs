//! Responses for the client of a route with a cache.

use super::cached_route::CachedRoute;
use crate::exchange::Exchange;
use crate::response::body::Body;
use http::{HeaderMap, HeaderName, Response};
use proxy_cache::{CacheStatus, SelectedResponse, StoredResponse, select};

const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// The name of this cache in `Cache-Status`.
const CACHE_NAME: &str = "proxyd";

/// The response made of `stored` for a request with the fields `request_headers`: the whole body, a range of it, or
/// 304.
pub(super) fn from_stored(
    exchange: &Exchange,
    cached: CachedRoute<'_>,
    request_headers: &HeaderMap,
    stored: &StoredResponse,
    status: &CacheStatus,
) -> Response<Body> {
    let now = exchange.worker().time.unix_secs_now();
    let SelectedResponse {
        status: code,
        headers,
        body,
    } = select(&exchange.head.method, request_headers, stored, now);
    let mut response = Response::new(Body::bytes(body));
    *response.status_mut() = code;
    *response.headers_mut() = headers;
    finish(exchange, cached, response, status)
}

/// Applies the route's edits of response headers, and adds `Cache-Status`.
pub(super) fn finish(
    exchange: &Exchange,
    cached: CachedRoute<'_>,
    mut response: Response<Body>,
    status: &CacheStatus,
) -> Response<Body> {
    let edits = exchange.response_edits(cached.route);
    edits.apply(response.headers_mut());
    add_cache_status(cached, &mut response, status);
    response
}

/// Adds `Cache-Status`, if the route sends it.
pub(super) fn add_cache_status(
    cached: CachedRoute<'_>,
    response: &mut Response<Body>,
    status: &CacheStatus,
) {
    if cached.settings.settings.cache_status
        && let Some(value) = status.value(CACHE_NAME)
    {
        response.headers_mut().append(CACHE_STATUS, value);
    }
}
