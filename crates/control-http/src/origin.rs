//! Site that sent a request, as the browser states it.

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderName, header};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Returns true if a browser sent the request from a page of this origin, or from the address bar.
/// Browsers that send no `Sec-Fetch-Site` send `Origin` with unsafe methods; other programs send
/// neither.
pub fn is_same_origin(request: &Request) -> bool {
    let headers = request.headers();
    if let Some(site) = headers.get(FETCH_SITE) {
        return site == "same-origin" || site == "none";
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        return true;
    };
    let origin = origin.to_str().ok().and_then(|text| text.split_once("://"));
    let authority = request.uri().authority().map(Authority::as_str);
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let (Some((_, origin)), Some(own)) = (origin, authority.or(host)) else {
        return false;
    };
    origin.eq_ignore_ascii_case(own)
}
