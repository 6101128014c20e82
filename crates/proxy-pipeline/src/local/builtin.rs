//! Responses of the built-in handlers.

use crate::exchange::Exchange;
use crate::response::local_reply::Answer;
use http::header::ACCEPT;
use http::{HeaderValue, Method, StatusCode};
use proxy_errors::{Detail, Problem, Reason};
use proxy_model::BuiltinHandler;
use proxy_telemetry::Format;

const JSON_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/json");
const HTML_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const WELCOME_PAGE: &str = include_str!("welcome.html");

/// The document of `handler`; only GET and HEAD are allowed.
pub(crate) fn answer(handler: BuiltinHandler, exchange: &Exchange) -> Result<Answer, Problem> {
    if handler == BuiltinHandler::NotFound {
        return Err(Problem::new(Reason::RouteNotFound, Detail::None));
    }
    let head = &exchange.head;
    if head.method != Method::GET && head.method != Method::HEAD {
        return Err(Problem::new(Reason::MethodNotAllowed, Detail::None));
    }
    let worker = exchange.worker();
    let lifecycle = &worker.shared.lifecycle;
    let (status, content_type, body) = match handler {
        BuiltinHandler::Health => (
            StatusCode::OK,
            JSON_CONTENT_TYPE,
            lifecycle.health().to_string(),
        ),
        BuiltinHandler::Status => (
            StatusCode::OK,
            JSON_CONTENT_TYPE,
            lifecycle.status().to_string(),
        ),
        BuiltinHandler::Ready => {
            let (ready, body) = lifecycle.readiness();
            let status = if ready {
                StatusCode::OK
            } else {
                StatusCode::SERVICE_UNAVAILABLE
            };
            (status, JSON_CONTENT_TYPE, body.to_string())
        }
        BuiltinHandler::Metrics => {
            let accept = head
                .headers
                .as_map()
                .get(ACCEPT)
                .and_then(|value| value.to_str().ok());
            let format = Format::accepted(accept.unwrap_or_default());
            let content_type = HeaderValue::from_static(format.content_type());
            (StatusCode::OK, content_type, lifecycle.metrics(format))
        }
        BuiltinHandler::Welcome | BuiltinHandler::NotFound => {
            (StatusCode::OK, HTML_CONTENT_TYPE, WELCOME_PAGE.to_owned())
        }
    };
    Ok(Answer {
        status,
        content_type: Some(content_type),
        body: body.into(),
    })
}
