//! Requests as texts, and expected responses.

use crate::client::RawClient;
use crate::deadline::EVENT_TIMEOUT;
use crate::http::message::Response;
use std::time::Duration;

/// The route of the metrics page.
pub const METRICS: &str =
    r#"matches { path "/metrics" }; service-type "builtin"; builtin-handler "metrics""#;

/// A request with this first line, field lines and body, to the host `a.test`.
#[must_use]
pub fn request(line: &str, fields: &str, body: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n{body}")
}

/// A POST with `Content-Length`.
#[must_use]
pub fn post(target: &str, body: &str) -> String {
    let length = format!("Content-Length: {}\r\n", body.len());
    request(&format!("POST {target}"), &length, body)
}

/// Asserts that `response` is an error response in JSON, and returns its message.
#[track_caller]
pub fn refusal(response: &Response, status: u16, code: &str) -> String {
    assert_eq!(response.status, status, "{}", response.text());
    assert_eq!(
        response.fields.get("content-type"),
        Some("application/json")
    );
    let body = response.json();
    let error = body.get("error").expect("an error response");
    assert_eq!(error.get("code"), Some(&code.into()), "{body}");
    let id = response.correlation_id();
    assert_eq!(error.get("correlation_id"), Some(&id.into()), "{body}");
    let message = error.get("message").and_then(|message| message.as_str());
    message.expect("a message").to_owned()
}

/// Value of the first sample on the metrics page with `name` at the beginning of its line.
#[must_use]
#[track_caller]
pub fn metric(client: &mut RawClient, name: &str) -> f64 {
    let page = client.ask(request("GET /metrics", "", "")).text();
    let line = page.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in:\n{page}"));
    let value = line.rsplit(' ').next().and_then(|value| value.parse().ok());
    value.expect("a sample has a number")
}

/// Waits briefly for bytes that do not arrive, which yields to other threads without busy waiting.
#[track_caller]
pub fn pause(client: &mut RawClient, millis: u64) {
    client.set_response_timeout(Duration::from_millis(millis));
    assert!(client.peek().is_err(), "nothing comes unasked");
    client.set_response_timeout(EVENT_TIMEOUT);
}
