//! Several requests on one client connection.

use crate::support::{Config, METRICS, metric, pause, post, request, target};
use proxy_testkit::{Broken, End, Gate, Upstream, Wire, closed_port, get, ok};

fn saying_the_target() -> Upstream {
    Upstream::start(|served| {
        while let Some(request) = served.request() {
            served.send(ok(request.target));
        }
    })
}

#[test]
fn a_connection_serves_request_after_request() {
    let upstream = saying_the_target();
    let config = Config::to(&upstream).listener(r#"protocol "http""#);
    let proxyd = config.start();
    let mut client = proxyd.connect();

    for number in 0..50 {
        let path = format!("/{number}");
        assert_eq!(client.ask(get(&path, &[])).text(), path);
    }
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn a_client_that_wants_to_close_is_closed_after_its_answer() {
    let upstream = Upstream::saying("bye");
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    let response = client.ask(get("/", &[("Connection", "close")]));

    assert_eq!(response.text(), "bye");
    assert_eq!(response.fields.get("connection"), Some("close"));
    assert_eq!(client.end(), End::Closed);
}

#[test]
fn connection_close_is_read_in_any_line() {
    let upstream = saying_the_target();
    let proxyd = Config::to(&upstream).start();
    for fields in [
        "Connection: close\r\nConnection: keep-alive\r\n",
        "Connection: keep-alive\r\nConnection: close\r\n",
    ] {
        let mut client = proxyd.connect();
        let response = client.ask(request("GET /", fields, ""));
        assert_eq!(response.fields.get("connection"), Some("close"));
        assert_eq!(client.end(), End::Closed);
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let upstream = saying_the_target();
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    let mut text = Vec::new();
    for number in 0..20 {
        text.extend(get(&format!("/{number}"), &[]));
    }
    client.send(text);

    for number in 0..20 {
        assert_eq!(client.response().text(), format!("/{number}"));
    }
}

#[test]
fn pipelined_requests_with_bodies_are_kept_apart() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    let chunked = "Transfer-Encoding: chunked\r\n";
    let text = [
        post("/", "first"),
        request("POST /", chunked, "6\r\nsecond\r\n0\r\n\r\n"),
        post("/", ""),
        post("/", "GET / HTTP/1.1\r\nHost: evil\r\n\r\n"),
        post("/", "last"),
    ];
    client.send(text.concat());

    for body in [
        "first",
        "second",
        "",
        "GET / HTTP/1.1\r\nHost: evil\r\n\r\n",
        "last",
    ] {
        assert_eq!(client.response().text(), body);
    }
    assert_eq!(upstream.requests().len(), 5);
}

#[test]
fn requests_before_a_broken_one_are_answered_first() {
    let gate = Gate::new();
    let wait = gate.clone();
    let upstream = Upstream::start(move |served| {
        while let Some(request) = served.request() {
            wait.wait();
            served.send(ok(request.target));
        }
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    let broken = b"GET /three HTTP/1.1\r\nHost : a\r\n\r\nGET /four HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send([get("/one", &[]), get("/two", &[]), broken.to_vec()].concat());
    upstream.wait_for_requests(1);
    gate.open();

    assert_eq!(client.response().text(), "/one");
    assert_eq!(client.response().text(), "/two");
    let refused = client.response();
    assert_eq!(
        (refused.status, refused.error_code().as_str()),
        (400, "PARSE")
    );
    client.finish();
    assert_eq!(client.end(), End::Closed);
    assert_eq!(upstream.requests().len(), 2);
}

/// A configuration with a response of the proxy itself, which is ready at once.
fn answering_itself() -> Config {
    let health = r#"matches { path "/health" }; service-type "builtin"; builtin-handler "health""#;
    Config::new().route("health", health)
}

#[test]
fn many_requests_before_a_broken_one_are_answered_first() {
    let proxyd = answering_itself().start();
    let mut client = proxyd.connect();

    let broken = b"GET / HTTP/1.1\r\nHost : a\r\n\r\n";
    client.send([get("/health", &[]).repeat(50), broken.to_vec()].concat());

    for number in 0..50 {
        assert_eq!(client.response().status, 200, "{number}");
    }
    assert_eq!(client.response().error_code(), "PARSE");
}

#[test]
fn a_used_connection_is_not_idle() {
    let proxyd = answering_itself()
        .listener("timeouts { keep-alive-ms 2000 }")
        .start();
    let mut client = proxyd.connect();

    for _ in 0..5 {
        assert_eq!(client.ask(get("/health", &[])).status, 200);
        pause(&mut client, 550);
    }

    assert_eq!(client.end(), End::Closed);
}

#[test]
fn no_pipelined_request_is_lost_when_a_timer_runs_out() {
    let proxyd = answering_itself()
        .listener("timeouts { keep-alive-ms 100 }")
        .start();

    // The timer expires repeatedly while batches are active.
    for _ in 0..3 {
        let mut client = proxyd.connect();
        let mut batches = 0;
        while batches < 300 {
            // Before a batch has reached the proxy, the connection may have rested too long.
            let sent = Wire::send(&mut client, get("/health", &[]).repeat(20));
            let Ok(first) = sent.and_then(|()| client.try_response()) else {
                client = proxyd.connect();
                continue;
            };
            assert_eq!(first.status, 200);
            for _ in 1..20 {
                assert_eq!(client.response().status, 200);
            }
            batches += 1;
        }
    }
}

#[test]
fn no_request_after_a_closing_one_is_served() {
    let upstream = saying_the_target();
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    let text = [get("/one", &[("Connection", "close")]), get("/two", &[])].concat();
    client.send(text);

    assert_eq!(client.response().text(), "/one");
    client.finish();
    let _ = client.end();
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn empty_lines_do_not_keep_a_connection() {
    let upstream = saying_the_target();
    let config = Config::to(&upstream).listener("timeouts { keep-alive-ms 600 }");
    let proxyd = config.start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/", &[])).status, 200);

    // One tick in time to wake the connection, one while it is awake, and again.
    client.set_response_timeout(std::time::Duration::from_millis(450));
    let mut lines = 0;
    while let Err(Broken::Silent) = client.peek() {
        lines += 1;
        assert!(lines < 10, "{lines} empty lines were taken");
        client.send("\r\n");
    }
}

#[test]
fn empty_lines_before_a_request_are_ignored() {
    let upstream = saying_the_target();
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    client.send("\r\n");
    assert_eq!(client.ask(get("/one", &[])).text(), "/one");
    client.send("\r\n");
    assert_eq!(client.ask(get("/two", &[])).text(), "/two");
}

#[test]
fn a_rested_connection_serves_on() {
    let upstream = saying_the_target();
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/one", &[])).text(), "/one");

    // Long enough for the connection to hibernate and free its buffers.
    client.set_response_timeout(std::time::Duration::from_millis(2500));
    assert!(client.peek().is_err());

    client.set_response_timeout(proxy_testkit::EVENT_TIMEOUT);
    assert_eq!(client.ask(get("/two", &[])).text(), "/two");
    client.send("GET /three HTTP/1.1\r\nHo");
    assert_eq!(client.ask("st: a.test\r\n\r\n").text(), "/three");
}

#[test]
fn a_head_in_single_bytes_is_understood() {
    let upstream = saying_the_target();
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for byte in get("/drip", &[("X-A", "b")]) {
        client.send([byte]);
    }

    assert_eq!(client.response().text(), "/drip");
}

#[test]
fn an_early_answer_to_an_upload_announces_the_close() {
    // The upstream does not wait for the body.
    let upstream =
        Upstream::start(|served| while served.head().is_some() && served.send(ok("hello")) {});
    let proxyd = Config::new()
        .route("dead", r#"matches { path "/dead" }; upstream "dead""#)
        .route(
            "limited",
            r#"matches { path "/limited" }; upstream "u"
               rate-limit { requests-per-second 1; burst 1 }"#,
        )
        .route(
            "own",
            r#"matches { path "/own" }; service-type "builtin"; builtin-handler "health""#,
        )
        .upstream("u", &target(&upstream))
        .upstream("dead", &format!("target \"{}\"", closed_port()))
        .start();
    let answer = |path: &str, sent: &str| {
        let mut client = proxyd.connect();
        let head = format!("POST {path} HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\n");
        client.send(head + sent);
        (client.response(), client)
    };
    let refused = |path: &str, sent: &str| {
        // A bucket refills while a busy machine stalls.
        let mut answers = (0..100).map(|_| answer(path, sent));
        answers
            .find(|(response, _)| response.status != 200)
            .unwrap()
    };
    for (path, status) in [
        ("/dead", 502),
        ("/none", 404),
        ("/limited", 429),
        ("/own", 405),
    ] {
        let (response, mut client) = refused(path, "half ");
        assert_eq!(response.status, status, "{path}");
        assert_eq!(response.fields.get("connection"), Some("close"), "{path}");
        assert_eq!(client.end(), End::Closed, "{path}");

        let (response, mut client) = refused(path, "0123456789");
        assert_eq!(response.status, status, "{path}");
        assert!(!response.fields.has("connection"), "{path}");
        assert_eq!(client.ask(get("/none", &[])).status, 404, "{path}");
    }
}

#[test]
fn a_refusal_of_a_malformed_body_closes_the_connection() {
    let upstream = Upstream::saying("hello");
    let proxyd = Config::to(&upstream).start();
    let head = "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut client = proxyd.connect();
    let response = client.ask(format!("{head}3\r\nabcX\r\n"));

    assert_eq!(response.status, 400);
    assert_eq!(response.fields.get("connection"), Some("close"));
    assert_eq!(client.end(), End::Closed);
}

#[test]
fn an_idle_connection_is_open_once_and_not_active() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream)
        .route("metrics", &format!("priority 100; {METRICS}"))
        .start();
    let idle: Vec<_> = (0..3)
        .map(|_| {
            let mut client = proxyd.connect();
            assert_eq!(client.ask(get("/", &[])).status, 200);
            client
        })
        .collect();
    let mut asking = proxyd.connect();
    let mut value = |name: &str| metric(&mut asking, name);

    // Idle connections hibernate after two seconds.
    while value("proxy_connections_idle") < 3.0 {}

    assert!((value("proxy_connections_active") - 1.0).abs() < f64::EPSILON);
    assert!((value("proxy_open_connections") - 4.0).abs() < f64::EPSILON);
    drop(idle);
}
