//! Middleware around every response: correlation ID, log line, body of failures. Below `/api` it
//! charges the rate limit even for unknown paths.

use crate::request::admission;
use crate::response::problem::{FailureForm, Problem};
use axum::body::Body;
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use control_app::{App, metric};
use control_http::{CorrelationId, RateClass, prefers_html};
use jiff::SignedDuration;
use metrics::{counter, gauge, histogram};
use std::net::SocketAddr;
use std::sync::Arc;

/// Prefix of rate-limited paths; health checks and metrics are exempt.
const INTERFACE: &str = "/api/";
/// Content type of HTML pages, which are already rendered.
const HTML: &str = "text/html; charset=utf-8";

/// Wraps all handlers and the framework's own refusals.
pub(crate) async fn answer(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = app.precise_now();
    let CorrelationId(id) = CorrelationId::from_headers(request.headers());
    request.extensions_mut().insert(CorrelationId(id.clone()));
    let seen = LoggedRequest::from_request(&request);
    let is_of_interface = request.uri().path().starts_with(INTERFACE);
    let form = if !is_of_interface && prefers_html(request.headers()) {
        FailureForm::Page
    } else {
        FailureForm::Json
    };
    let address = is_of_interface.then(|| RateClass::General.address(request.extensions()));
    let in_flight = InFlight::enter();
    let mut response = next.run(request).await;
    drop(in_flight);
    if let Some(address) = address {
        response = admission::meter(&app, &address, response).await;
    }
    if let Some(problem) = problem_of(&mut response) {
        response = problem.write(&id, response.headers(), form);
    } else if seen.is_newest(&response) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(header::CONTENT_TYPE);
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(CorrelationId::HEADER, value);
    }
    keep_apart(response.headers_mut());
    seen.record(
        &id,
        response.status(),
        app.precise_now().duration_since(started),
    );
    response
}

/// Sets `Cache-Control: no-cache, private` and `nosniff`.
fn keep_apart(headers: &mut HeaderMap) {
    let own = HeaderValue::from_static("no-cache, private");
    headers.entry(header::CACHE_CONTROL).or_insert(own);
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
}

/// The failure to write as a body; `None` if the response has a JSON or HTML body of its own.
fn problem_of(response: &mut Response) -> Option<Problem> {
    let known = response.extensions_mut().remove::<Problem>();
    let status = response.status();
    let failed = status.is_client_error() || status.is_server_error();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let has_body = kind.is_some_and(|kind| kind == "application/json" || kind == HTML);
    known.or_else(|| (failed && !has_body).then(|| Problem::from_status(status)))
}

/// Guard that counts a request in flight, even if its client disconnects.
#[derive(Debug)]
struct InFlight;

impl InFlight {
    fn enter() -> Self {
        gauge!(metric::REQUESTS_IN_FLIGHT).increment(1);
        Self
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        gauge!(metric::REQUESTS_IN_FLIGHT).decrement(1);
    }
}

/// Properties of a request for log and metrics.
#[derive(Debug)]
struct LoggedRequest {
    method: Method,
    route: String,
    client: String,
    /// Lines of `If-None-Match`.
    known_tags: Vec<HeaderValue>,
}

impl LoggedRequest {
    fn from_request(request: &Request) -> Self {
        let extensions = request.extensions();
        let route = extensions.get::<MatchedPath>().map(MatchedPath::as_str);
        let peer = extensions.get::<ConnectInfo<SocketAddr>>();
        let known_tags = request.headers().get_all(header::IF_NONE_MATCH).iter();
        Self {
            method: request.method().clone(),
            route: route.unwrap_or("none").to_owned(),
            client: peer
                .map(|ConnectInfo(peer)| peer.ip().to_string())
                .unwrap_or_default(),
            known_tags: known_tags.cloned().collect(),
        }
    }

    /// Returns true if `If-None-Match` contains the `ETag` of the response.
    fn is_newest(&self, response: &Response) -> bool {
        let is_read = matches!(self.method, Method::GET | Method::HEAD);
        let tag = response.headers().get(header::ETAG);
        let tag = tag.filter(|_| is_read && response.status() == StatusCode::OK);
        let Some(tag) = tag.and_then(|tag| tag.to_str().ok()) else {
            return false;
        };
        let lines = self.known_tags.iter().filter_map(|line| line.to_str().ok());
        let mut tags = lines.flat_map(|line| line.split(',')).map(str::trim);
        let same = |known: &str| known == "*" || known.trim_start_matches("W/") == tag;
        tags.any(same)
    }

    fn record(self, correlation_id: &str, status: StatusCode, took: SignedDuration) {
        let Self {
            method,
            route,
            client,
            known_tags: _,
        } = self;
        let duration_ms = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
        tracing::info!(
            correlation_id,
            method = method.as_str(),
            route,
            status = status.as_u16(),
            client_ip = client,
            duration_ms,
            "request"
        );
        let status = status.as_str().to_owned();
        histogram!(metric::REQUEST_DURATION, "route" => route.clone())
            .record(took.as_secs_f64().max(0.0));
        counter!(metric::REQUESTS, "route" => route, "status" => status).increment(1);
    }
}
