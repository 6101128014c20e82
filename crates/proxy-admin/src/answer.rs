//! Common header fields of all responses, and rendering of error responses.

pub(crate) mod correlation;

use crate::answer::correlation::CORRELATION_ID;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use proxy_errors::{ErrorType, LocalReply, Problem, ResponseForm};
use serde_json::Value;

const JSON_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const BEARER: HeaderValue = HeaderValue::from_static("Bearer");
const BASIC: HeaderValue =
    HeaderValue::from_static("Basic realm=\"proxyd: the token is the password\"");

/// Response extension with the problem that [`finish`] renders.
#[derive(Clone, Debug)]
pub(crate) struct Refused(pub(crate) Problem);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(self);
        response
    }
}

pub(crate) fn json(document: &Value) -> Response {
    json_bytes(document.to_string().into())
}

/// Responds with JSON text.
pub(crate) fn json_bytes(document: Bytes) -> Response {
    ([(CONTENT_TYPE, JSON_CONTENT_TYPE)], document).into_response()
}

/// Adds the common header fields, and renders the response's problem if it has one.
pub(crate) fn finish(response: Response, method: &Method, id: &HeaderValue) -> Response {
    let (mut parts, mut body) = response.into_parts();
    if let Some(Refused(problem)) = parts.extensions.remove::<Refused>() {
        let reply = local_reply(&problem, id);
        parts.status = reply.status;
        parts.headers.extend(reply.headers);
        parts
            .headers
            .insert(CONTENT_LENGTH, reply.body.len().into());
        body = if method == Method::HEAD {
            Body::empty()
        } else {
            reply.body.into()
        };
    }
    add_common(&mut parts.headers, id);
    Response::from_parts(parts, body)
}

/// Renders `problem` without the common header fields.
pub(crate) fn local_reply(problem: &Problem, id: &HeaderValue) -> LocalReply {
    let mut reply = LocalReply::new(problem, ResponseForm::Json, id);
    if problem.error_type() == ErrorType::AuthenticationFailed {
        reply.headers.insert(WWW_AUTHENTICATE, BEARER);
    }
    reply
}

/// Adds a Basic challenge to a response that refuses the token, so that browsers ask for the
/// password.
pub(crate) fn ask_browser(mut response: Response) -> Response {
    if response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().append(WWW_AUTHENTICATE, BASIC);
    }
    response
}

pub(crate) fn add_common(headers: &mut HeaderMap, id: &HeaderValue) {
    headers.insert(CORRELATION_ID, id.clone());
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
}

/// Responds with `document`: status 200 if ready, else 503.
pub(crate) fn ready_or_unavailable(is_ready: bool, document: &Value) -> Response {
    let status = if is_ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, json(document)).into_response()
}
