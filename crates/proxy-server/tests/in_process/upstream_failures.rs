//! Failures of upstreams: the client's response, and the operator's log.

use crate::support::{Config, reason, refusal, request};
use proxy_testkit::{Broken, Gate, Upstream, closed_port, get};

fn failing(answer: &'static [u8]) -> Upstream {
    Upstream::start(move |served| {
        if served.request().is_some() {
            served.send(answer);
            served.finish();
            served.end();
        }
    })
}

#[test]
fn a_refused_connection_is_answered_502() {
    let config = Config::new().route("all", r#"upstream "u""#);
    let proxyd = config
        .upstream("u", &format!("target \"{}\"", closed_port()))
        .start();

    let response = proxyd.connect().ask(get("/", &[]));

    refusal(&response, 502, "UPSTREAM_ERROR");
    assert_eq!(reason(&proxyd, &response), "connect_refused");
    let record = proxyd.error_record(&response.correlation_id());
    assert_eq!(record.text("error_type"), "Upstream");
    assert_eq!(record.text("level"), "ERROR");
}

#[test]
fn a_connection_closed_without_an_answer_is_answered_502() {
    let upstream = failing(b"");
    let proxyd = Config::to(&upstream).start();

    let response = proxyd.connect().ask(get("/", &[]));

    refusal(&response, 502, "UPSTREAM_ERROR");
    assert_eq!(reason(&proxyd, &response), "upstream_closed_early");
}

#[test]
fn a_reset_without_an_answer_is_answered_502() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.reset();
    });
    let proxyd = Config::to(&upstream).start();

    let response = proxyd.connect().ask(get("/", &[]));

    refusal(&response, 502, "UPSTREAM_ERROR");
    assert_eq!(reason(&proxyd, &response), "upstream_reset");
}

#[test]
fn an_invalid_response_is_answered_502() {
    for (answer, logged) in [
        (&b"SSH-2.0-OpenSSH_9\r\n\r\n"[..], "bad_status_line"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "bad_status_line"),
        (
            b"HTTP/1.1 200 OK\r\nBad Name: 1\r\n\r\n",
            "bad_response_header",
        ),
        (
            b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n",
            "bad_response_header",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "response_conflicting_length",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "response_conflicting_length",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab",
            "response_bad_chunk",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "response_conflicting_length",
        ),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
            "unasked_upgrade",
        ),
    ] {
        let upstream = failing(answer);
        let proxyd = Config::to(&upstream).start();

        let response = proxyd.connect().ask(get("/", &[]));

        refusal(&response, 502, "RESPONSE_VALIDATION");
        assert_eq!(
            reason(&proxyd, &response),
            logged,
            "{}",
            answer.escape_ascii()
        );
    }
}

#[test]
fn a_truncated_response_head_is_answered_502() {
    let upstream = failing(b"HTTP/1.1 200 OK\r\nContent-Le");
    let proxyd = Config::to(&upstream).start();

    let response = proxyd.connect().ask(get("/", &[]));

    refusal(&response, 502, "UPSTREAM_ERROR");
    assert_eq!(reason(&proxyd, &response), "upstream_closed_early");
}

#[test]
fn an_enormous_response_head_is_answered_502() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.send(format!(
            "HTTP/1.1 200 OK\r\nX: {}\r\n\r\n",
            "x".repeat(200_000)
        ));
    });
    let proxyd = Config::to(&upstream).start();

    let response = proxyd.connect().ask(get("/", &[]));

    refusal(&response, 502, "RESPONSE_VALIDATION");
    assert_eq!(reason(&proxyd, &response), "upstream_header_too_large");
}

#[test]
fn the_record_of_a_malformed_request_has_the_bytes_of_the_body_alone() {
    let proxyd = Config::to(&failing(b"")).start();
    let mut client = proxyd.connect();

    client.send("GET / HTTP/1.1\r\nHost : a\r\n\r\n");
    let response = client.response();

    refusal(&response, 400, "PARSE");
    let record = proxyd.access_record(&response.correlation_id());
    let bytes = u32::try_from(response.body.len()).unwrap();
    assert_eq!(record.number("bytes_out"), Some(f64::from(bytes)));
}

#[test]
fn a_truncated_body_is_not_completed() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
    ] {
        let upstream = failing(answer);
        let proxyd = Config::to(&upstream).start();
        let mut client = proxyd.connect();

        client.send(get("/", &[]));
        let mut head = client.head();
        let broken = {
            let (bytes, _) = client.rest().unwrap();
            assert!(bytes.windows(4).any(|part| part == b"half"), "{bytes:?}");
            !bytes.ends_with(b"0\r\n\r\n")
        };

        assert!(broken && head.status == 200);
        head.body.clear();
        let record = proxyd.access_record(&head.correlation_id());
        let logged = record.text("reason");
        assert!(
            ["response_truncated", "upstream_closed_early"].contains(&logged),
            "{logged}"
        );
    }
}

