//! Serves the `OpenAPI` document as JSON and as an HTML page.

use crate::reference::{STYLE, page};
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;
use std::sync::Arc;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Content security policy: no scripts, no framing, style sheets only from this server.
const POLICY: &str = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Routes `/api/v1/openapi.json` and `/api/docs`.
pub(crate) fn router(document: &Value) -> Router {
    let html: Arc<str> = page(document).into();
    let document = Bytes::from(document.to_string());
    Router::new()
        .route(
            "/api/v1/openapi.json",
            get(async move || ([(header::CONTENT_TYPE, JSON)], document.clone())),
        )
        .route(
            "/api/docs",
            get(async move || text("text/html; charset=utf-8", html.to_string())),
        )
        .route(
            "/api/docs/style.css",
            get(async || text("text/css; charset=utf-8", STYLE.to_owned())),
        )
}

fn text(kind: &'static str, text: String) -> Response {
    let mut response = text.into_response();
    let fields: [(HeaderName, &'static str); 3] = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in fields {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}
