//! Bodies and trailers, in both directions, in every framing.

use crate::support::{Config, post, refusal, request};
use proxy_testkit::{Fields, Framing, Upstream, get};

#[test]
fn a_body_of_known_length_keeps_its_length_both_ways() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream).start();

    let body = "x".repeat(100_000);
    let response = proxyd.connect().ask(post("/", &body));

    assert_eq!(response.framing, Framing::Length(100_000));
    assert_eq!(response.text(), body);
    assert_eq!(upstream.last_request().framing, Framing::Length(100_000));
}

#[test]
fn an_empty_body_stays_an_empty_body() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream).start();

    let response = proxyd.connect().ask(post("/", ""));

    assert_eq!(
        (response.status, response.framing),
        (200, Framing::Length(0))
    );
    assert_eq!(
        upstream.last_request().fields.get("content-length"),
        Some("0")
    );
}

#[test]
fn a_content_length_is_forwarded_in_canonical_form() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream).start();

    for (reported, length) in [("5", 5), ("0010", 10), ("00", 0), ("0", 0)] {
        let fields = format!("Content-Length: {reported}\r\n");
        let body = "x".repeat(length);
        let response = proxyd.connect().ask(request("POST /", &fields, &body));

        assert_eq!(response.text(), body, "{reported}");
        let fields = upstream.last_request().fields;
        assert_eq!(fields.get("content-length"), Some(&*length.to_string()));
    }
}

#[test]
fn a_request_without_a_body_is_forwarded_without_one() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    for line in ["GET /", "DELETE /", "OPTIONS /", "POST /"] {
        proxyd.connect().ask(request(line, "", ""));
    }

    for seen in upstream.requests() {
        assert!(!seen.fields.has("transfer-encoding"), "{}", seen.method);
        assert!(
            matches!(seen.framing, Framing::None | Framing::Length(0)),
            "{}",
            seen.method
        );
    }
}

#[test]
fn a_chunked_request_reaches_the_upstream_chunked() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream).start();

    let chunks = "5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\n\r\n";
    let text = request("POST /", "Transfer-Encoding: chunked\r\n", chunks);
    let response = proxyd.connect().ask(text);

    assert_eq!(response.text(), "hello world");
    let seen = upstream.last_request();
    assert!(
        matches!(seen.framing, Framing::Chunked(_)),
        "{:?}",
        seen.framing
    );
}

#[test]
fn a_get_with_a_body_keeps_it() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    let chunked = request(
        "GET /",
        "Transfer-Encoding: chunked\r\n",
        "2\r\nhi\r\n0\r\n\r\n",
    );
    assert_eq!(client.ask(chunked).text(), "hi");
    let counted = request("GET /", "Content-Length: 3\r\n", "you");
    assert_eq!(client.ask(counted).text(), "you");
}

#[test]
fn a_chunked_response_reaches_the_client_chunked() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
    );
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        let response = client.ask(get("/", &[]));
        assert!(
            matches!(response.framing, Framing::Chunked(_)),
            "{:?}",
            response.framing
        );
        assert_eq!(response.text(), "hello world");
        assert!(!response.fields.has("content-length"));
    }
}

#[test]
fn a_response_that_ends_with_its_connection_is_framed_for_the_client() {
    let upstream = Upstream::start(|served| {
        if served.request().is_some() {
            served.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end");
        }
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        let response = client.ask(get("/", &[]));
        assert!(
            matches!(response.framing, Framing::Chunked(_)),
            "{:?}",
            response.framing
        );
        assert_eq!(response.text(), "until the end");
    }
}

#[track_caller]
fn trailer(fields: &Fields, name: &str, value: &str) {
    assert_eq!(fields.get(name), Some(value), "{fields:?}");
}

#[test]
fn trailers_of_a_request_reach_the_upstream() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream).start();

    let fields = "Transfer-Encoding: chunked\r\nTrailer: X-Sum, X-Other\r\n";
    let body = "2\r\nhi\r\n0\r\nX-Sum: abc\r\nX-Other: 1\r\n\r\n";
    let response = proxyd.connect().ask(request("POST /", fields, body));

    assert_eq!(response.text(), "hi");
    let seen = upstream.last_request();
    trailer(&seen.trailers, "x-sum", "abc");
    trailer(&seen.trailers, "x-other", "1");
    assert_eq!(seen.fields.get("trailer"), Some("X-Sum, X-Other"));
}

