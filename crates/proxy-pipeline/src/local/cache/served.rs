//! Responses for the client: stored ones, and those that are being stored.

use super::outcome::CachedRoute;
use crate::exchange::Exchange;
use crate::response::body::Body;
use http::header::CONTENT_RANGE;
use http::{HeaderMap, HeaderName, Response, StatusCode};
use proxy_cache::{CacheStatus, SelectedResponse, StoredResponse, select};
use proxy_errors::{Detail, Problem, Reason};

const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// The name of this cache in `Cache-Status`.
const NAME: &str = "proxyd";

/// The response made of `stored` for a request that still has its head.
pub(super) fn from_head(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    stored: &StoredResponse,
    status: &CacheStatus,
) -> Response<Body> {
    let (head, now) = (&exchange.head, super::lookup::now(exchange));
    let selected = select(&head.method, head.headers.as_map(), stored, now);
    from_selected(exchange, cached, selected, status)
}

/// The same for a request with these fields.
pub(super) fn from_fields(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    sent: &HeaderMap,
    stored: &StoredResponse,
    status: &CacheStatus,
) -> Response<Body> {
    let now = super::lookup::now(exchange);
    let selected = select(&exchange.head.method, sent, stored, now);
    from_selected(exchange, cached, selected, status)
}

fn from_selected(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    selected: SelectedResponse,
    status: &CacheStatus,
) -> Response<Body> {
    let SelectedResponse {
        status: code,
        headers,
        body,
    } = selected;
    if code == StatusCode::RANGE_NOT_SATISFIABLE {
        // An error of the proxy itself, as for a file. Fields of the stored response are not about it.
        let problem = Problem::new(Reason::RangeNotSatisfiable, Detail::None);
        let mut response = exchange.refuse(problem);
        if let Some(range) = headers.get(CONTENT_RANGE) {
            response.headers_mut().insert(CONTENT_RANGE, range.clone());
        }
        mark(cached, &mut response, status);
        return response;
    }
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
