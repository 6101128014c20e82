//! The form of error responses.

use crate::support::{Config, InProcess, post, refusal, request};
use proxy_testkit::{Gate, Launcher as _, Reload, Response, Upstream, closed_port, get};

fn unreachable_target(route: &str) -> Config {
    let route = format!(r#"upstream "u"; {route}"#);
    Config::new()
        .route("all", &route)
        .upstream("u", &format!("target \"{}\"", closed_port()))
}

#[track_caller]
fn is_page(response: &Response) {
    assert_eq!(
        response.fields.get("content-type"),
        Some("text/html; charset=utf-8")
    );
    let page = response.text();
    assert!(page.contains("<title>502 Bad Gateway</title>"), "{page}");
    assert!(page.contains("<h1>502 Bad Gateway</h1>"), "{page}");
    assert!(page.contains(&response.correlation_id()), "{page}");
}

#[test]
fn api_routes_send_errors_in_json_whatever_the_client_accepts() {
    let proxyd = unreachable_target(r#"service-type "api""#).start();

    let response = proxyd.connect().ask(get("/", &[("Accept", "text/html")]));

    let message = refusal(&response, 502, "UPSTREAM_ERROR");
    assert_eq!(message, "Upstream error: connection failed");
}

#[test]
fn web_routes_send_errors_as_pages_whatever_the_client_accepts() {
    let proxyd = unreachable_target(r#"service-type "web""#).start();

    let response = proxyd
        .connect()
        .ask(get("/", &[("Accept", "application/json")]));

    assert_eq!(response.status, 502);
    is_page(&response);
}

#[test]
fn other_routes_send_errors_as_pages_only_to_clients_that_prefer_them() {
    let proxyd = unreachable_target("").start();
    let mut client = proxyd.connect();

    for accept in [
        "text/html",
        "text/*",
        "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8",
    ] {
        is_page(&client.ask(get("/", &[("Accept", accept)])));
    }
    for accept in [
        "*/*",
        "application/json",
        "application/json, text/html;q=0.5",
        "text/plain",
        "application/json, text/*",
    ] {
        refusal(
            &client.ask(get("/", &[("Accept", accept)])),
            502,
            "UPSTREAM_ERROR",
        );
    }
    refusal(&client.ask(get("/", &[])), 502, "UPSTREAM_ERROR");
}

#[test]
fn a_page_shows_when_to_try_again() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let config = Config::through(&upstream, r#"service-type "web""#);
    let proxyd = config
        .top("limits { max-in-flight-requests 1; max-queued-requests 0 }")
        .start();
    let mut first = proxyd.connect();
    first.send(get("/", &[]));
    upstream.wait_for_requests(1);

    let response = proxyd.connect().ask(get("/", &[]));

    assert_eq!(response.status, 503);
    assert_eq!(response.fields.get("retry-after"), Some("1"));
    assert!(response.text().contains("1 second"), "{}", response.text());
    gate.open();
    assert_eq!(first.response().status, 200);
}

#[test]
fn a_plain_request_with_the_content_type_of_grpc_gets_the_plain_error() {
    let proxyd = unreachable_target("").start();

    let fields = "Content-Type: application/grpc+proto\r\nTE: trailers\r\nContent-Length: 0\r\n";
    for line in ["POST /pkg.Service/Do", "GET /pkg.Service/Do"] {
        let response = proxyd.connect().ask(request(line, fields, ""));

        refusal(&response, 502, "UPSTREAM_ERROR");
        assert!(!response.fields.has("grpc-status"), "{line}");
    }
}

#[test]
fn the_answer_to_head_has_the_length_and_no_body() {
    let proxyd = unreachable_target("").start();
    let mut client = proxyd.connect();

    let whole = client.ask(get("/", &[]));
    client.send(request("HEAD /", "", ""));
    let head = client.response_to_head();

    assert_eq!(head.status, 502);
    assert_eq!(
        head.fields.get("content-length"),
        whole.fields.get("content-length")
    );
    // The connection is usable for another request.
    assert_eq!(client.ask(get("/", &[])).status, 502);
}

#[test]
fn clients_learn_no_addresses_and_operators_learn_all() {
    let closed = closed_port();
    let config = Config::new().route("all", r#"upstream "u""#);
    let proxyd = config
        .upstream("u", &format!("target \"{closed}\""))
        .start();

    let response = proxyd.connect().ask(get("/", &[]));

    let message = refusal(&response, 502, "UPSTREAM_ERROR");
    assert!(!message.contains(&closed.port().to_string()) && !message.contains("refused"));
    let record = proxyd.error_record(&response.correlation_id());
    assert!(record.text("message").contains("refused"), "{record:?}");
    let record = proxyd.access_record(&response.correlation_id());
    assert_eq!(record.text("target"), closed.to_string());
}

#[test]
fn reasons_are_sent_only_where_they_are_exposed() {
    let exposing = unreachable_target("")
        .listener("expose-reasons #true")
        .start();
    let response = exposing.connect().ask(get("/", &[]));
    let reported = response.fields.get("proxy-status").unwrap();
    assert!(reported.starts_with("proxyd"), "{reported}");
    assert!(reported.contains("error=connection_refused"), "{reported}");
    assert!(reported.contains("connect_refused"), "{reported}");
    let message = refusal(&response, 502, "UPSTREAM_ERROR");
    assert_eq!(message, "Upstream error: u - connection failed");

    let silent = unreachable_target("").start();
    let response = silent.connect().ask(get("/", &[]));
    assert!(!response.fields.has("proxy-status"));
    let message = refusal(&response, 502, "UPSTREAM_ERROR");
    assert_eq!(message, "Upstream error: connection failed");
}

#[test]
fn errors_are_not_to_be_cached() {
    let proxyd = unreachable_target("").start();

    let response = proxyd.connect().ask(get("/", &[]));

    assert_eq!(response.fields.get("cache-control"), Some("no-store"));
    assert!(response.fields.has("date"));
}

#[test]
fn a_request_in_progress_keeps_its_listener_after_a_reload() {
    let gate = Gate::new();
    let opened = gate.clone();
    let upstream = Upstream::start(move |served| {
        if served.request().is_some() {
            opened.wait();
        }
    });
    let plain = Config::to(&upstream).kdl();
    let exposing =
        "listeners { listener \"exposing\" { address \"127.0.0.2:0\"; expose-reasons #true } }";
    let proxyd = InProcess::launch(&format!("{plain}\n{exposing}\n"));
    let mut client = proxyd.connect_to(1);
    client.send(post("/", "body"));
    upstream.wait_for_requests(1);

    let reordered = format!("{exposing}\n{plain}");
    assert_eq!(proxyd.reload(&reordered), Reload::Applied);
    gate.open();

    let response = client.response();
    assert_eq!(response.status, 502);
    assert!(response.fields.has("proxy-status"));
}
