//! Bodies and header fields of error responses.

use http::HeaderMap;
use proxy_errors::{Detail, Problem, Reason, ResponseForm, ServiceForm};
use serde_json::{Value, json};
use std::time::Duration;

const HOSTILE: &str = "</p><script>alert('x')</script>\" & \u{0}\n\\ \u{7f} é %";

fn hostile() -> Problem {
    Problem::new(Reason::BreakerOpen, Detail::name(HOSTILE))
}

#[test]
fn the_json_body_has_the_contracts_shape() {
    let problem = Problem::new(Reason::ConnectRefused, Detail::name("shop"));

    assert_eq!(
        problem.to_json("id-1"),
        r#"{"error":{"code":"UPSTREAM_ERROR","message":"Upstream error: shop - connection failed","correlation_id":"id-1"}}"#
    );
}

#[test]
fn retry_after_is_an_integer_and_only_there_when_it_is_known() {
    let problem = Problem::new(Reason::ClientRateLimit, Detail::None)
        .with_retry_after(Duration::from_millis(1_500));
    let body: Value = serde_json::from_str(&problem.to_json("id-1")).unwrap();

    assert_eq!(
        body,
        json!({"error": {
            "code": "RATE_LIMIT_EXCEEDED",
            "message": "Rate limit exceeded: too many requests",
            "correlation_id": "id-1",
            "retry_after": 2,
        }})
    );
}

#[test]
fn hostile_text_stays_a_json_string() {
    let body: Value = serde_json::from_str(&hostile().to_json(HOSTILE)).unwrap();

    assert_eq!(
        body["error"]["message"],
        format!("Circuit breaker open: {HOSTILE}")
    );
    assert_eq!(body["error"]["correlation_id"], HOSTILE);
}

#[test]
fn the_page_carries_status_wait_and_request_id() {
    let page = Problem::new(Reason::InFlightLimit, Detail::None)
        .with_retry_after(Duration::from_secs(7))
        .to_html("id-1");

    assert!(page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
    assert!(page.contains("<title>503 Service Unavailable</title>"));
    assert!(page.contains("<h1>503 Service Unavailable</h1>"));
    assert!(page.contains("try again in 7 seconds"));
    assert!(page.contains("<code>id-1</code>"));
    assert!(!page.contains("http") && !page.contains("src="));
}

#[test]
fn hostile_text_stays_text_on_the_page() {
    let page = hostile().to_html(HOSTILE);

    assert!(!page.contains("<script>"));
    assert!(!page.contains("alert('x')"));
    assert!(
        page.contains("&lt;/p&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot; &amp; ")
    );
    assert!(!page.contains('\0') && !page.contains('\u{7f}'));
}

#[test]
fn a_page_without_a_wait_does_not_speak_of_one() {
    let page = Problem::new(Reason::ClientCertificateMissing, Detail::None).to_html("id-1");

    assert!(page.contains("<h1>495 SSL Certificate Error</h1>"));
    assert!(!page.contains("try again"));
}

#[test]
fn grpc_callers_get_status_and_message_as_fields() {
    let mut headers = HeaderMap::new();
    hostile().write_grpc_headers(&mut headers);

    assert_eq!(headers["content-type"], "application/grpc");
    assert_eq!(headers["grpc-status"], "14");
    assert_eq!(
        headers["grpc-message"],
        "Circuit breaker open: </p><script>alert('x')</script>\" & %00%0A\\ %7F %C3%A9 %25"
    );
}

#[test]
fn the_route_decides_the_form_and_else_the_client() {
    let choose =
        |service, accept: &str| ResponseForm::choose(service, Some(accept.as_bytes()), None);

    assert_eq!(choose(ServiceForm::Api, "text/html"), ResponseForm::Json);
    assert_eq!(
        choose(ServiceForm::Web, "application/json"),
        ResponseForm::Html
    );
    assert_eq!(choose(ServiceForm::Unsaid, "text/html"), ResponseForm::Html);
    assert_eq!(
        ResponseForm::choose(ServiceForm::Unsaid, None, None),
        ResponseForm::Json
    );
}

#[test]
fn html_needs_a_preference_for_it() {
    let html = [
        "text/html",
        "TEXT/HTML",
        "text/*",
        "text/html, */*",
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "text/html;q=0.5, application/json;q=0.4",
        "application/json;q=0.9, text/html",
        "*/*;q=0.1, text/html;q=0.2",
        "text/html;level=\"a,b\";q=0.9, application/json;q=0.8",
    ];
    let json = [
        "",
        "*/*",
        "*/*;q=0.8",
        "application/json",
        "text/html, application/json",
        "text/html;q=0.8, application/json",
        "text/html;q=0",
        "text/html;q=0.000, */*",
        "text/html;q=2",
        "text/html;q=0.1, */*",
        "text/*;q=0.5, */*",
        "text/plain",
        "text",
        "\"text/html",
        "application/problem+json",
        "application/xml, image/*",
    ];
    for (accepts, expected) in [
        (&html[..], ResponseForm::Html),
        (&json[..], ResponseForm::Json),
    ] {
        for accept in accepts {
            let found = ResponseForm::choose(ServiceForm::Unsaid, Some(accept.as_bytes()), None);
            assert_eq!(found, expected, "{accept}");
        }
    }
}

#[test]
fn grpc_is_known_by_its_content_type() {
    let choose = |content_type: &str| {
        ResponseForm::choose(ServiceForm::Web, None, Some(content_type.as_bytes()))
    };

    for content_type in [
        "application/grpc",
        "application/grpc+proto",
        "Application/GRPC; a=b",
    ] {
        assert_eq!(choose(content_type), ResponseForm::Grpc, "{content_type}");
    }
    for content_type in [
        "application/grpc-web",
        "application/grpcx",
        "application/gr",
        "",
    ] {
        assert_eq!(choose(content_type), ResponseForm::Html, "{content_type}");
    }
}