#[test]
fn trailers_are_announced_only_where_they_may_follow() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream).start();

    for (fields, body, announced) in [
        (
            "Transfer-Encoding: chunked\r\n",
            "2\r\nhi\r\n0\r\n\r\n",
            Some("X-Sum"),
        ),
        ("Content-Length: 2\r\n", "hi", None),
        ("", "", None),
    ] {
        let fields = format!("{fields}Trailer: X-Sum\r\n");
        let response = proxyd.connect().ask(request("POST /", &fields, body));
        assert_eq!(response.status, 200);
        let seen = upstream.last_request();
        assert_eq!(seen.fields.get("trailer"), announced, "{fields}");
    }
}

#[test]
fn trailers_of_a_request_cannot_carry_credentials() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream).start();

    let body = "2\r\nhi\r\n0\r\nX-Forwarded-For: 10.0.0.1\r\nAuthorization: Basic x\r\n\
                X-Correlation-Id: forged\r\nX-Sum: abc\r\n\r\n";
    let text = request("POST /", "Transfer-Encoding: chunked\r\n", body);
    assert_eq!(proxyd.connect().ask(text).text(), "hi");
    let seen = upstream.last_request();
    trailer(&seen.trailers, "x-sum", "abc");
    for forged in ["x-forwarded-for", "authorization", "x-correlation-id"] {
        assert_eq!(seen.trailers.get(forged), None, "{forged}");
    }
}

#[test]
fn a_head_request_that_asks_to_switch_is_answered_as_one() {
    let upstream = Upstream::start(|served| {
        while let Some(request) = served.request() {
            let is_head = request.method == "HEAD";
            let body = if is_head { "" } else { "hello" };
            served.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{body}"
            ));
        }
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        let fields = "Connection: upgrade\r\nUpgrade: websocket\r\n";
        client.send(request("HEAD /", fields, ""));
        assert_eq!(client.response_to_head().status, 200);
    }
    assert_eq!(client.ask(get("/", &[])).text(), "hello");
    // No request was dropped for a body that never arrived.
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn trailers_of_a_response_reach_a_client_that_takes_them() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
         2\r\nhi\r\n0\r\nX-Sum: abc\r\n\r\n",
    );
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        let response = client.ask(get("/", &[("TE", "trailers"), ("Connection", "TE")]));
        assert_eq!(response.text(), "hi");
        trailer(&response.trailers, "x-sum", "abc");
        assert_eq!(response.fields.get("trailer"), Some("X-Sum"));
    }
}

#[test]
fn trailers_that_would_change_the_framing_are_refused() {
    let upstream = Upstream::start(|served| {
        served.head();
        served.end();
    });
    let proxyd = Config::to(&upstream).start();

    for name in ["Content-Length", "Transfer-Encoding", "Host"] {
        let body = format!("2\r\nhi\r\n0\r\n{name}: 5\r\n\r\n");
        let text = request("POST /", "Transfer-Encoding: chunked\r\n", &body);
        let response = proxyd.connect().ask(text);

        refusal(&response, 400, "PARSE");
        assert_eq!(
            crate::support::reason(&proxyd, &response),
            "bad_trailer",
            "{name}"
        );
    }
}

#[test]
fn the_answer_to_head_keeps_its_length_and_has_no_body() {
    let upstream = Upstream::start(|served| {
        while let Some(request) = served.request() {
            let body = if request.method == "HEAD" {
                ""
            } else {
                "hello"
            };
            served.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{body}"
            ));
        }
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    client.send(request("HEAD /", "", ""));
    let head = client.response_to_head();
    assert_eq!(
        (head.status, head.fields.get("content-length")),
        (200, Some("5"))
    );
    assert_eq!(client.ask(get("/", &[])).text(), "hello");
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn a_chunked_answer_to_head_has_no_body_either() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        client.send(request("HEAD /", "", ""));
        assert_eq!(client.response_to_head().status, 200);
    }
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn answers_that_never_have_a_body_have_none() {
    for answer in [
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        let upstream = Upstream::answering(answer);
        let proxyd = Config::to(&upstream).start();
        let mut client = proxyd.connect();

        for _ in 0..2 {
            let response = client.ask(get("/", &[]));
            assert!([204, 304].contains(&response.status));
            assert!(response.body.is_empty());
        }
        assert_eq!(upstream.connections(), 1, "{answer}");
    }
}

#[test]
fn a_body_after_204_is_not_forwarded() {
    let upstream = Upstream::start(|served| {
        if served.request().is_some() {
            served.send("HTTP/1.1 204 No Content\r\n\r\nsurplus");
            served.end();
        }
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        let response = client.ask(get("/", &[]));
        assert_eq!(response.status, 204);
    }
}