#[test]
fn chunks_that_turn_bad_cut_the_response_off() {
    let gate = Gate::new();
    let begun = gate.clone();
    let upstream = Upstream::start(move |served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n");
        begun.wait();
        served.send("xyz\r\n");
        served.end();
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    client.send(get("/", &[]));
    let head = client.head();
    assert_eq!(client.exactly(9).unwrap(), b"4\r\ngood\r\n");
    gate.open();
    let (rest, _) = client.rest().unwrap();

    assert!(rest.is_empty(), "{rest:?}");
    let record = proxyd.access_record(&head.correlation_id());
    assert_eq!(record.text("reason"), "response_bad_chunk");
}

const STOLEN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen";

#[test]
fn bytes_right_after_a_response_are_never_the_next_response() {
    let upstream = Upstream::start(|served| {
        while let Some(request) = served.request() {
            let mut answer = proxy_testkit::ok(request.target);
            if served.number() == 0 {
                answer.extend(STOLEN);
            }
            served.send(answer);
        }
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for path in ["/one", "/two", "/three"] {
        assert_eq!(client.ask(get(path, &[])).text(), path);
    }
}

#[test]
fn bytes_on_an_idle_connection_are_never_the_next_response() {
    let (resting, sent) = (Gate::new(), Gate::new());
    let gates = (resting.clone(), sent.clone());
    let upstream = Upstream::start(move |served| {
        while let Some(request) = served.request() {
            served.send(proxy_testkit::ok(request.target));
            if served.number() == 0 {
                gates.0.wait();
                served.send(STOLEN);
                gates.1.open();
            }
        }
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/one", &[])).text(), "/one");

    resting.open();
    sent.wait();

    for path in ["/two", "/three"] {
        assert_eq!(client.ask(get(path, &[])).text(), path);
    }
}

#[test]
fn errors_of_the_upstream_itself_pass_unchanged() {
    let answer = "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy";
    let upstream = Upstream::answering(answer);
    let proxyd = Config::to(&upstream).start();

    let response = proxyd.connect().ask(get("/", &[]));

    assert_eq!((response.status, response.text().as_str()), (503, "busy"));
    assert_eq!(response.fields.get("retry-after"), Some("7"));
    let record = proxyd.access_record(&response.correlation_id());
    assert_eq!(record.number("status"), Some(503.0));
}

#[test]
fn an_unusual_status_and_its_words_pass_unchanged() {
    let upstream = Upstream::answering("HTTP/1.1 299 Almost Fine\r\nContent-Length: 0\r\n\r\n");
    let proxyd = Config::to(&upstream).start();

    let response = proxyd.connect().ask(get("/", &[]));

    assert_eq!(
        (response.status, response.reason.as_str()),
        (299, "Almost Fine")
    );
}

#[test]
fn an_unknown_name_is_answered_in_time() {
    let config = Config::new().route("all", r#"upstream "u""#);
    let proxyd = config
        .upstream("u", r#"target "no-such-host.invalid:80""#)
        .start();

    let response = proxyd.connect().ask(request("GET /", "", ""));

    refusal(&response, 503, "NO_HEALTHY_UPSTREAM");
}

#[test]
fn a_name_is_resolved_and_asked() {
    let upstream = Upstream::saying("by name");
    let address = format!("target \"localhost:{}\"", upstream.address().port());
    let config = Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &address);
    let proxyd = config.start();

    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "by name");
}

#[test]
fn a_client_cannot_mistake_a_cut_for_an_end() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
        served.reset();
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    client.send(get("/", &[]));

    assert!(matches!(
        client.try_response(),
        Err(Broken::Eof | Broken::Reset)
    ));
}

#[test]
fn a_name_that_cannot_be_resolved_is_reported_as_such() {
    let config = Config::new().route("all", r#"upstream "u""#);
    let proxyd = config
        .upstream("u", r#"target "no-such-name.invalid:80""#)
        .start();

    let response = proxyd.connect().ask(get("/", &[]));

    refusal(&response, 503, "NO_HEALTHY_UPSTREAM");
    assert_eq!(reason(&proxyd, &response), "dns_failed");
    let record = proxyd.error_record(&response.correlation_id());
    assert!(
        record.text("message").contains("no-such-name.invalid"),
        "{record:?}"
    );
    assert!(
        record
            .text("message")
            .starts_with("No healthy upstream: u - ")
    );
}
