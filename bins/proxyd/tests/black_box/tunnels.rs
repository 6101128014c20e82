//! Tunnels after a protocol switch: `Upgrade`, WebSocket.

use crate::support::{Config, kernel_buffers, reason, refusal, request};
use proxy_testkit::{End, Gate, Proxyd, RawClient, Upstream, get, ok};

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\n\r\n";

fn handshake() -> String {
    request("GET /ws", UPGRADE, "")
}

/// Switches protocols on a new connection; returns the client.
#[track_caller]
fn switched(proxyd: &Proxyd) -> RawClient {
    let mut client = proxyd.connect();
    let answer = client.ask(handshake());
    assert_eq!(answer.status, 101);
    client
}

#[track_caller]
fn echoes(client: &mut RawClient, bytes: &[u8]) {
    client.send(bytes);
    assert_eq!(client.exactly(bytes.len()).unwrap(), bytes);
}

#[test]
fn a_426_names_the_protocols_that_it_requires() {
    let upstream = Upstream::start(|served| {
        while served.request().is_some() {
            served.send(
                "HTTP/1.1 426 Upgrade Required\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Content-Length: 0\r\n\r\n",
            );
        }
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        let answer = client.ask(get("/ws", &[]));

        assert_eq!(answer.status, 426);
        assert_eq!(answer.fields.get("upgrade"), Some("websocket"));
        assert_eq!(answer.fields.get("connection"), Some("upgrade"));
    }
    let mut old = proxyd.connect();
    let answer = old.ask("GET /ws HTTP/1.0\r\nHost: a.test\r\n\r\n");
    assert_eq!(answer.status, 426);
    assert!(!answer.fields.has("upgrade"));
}

#[test]
fn a_target_chooses_among_the_protocols_that_the_client_offers() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other/2\r\n\r\nhi",
        );
        served.end();
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    let offered = "Connection: Upgrade\r\nUpgrade: h2c, websocket\r\nUpgrade: other/2\r\n";
    let answer = client.ask(request("GET /ws", offered, ""));

    assert_eq!(answer.status, 101);
    assert_eq!(answer.fields.get("upgrade"), Some("other/2"));
    assert_eq!(client.exactly(2).unwrap(), b"hi");
    // HTTP/2 is not tunnelled: the target cannot choose it.
    let seen = upstream.last_request().fields;
    assert_eq!(seen.get("upgrade"), Some("websocket, other/2"));
}

#[test]
fn the_last_request_of_a_connection_may_upgrade_it() {
    let switching = Upstream::websocket();
    let proxyd = Config::to(&switching)
        .listener("max-requests-per-connection 1")
        .start();
    let mut client = proxyd.connect();

    let answer = client.ask(handshake());

    assert_eq!(answer.status, 101);
    let connection = answer.fields.get("connection").unwrap();
    assert!(connection.eq_ignore_ascii_case("upgrade"), "{connection}");

    let requiring = Upstream::start(|served| {
        while served.request().is_some() {
            served.send(
                "HTTP/1.1 426 Upgrade Required\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Upgrade: h2c\r\nContent-Length: 0\r\n\r\n",
            );
        }
    });
    let proxyd = Config::to(&requiring)
        .listener("max-requests-per-connection 1")
        .start();
    let mut client = proxyd.connect();

    let answer = client.ask(get("/ws", &[]));

    assert_eq!(answer.status, 426);
    assert_eq!(answer.fields.get("upgrade"), Some("websocket, h2c"));
    let connection = answer.fields.all("connection").join(", ").to_lowercase();
    assert!(
        connection.contains("upgrade") && connection.contains("close"),
        "{connection}"
    );
}

