//! Header fields of all responses, and error responses.

use crate::correlation::CORRELATION_ID;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use proxy_errors::{ErrorType, Problem};
use serde_json::Value;

const JSON_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const BEARER: HeaderValue = HeaderValue::from_static("Bearer");

/// A problem as a response extension; [`finish`] renders it.
#[derive(Clone, Debug)]
pub(crate) struct Refused(pub(crate) Problem);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(self);
        response
    }
}

/// A JSON document.
pub(crate) fn json(document: &Value) -> Response {
    json_bytes(document.to_string().into())
}

/// A JSON document in serialized form.
pub(crate) fn json_bytes(document: Bytes) -> Response {
    ([(CONTENT_TYPE, JSON_CONTENT_TYPE)], document).into_response()
}

/// Adds the fields of all responses to `response`, and the body if it is a problem.
pub(crate) fn finish(response: Response, method: &Method, id: &HeaderValue) -> Response {
    let (mut parts, mut body) = response.into_parts();
    if let Some(Refused(problem)) = parts.extensions.remove::<Refused>() {
        let told = tell(&problem, id, &mut parts.headers);
        parts.status = problem.status();
        body = if method == Method::HEAD {
            Body::empty()
        } else {
            told.into()
        };
    }
    add_common(&mut parts.headers, id);
    Response::from_parts(parts, body)
}

/// The body of an error response; its header fields are added to `headers`.
pub(crate) fn tell(problem: &Problem, id: &HeaderValue, headers: &mut HeaderMap) -> Bytes {
    let told = Bytes::from(problem.to_json(id.to_str().unwrap_or_default()));
    headers.insert(CONTENT_TYPE, JSON_CONTENT_TYPE);
    headers.insert(CONTENT_LENGTH, told.len().into());
    if let Some(seconds) = problem.retry_after_secs() {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    if problem.error_type() == ErrorType::AuthenticationFailed {
        headers.insert(WWW_AUTHENTICATE, BEARER);
    }
    told
}

pub(crate) fn add_common(headers: &mut HeaderMap, id: &HeaderValue) {
    headers.insert(CORRELATION_ID, id.clone());
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
}

/// `document` with status 200 or 503.
pub(crate) fn verdict(well: bool, document: &Value) -> Response {
    let status = if well {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, json(document)).into_response()
}
