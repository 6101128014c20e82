//! Regressions: defects that a review of the documentation's promises has found.

use crate::support::{Config, admin, reason, refusal, target};
use proxy_testkit::{Gate, Proxyd, RawClient, Response, Upstream, get};

const GZIP: (&str, &str) = ("Accept-Encoding", "gzip");

/// Starts an upstream with a page of 2000 bytes, this status line and these fields.
fn page(status: &str, fields: &str) -> Upstream {
    let body = "page ".repeat(400);
    Upstream::answering(format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: 2000\r\n{fields}\r\n{body}"
    ))
}

fn patch(proxyd: &Proxyd, upstream: &Upstream, body: &str) -> Response {
    let mut client = RawClient::connect(proxyd.admin_address());
    client.ask(format!(
        "PATCH /admin/upstreams/u/targets/{} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
        upstream.address(),
        body.len()
    ))
}

#[test]
fn a_number_that_exceeds_a_limit_is_more_than_it() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "done");
    for (limits, limit_type) in [
        ("max-connections-per-route 1", "connection_count"),
        (
            "max-in-flight-requests 1; max-queued-requests 0",
            "in_flight_requests",
        ),
    ] {
        let proxyd = Config::to(&upstream)
            .top(&format!("limits {{ {limits} }}"))
            .start();
        let mut first = proxyd.connect();
        first.send(get("/", &[]));
        upstream.wait_for_requests(1);

        let response = proxyd.connect().ask(get("/", &[]));

        let message = refusal(&response, 503, "LIMIT_EXCEEDED");
        let error_message =
            format!("Limit exceeded: {limit_type} - Current value 2 exceeds limit 1");
        assert_eq!(message, error_message);
        let record = proxyd.limit_record(&response.correlation_id());
        assert_eq!(
            (record.number("limit"), record.number("actual")),
            (Some(1.0), Some(2.0))
        );
    }
    gate.open();
}

#[test]
fn a_compressed_response_has_no_digest_of_other_bytes() {
    let digests = ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5"];
    let fields: String = digests
        .map(|name| format!("{name}: of-the-page\r\n"))
        .concat();
    let upstream = page("200 OK", &fields);
    let proxyd = Config::through(&upstream, "compression").start();
    let mut client = proxyd.connect();

    let compressed = client.ask(get("/", &[GZIP]));
    let whole = client.ask(get("/", &[]));

    assert_eq!(compressed.fields.get("content-encoding"), Some("gzip"));
    for digest in digests {
        assert_eq!(compressed.fields.get(digest), None);
        assert_eq!(whole.fields.get(digest), Some("of-the-page"));
    }
}

#[test]
fn a_partial_response_has_the_vary_of_the_full_one() {
    let upstream = page(
        "206 Partial Content",
        "Content-Range: bytes 0-1999/5000\r\n",
    );
    let proxyd = Config::through(&upstream, "compression").start();

    let response = proxyd.connect().ask(get("/", &[GZIP]));

    assert_eq!(response.fields.get("vary"), Some("Accept-Encoding"));
    assert_eq!(response.fields.get("content-encoding"), None);
    assert_eq!(response.body.len(), 2_000);
}

#[test]
fn a_304_has_the_fields_of_the_page_that_the_client_holds() {
    let upstream = Upstream::answering("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n");
    let proxyd = Config::through(&upstream, "compression").start();
    let mut client = proxyd.connect();
    for (held, error_message) in [
        ("\"a\", W/\"x\"", "W/\"x\""),
        ("\"x\"", "\"x\""),
        ("\"W/\"", "\"x\""),
    ] {
        let response = client.ask(get("/", &[GZIP, ("If-None-Match", held)]));

        assert_eq!(response.status, 304);
        assert_eq!(response.fields.get("etag"), Some(error_message), "{held}");
        assert_eq!(response.fields.get("vary"), Some("Accept-Encoding"));
        assert_eq!(response.fields.get("content-encoding"), None);
    }
}

#[test]
fn a_target_gets_nothing_more_once_its_change_was_answered() {
    let upstreams = ["one", "two"].map(Upstream::saying);
    let [one, two] = upstreams.each_ref().map(target);
    let proxyd = Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &format!("{one}; {two}"))
        .top("admin { address \"127.0.0.1:0\" }")
        .start();
    let mut client = proxyd.connect();
    for change in [r#"{"draining": true}"#, r#"{"weight": 0}"#].repeat(20) {
        assert_eq!(patch(&proxyd, &upstreams[0], change).status, 200);
        for _ in 0..2 {
            assert_eq!(client.ask(get("/", &[])).text(), "two", "{change}");
        }
        let back = r#"{"draining": false, "weight": 1}"#;
        assert_eq!(patch(&proxyd, &upstreams[0], back).status, 200);
        let both = [(); 2].map(|()| client.ask(get("/", &[])).text());
        assert!(both.contains(&"one".to_owned()), "{both:?}");
    }
}

#[test]
fn targets_that_an_operator_keeps_idle_are_not_called_unhealthy() {
    let upstream = Upstream::saying("one");
    let proxyd = Config::to(&upstream)
        .top("admin { address \"127.0.0.1:0\" }")
        .start();
    for change in [
        r#"{"draining": true}"#,
        r#"{"draining": false, "weight": 0}"#,
    ] {
        assert_eq!(patch(&proxyd, &upstream, change).status, 200);

        let response = proxyd.connect().ask(get("/", &[]));

        let message = refusal(&response, 503, "NO_HEALTHY_UPSTREAM");
        assert_eq!(message, "No healthy upstream: no usable target");
        assert_eq!(reason(&proxyd, &response), "no_targets");
        assert_eq!(
            admin(&proxyd, "/admin/upstreams")["upstreams"]["u"]["healthy"],
            true
        );
    }
}

#[test]
fn an_upstream_that_asks_for_no_buffering_is_not_buffered() {
    let seen = Gate::new();
    let gate = seen.clone();
    let upstream = Upstream::start(move |served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nX-Accel-Buffering: no\r\n");
        served.send("Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
        gate.wait();
        served.send("0\r\n\r\n");
    });
    let proxyd = Config::through(&upstream, "buffer-responses #true").start();
    let mut client = proxyd.connect();

    client.send(get("/", &[]));
    let mut response = client.head();
    seen.open();
    client.body(&mut response);

    assert_eq!(response.text(), "first");
}

#[test]
fn a_target_that_answers_with_5xx_has_failed_requests() {
    let upstream = page("500 Internal Server Error", "");
    let proxyd = Config::to_with(&upstream, "outlier-detection { consecutive-failures 9 }")
        .top("admin { address \"127.0.0.1:0\" }")
        .start();
    let mut client = proxyd.connect();

    for _ in 0..3 {
        assert_eq!(client.ask(get("/", &[])).status, 500);
    }

    // The client has the response shortly before the request is counted.
    let target = || admin(&proxyd, "/admin/upstreams")["upstreams"]["u"]["targets"][0].clone();
    let mut looks = (0..1_000).map(|_| target());
    let counted = looks.find(|target| target["failed_requests"] == 3);
    assert_eq!(counted.unwrap()["total_requests"], 3);
}

#[test]
fn a_connection_that_closes_after_a_body_announces_it() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream)
        .listener("timeouts { body-idle-secs 1 }")
        .start();
    for (length, status) in [(10, 408), (99_999_999, 413)] {
        let mut client = proxyd.connect();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {length}\r\n\r\nbody"
        ));

        let response = client.response();

        assert_eq!(response.status, status);
        assert_eq!(response.fields.get("connection"), Some("close"));
        assert_eq!(client.rest().unwrap().0, b"");
    }
}