#[test]
fn a_handshake_passes_both_ways() {
    let upstream = Upstream::websocket();
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    let answer = client.ask(handshake());

    assert_eq!(answer.status, 101);
    assert!(
        answer
            .fields
            .get("connection")
            .unwrap()
            .eq_ignore_ascii_case("upgrade")
    );
    assert_eq!(answer.fields.get("upgrade"), Some("websocket"));
    let accept = answer.fields.get("sec-websocket-accept");
    assert_eq!(accept, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert!(answer.fields.has("x-correlation-id"));
    let seen = upstream.last_request().fields;
    assert!(
        seen.get("connection")
            .unwrap()
            .eq_ignore_ascii_case("upgrade")
    );
    assert_eq!(seen.get("upgrade"), Some("websocket"));
    assert_eq!(
        seen.get("sec-websocket-key"),
        Some("dGhlIHNhbXBsZSBub25jZQ==")
    );
    assert_eq!(seen.get("x-forwarded-for"), Some("127.0.0.1"));
}

#[test]
fn bytes_pass_both_ways_untouched() {
    let upstream = Upstream::websocket();
    let proxyd = Config::to(&upstream).start();
    let mut client = switched(&proxyd);

    echoes(&mut client, b"\x81\x05hello");
    echoes(&mut client, b"\r\n\r\nGET / HTTP/1.1\r\n\x00\xFF");
    let large: Vec<u8> = (0..300_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    for piece in large.chunks(50_000) {
        echoes(&mut client, piece);
    }
}

#[test]
fn bytes_sent_right_behind_the_handshake_are_not_lost() {
    let upstream = Upstream::websocket();
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    client.send([handshake().as_bytes(), b"\x82\x03abc"].concat());

    assert_eq!(client.response().status, 101);
    assert_eq!(client.exactly(5).unwrap(), b"\x82\x03abc");
}

#[test]
fn a_handshake_behind_many_requests_keeps_its_early_bytes() {
    let upstream = Upstream::websocket();
    let health = r#"matches { path "/health" }; service-type "builtin"; builtin-handler "health""#;
    let proxyd = Config::to(&upstream).route("health", health).start();
    let mut client = proxyd.connect();

    let early = [
        get("/health", &[]).repeat(50),
        handshake().into_bytes(),
        b"early".to_vec(),
    ];
    client.send(early.concat());

    for _ in 0..50 {
        assert_eq!(client.response().status, 200);
    }
    assert_eq!(client.response().status, 101);
    assert_eq!(client.exactly(5).unwrap(), b"early");
}

#[test]
fn bytes_sent_right_behind_the_answer_are_not_lost() {
    let upstream = Upstream::start(|served| {
        served.head();
        served.send([SWITCHED, "first"].concat());
        served.end();
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    client.send(handshake());

    assert_eq!(client.response().status, 101);
    assert_eq!(client.exactly(5).unwrap(), b"first");
}

#[test]
fn either_side_may_finish_before_the_other() {
    let upstream = Upstream::start(|served| {
        served.head();
        served.send(SWITCHED);
        let question = served.rest().unwrap().0;
        served.send([b"you said ", question.as_slice()].concat());
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = switched(&proxyd);

    client.send("all");
    client.finish();

    let (answer, end) = client.rest().unwrap();
    assert_eq!(
        (answer.as_slice(), end),
        (b"you said all".as_slice(), End::Closed)
    );
}

#[test]
fn the_end_of_the_upstream_reaches_the_client() {
    let upstream = Upstream::start(|served| {
        served.head();
        served.send([SWITCHED, "bye"].concat());
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = switched(&proxyd);

    let (last, _) = client.rest().unwrap();
    assert_eq!(last, b"bye");
}

#[test]
fn a_client_that_disappears_takes_its_upstream_connection_along() {
    let upstream = Upstream::websocket();
    let proxyd = Config::to(&upstream).start();
    let mut client = switched(&proxyd);
    echoes(&mut client, b"hi");

    client.reset();

    upstream.wait_for_ends(1);
}

#[test]
fn an_idle_upgraded_connection_is_closed() {
    let upstream = Upstream::websocket();
    let config = Config::to_with(&upstream, "timeouts { idle-ms 2000 }");
    let proxyd = config.start();
    let mut client = proxyd.connect();
    let answer = client.ask(handshake());
    client.set_response_timeout(std::time::Duration::from_millis(550));
    for _ in 0..4 {
        // 2.2 s in total: longer than the idle timeout, but the tunnel is never idle.
        assert!(client.peek().is_err());
        echoes(&mut client, b"ping");
    }
    client.set_response_timeout(proxy_testkit::EVENT_TIMEOUT);

    let (rest, _) = client.rest().unwrap();

    assert!(rest.is_empty());
    upstream.wait_for_ends(1);
    let record = proxyd.access_record(&answer.correlation_id());
    assert_eq!(record.text("reason"), "tunnel_idle_timeout");
    assert_eq!(record.number("status"), Some(101.0));
}

#[test]
fn only_the_idle_time_counts_after_the_switch() {
    let upstream = Upstream::websocket();
    let timeouts = "timeouts { request-ms 1500; read-ms 1500; connect-ms 1500; idle-secs 30 }";
    let proxyd = Config::to_with(&upstream, timeouts)
        .listener(
            "timeouts { header-ms 1500; body-idle-ms 1500; keep-alive-ms 1500; write-idle-ms 1500 }",
        )
        .start();
    let mut client = switched(&proxyd);
    client.set_response_timeout(std::time::Duration::from_millis(2_500));
    assert!(client.peek().is_err());
    client.set_response_timeout(proxy_testkit::EVENT_TIMEOUT);

    echoes(&mut client, b"still here");
}

#[test]
fn a_tunnel_is_logged_when_it_ends_with_what_it_carried() {
    let upstream = Upstream::websocket();
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();
    let answer = client.ask(handshake());
    echoes(&mut client, b"0123456789");
    client.finish();
    let _ = client.rest();

    let record = proxyd.access_record(&answer.correlation_id());

    assert_eq!(record.number("status"), Some(101.0));
    assert_eq!(record.number("bytes_in"), Some(10.0));
    assert_eq!(record.number("bytes_out"), Some(10.0));
    assert!(!record.has("reason"), "{record:?}");
}

#[test]
fn an_upstream_that_does_not_switch_answers_like_any_other() {
    let upstream = Upstream::start(|served| {
        while let Some(request) = served.request() {
            served.send(ok(request.target));
        }
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    // The next request uses HTTP.
    client.send([handshake().into_bytes(), get("/next", &[])].concat());

    assert_eq!(client.response().text(), "/ws");
    assert_eq!(client.response().text(), "/next");
}

#[test]
fn a_switch_to_another_protocol_than_asked_is_refused() {
    let upstream = Upstream::answering(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n",
    );
    let proxyd = Config::to(&upstream).start();

    let response = proxyd.connect().ask(handshake());

    refusal(&response, 502, "RESPONSE_VALIDATION");
    assert_eq!(reason(&proxyd, &response), "unasked_upgrade");
}

#[test]
fn an_upgrade_that_connection_does_not_name_is_none() {
    let upstream = Upstream::saying("plain");
    let proxyd = Config::to(&upstream).start();

    let response = proxyd.connect().ask(get("/", &[("Upgrade", "websocket")]));

    assert_eq!(response.text(), "plain");
    assert!(!upstream.last_request().fields.has("upgrade"));
}

#[test]
fn a_tunnel_slows_the_side_that_is_too_fast() {
    let gate = Gate::new();
    let wait = gate.clone();
    let upstream = Upstream::start(move |served| {
        served.head();
        served.send(SWITCHED);
        wait.wait();
        let _ = served.rest();
    });
    let proxyd = Config::to(&upstream).start();
    let before = proxyd.rss_bytes();
    let mut client = switched(&proxyd);
    client.set_response_timeout(std::time::Duration::from_millis(300));

    let mut sent = 0;
    while let Ok(count) = client.send_some(&[0; 65536]) {
        sent += count;
    }

    let held = kernel_buffers() + (8 << 20);
    assert!(sent < held, "{sent} bytes were taken");
    let grown = proxyd.peak_rss_bytes().saturating_sub(before);
    assert!(grown < 8 << 20, "grew by {grown} bytes");
    gate.open();
}

#[test]
fn a_switch_before_the_end_of_the_request_is_refused() {
    let upstream = Upstream::start(|served| {
        if served.head().is_some() {
            served.send(SWITCHED);
            // The rest of the body does not belong to the tunnel.
            let tail = served.end().unwrap_or_default();
            assert!(!tail.ends_with(b"rest!"), "{}", tail.escape_ascii());
        }
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    let fields = format!("{UPGRADE}Content-Length: 10\r\n");
    client.send(request("POST /ws", &fields, "begin"));
    let answer = client.response_to_head();

    assert_eq!(answer.status, 502, "{}", answer.text());
    assert_eq!(reason(&proxyd, &answer), "unasked_upgrade");
    client.send("rest!");
    upstream.wait_for_ends(1);
}
