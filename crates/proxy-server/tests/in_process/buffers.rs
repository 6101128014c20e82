//! Bodies that are buffered whole before they are forwarded.

use crate::support::{Config, post, reason, refusal, request};
use proxy_testkit::{Upstream, get};

fn held(upstream: &Upstream, policy: &str, limits: &str) -> Config {
    Config::through(upstream, policy).top(&format!("limits {{ {limits} }}"))
}

#[test]
fn a_buffered_request_reaches_its_target_whole() {
    let upstream = Upstream::echo();
    let proxyd = held(
        &upstream,
        "buffer-requests #true",
        "max-body-buffer-bytes 100",
    )
    .start();
    let mut client = proxyd.connect();
    let head = "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n";

    client.send(request("POST /", head, ""));
    assert_eq!(client.head().status, 100);
    client.send("5\r\nfirst\r\n");
    crate::support::pause(&mut client, 200);
    assert_eq!(upstream.connections(), 0, "the target is not asked yet");
    client.send("7\r\n second\r\n0\r\n\r\n");

    assert_eq!(client.response().text(), "first second");
    let seen = upstream.last_request();
    assert_eq!(seen.fields.get("content-length"), Some("12"));
    assert_eq!(seen.fields.get("transfer-encoding"), None);
    assert_eq!(
        client.ask(post("/", "told its length")).text(),
        "told its length"
    );
    assert_eq!(client.ask(post("/", "")).text(), "");
    assert_eq!(client.ask(get("/", &[])).text(), "");
}

#[test]
fn requests_that_are_buffered_together_go_to_targets_in_turn() {
    let targets = [Upstream::echo(), Upstream::echo()];
    let [first, second] = targets.each_ref().map(Upstream::address);
    let proxyd = Config::new()
        .route("all", "upstream \"u\"; policies { buffer-requests #true }")
        .upstream("u", &format!("target \"{first}\"; target \"{second}\""))
        .start();
    let mut clients: Vec<_> = (0..4).map(|_| proxyd.connect()).collect();
    for client in &mut clients {
        let head = "Content-Length: 4\r\nExpect: 100-continue\r\n";
        client.send(request("POST /", head, ""));
        assert_eq!(client.head().status, 100);
    }

    for client in &mut clients {
        client.send("body");
        assert_eq!(client.response().text(), "body");
    }

    for target in &targets {
        assert_eq!(target.requests().len(), 2);
    }
}

#[test]
fn a_buffered_request_keeps_its_trailers() {
    let upstream = Upstream::echo();
    let proxyd = held(
        &upstream,
        "buffer-requests #true",
        "max-body-buffer-bytes 100",
    )
    .start();
    let head = "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n";
    let body = "4\r\nbody\r\n0\r\nX-Sum: 7\r\n\r\n";

    let response = proxyd.connect().ask(request("POST /", head, body));

    assert_eq!(response.text(), "body");
    assert_eq!(upstream.last_request().trailers.get("x-sum"), Some("7"));
}

#[test]
fn a_body_larger_than_the_buffer_is_refused_or_passed_on() {
    let upstream = Upstream::echo();
    let both = "buffer-requests #true; buffer-responses #true";
    let proxyd = held(&upstream, both, "max-body-buffer-bytes 10").start();
    assert_eq!(
        proxyd.connect().ask(post("/", "ten bytes!")).text(),
        "ten bytes!"
    );
    let chunked = "6\r\nsix by\r\n5\r\ntes 5\r\n";
    for text in [
        request(
            "POST /",
            "Content-Length: 11\r\nExpect: 100-continue\r\n",
            "",
        ),
        request("POST /", "Transfer-Encoding: chunked\r\n", chunked),
    ] {
        let response = proxyd.connect().ask(text);

        let message = refusal(&response, 413, "LIMIT_EXCEEDED");
        let error_message = "Limit exceeded: buffer_size - Current value 11 exceeds limit 10";
        assert_eq!(message, error_message);
        assert_eq!(reason(&proxyd, &response), "buffer_size_limit");
        let record = proxyd.limit_record(&response.correlation_id());
        assert_eq!(record.text("level"), "WARN");
        assert_eq!(record.text("limit_type"), "buffer_size");
        assert_eq!(record.text("setting"), "limits.max-body-buffer-bytes");
        assert_eq!(
            (record.number("limit"), record.number("actual")),
            (Some(10.0), Some(11.0))
        );
    }
    assert_eq!(upstream.requests().len(), 1);
    // The limit on buffered request bodies does not fail a response.
    let large = Upstream::saying(&"x".repeat(5_000));
    let proxyd = held(&large, "buffer-responses #true", "max-body-buffer-bytes 10").start();
    let response = proxyd.connect().ask(get("/", &[]));
    assert_eq!((response.status, response.text().len()), (200, 5_000));
}

#[test]
fn a_truncated_buffered_response_is_answered_502() {
    let upstream = Upstream::start(|served| {
        if served.request().is_some() {
            served.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
        }
    });
    let proxyd = held(
        &upstream,
        "buffer-responses #true",
        "max-body-buffer-bytes 100",
    )
    .start();

    let response = proxyd.connect().ask(get("/", &[]));

    refusal(&response, 502, "RESPONSE_VALIDATION");
    assert_eq!(reason(&proxyd, &response), "response_truncated");
}

#[test]
fn a_buffered_response_has_a_length() {
    let body =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n";
    let upstream = Upstream::answering(body);
    let proxyd = held(&upstream, "buffer-responses #true", "").start();

    let response = proxyd.connect().ask(get("/", &[]));

    assert_eq!(response.fields.get("content-length"), Some("5"));
    assert_eq!(response.text(), "abcde");
}

#[test]
fn an_event_stream_is_not_held_back() {
    let upstream = Upstream::start(|served| {
        if served.request().is_some() {
            served.send(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\
                 Transfer-Encoding: chunked\r\n\r\n7\r\ndata: 1\r\n",
            );
            served.end();
        }
    });
    let proxyd = held(&upstream, "buffer-responses #true", "").start();
    let mut client = proxyd.connect();

    client.send(get("/", &[]));

    assert_eq!(client.head().status, 200);
    assert_eq!(client.exactly(3).unwrap(), b"7\r\n");
}

#[test]
fn a_client_that_leaves_while_its_body_is_read_is_not_a_failure_of_the_target() {
    let upstream = Upstream::echo();
    let proxyd = held(&upstream, "buffer-requests #true", "").start();
    let mut client = proxyd.connect();
    client.send(request(
        "POST /",
        "Content-Length: 9\r\nX-Correlation-Id: left\r\n",
        "half",
    ));
    client.finish();

    let record = proxyd.access_record("left");

    assert_eq!(record.number("status"), Some(499.0));
    assert_eq!(record.number("bytes_in"), Some(4.0));
    assert_eq!(upstream.connections(), 0);
}
