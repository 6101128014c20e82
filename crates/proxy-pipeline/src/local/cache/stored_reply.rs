//! Responses for the client of a route with a cache.

use super::cached_route::CachedRoute;
use crate::exchange::Exchange;
use crate::response::body::Body;
use http::header::CONTENT_RANGE;
use http::{HeaderMap, HeaderName, Response, StatusCode};
use proxy_cache::{CacheStatus, SelectedResponse, StoredResponse, select};
use proxy_errors::{Detail, Problem, Reason};

const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// The name of this cache in `Cache-Status`.
const CACHE_NAME: &str = "proxyd";

/// Builds the response from `stored` by the conditions in `request_headers`, else in the exchange's
/// head: the whole body, a range of it, or 304. An unsatisfiable range gets the proxy's own error,
/// as for a file.
pub(super) fn from_stored(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    request_headers: Option<&HeaderMap>,
    stored: &StoredResponse,
    status: &CacheStatus,
) -> Response<Body> {
    let (head, now) = (&exchange.head, exchange.worker().time.clock_reading());
    let request_headers = request_headers.unwrap_or_else(|| head.headers.as_map());
    let SelectedResponse {
        status: code,
        headers,
        body,
    } = select(&head.method, request_headers, stored, now);
    if code == StatusCode::RANGE_NOT_SATISFIABLE {
        let problem = Problem::new(Reason::RangeNotSatisfiable, Detail::None);
        let mut response = exchange.refuse(problem);
        if let Some(range) = headers.get(CONTENT_RANGE) {
            response.headers_mut().insert(CONTENT_RANGE, range.clone());
        }
        add_cache_status(cached, &mut response, status);
        return response;
    }
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
