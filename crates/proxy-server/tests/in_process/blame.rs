//! Attribution of failures: breakers and outlier detection count only failures of the target.
#![expect(clippy::disallowed_methods, reason = "a test waits until a deadline")]

use crate::support::{Config, Proxy, post, reason, request};
use proxy_testkit::{EVENT_TIMEOUT, Gate, RawClient, Upstream, get, ok};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One failure is enough.
const STRICT: &str = "circuit-breaker { failure-threshold 1; timeout-seconds 60 }";

/// Answers a GET at once and reads the head of any other request, after which it waits for the
/// gate. `/` fails while `ill` is true.
fn upstream(ill: &Arc<AtomicBool>, gate: &Gate) -> Upstream {
    let (ill, gate) = (Arc::clone(ill), gate.clone());
    Upstream::start(move |served| {
        while let Some(mut head) = served.head() {
            if head.method != "GET" {
                if served.body(&mut head).is_none() {
                    return;
                }
            } else if head.target == "/hold" {
                gate.wait();
            }
            if ill.load(Ordering::Relaxed) {
                served.send("HTTP/1.1 500 Ill\r\nContent-Length: 0\r\n\r\n");
            } else {
                served.send(ok("well"));
            }
        }
    })
}

fn healthy() -> (Upstream, Gate) {
    let gate = Gate::new();
    (upstream(&Arc::new(AtomicBool::new(false)), &gate), gate)
}

fn started(upstream: &Upstream, route: &str) -> Proxy {
    let target = upstream.address();
    let outliers = "outlier-detection { consecutive-failures 1; max-ejected-percent 100 }";
    Config::new()
        .route("all", &format!("upstream \"u\"; {route}"))
        .upstream("u", &format!("target \"{target}\"; {outliers}"))
        .start()
}

/// A connection with the beginning of a request. The rest of its body is not sent.
fn beginning(proxy: &Proxy) -> RawClient {
    let mut client = proxy.connect();
    client.send(request("POST /", "Content-Length: 10\r\n", "begin"));
    client
}

/// A connection with such a request, which the proxy has not refused: the breaker is half-open.
fn admitted(proxy: &Proxy, upstream: &Upstream) -> RawClient {
    let end = Instant::now() + EVENT_TIMEOUT;
    loop {
        let seen = upstream.requests().len();
        let mut client = beginning(proxy);
        client.set_response_timeout(Duration::from_millis(20));
        while client.peek().is_err() {
            if seen < upstream.requests().len() {
                client.set_response_timeout(EVENT_TIMEOUT);
                return client;
            }
            assert!(Instant::now() < end, "neither admitted nor refused");
        }
    }
}

#[test]
fn a_slow_upload_that_ends_in_the_request_timeout_counts_nothing() {
    let (upstream, _gate) = healthy();
    let policies = "policies { timeouts { request-ms 300 } }";
    let proxy = started(&upstream, &format!("{STRICT}; {policies}"));
    for _ in 0..3 {
        let response = beginning(&proxy).response();
        assert_eq!(reason(&proxy, &response), "request_timeout");
    }

    assert_eq!(proxy.connect().ask(get("/", &[])).text(), "well");
}

#[test]
fn a_target_that_uses_up_the_time_of_the_route_opens_the_breaker() {
    let (upstream, gate) = healthy();
    let policies = "policies { timeouts { request-ms 3000 } }";
    let proxy = Config::through(&upstream, &format!("{STRICT}; {policies}")).start();

    let late = proxy.connect().ask(get("/hold", &[]));
    assert_eq!(reason(&proxy, &late), "request_timeout");

    let refused = proxy.connect().ask(get("/", &[]));
    assert_eq!(reason(&proxy, &refused), "breaker_open");
    gate.open();
}

#[test]
fn a_target_that_ends_a_slow_upload_counts_nothing() {
    let upstream = Upstream::start(|served| {
        while let Some(head) = served.head() {
            if head.method != "GET" {
                return;
            }
            served.send(ok("well"));
        }
    });
    let proxy = started(&upstream, STRICT);

    let mut slow = beginning(&proxy);
    assert_eq!(slow.response().status, 502);

    assert_eq!(proxy.connect().ask(get("/", &[])).text(), "well");
    // After a complete request, the target is at fault.
    assert_eq!(proxy.connect().ask(post("/", "order")).status, 502);
    let refused = proxy.connect().ask(get("/", &[]));
    assert_eq!(refused.status, 503);
}

/// Answers `/whole` whole, `/events` with an endless stream that breaks off, and all else with half
/// a body.
fn breaking_off() -> Upstream {
    Upstream::start(|served| {
        while let Some(head) = served.head() {
            if head.target == "/whole" {
                served.send(ok("well"));
                continue;
            }
            let media_type = if head.target == "/events" {
                "text/event-stream"
            } else {
                "text/plain"
            };
            served.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: 100000\r\n\r\nhalf"
            ));
            return;
        }
    })
}

#[test]
fn a_truncated_response_is_a_failure_of_its_target() {
    for path in ["/half", "/events"] {
        let upstream = breaking_off();
        let proxy = started(&upstream, STRICT);
        assert_eq!(proxy.connect().ask(get("/whole", &[])).text(), "well");

        let mut client = proxy.connect();
        client.send(get(path, &[]));
        assert_eq!(client.head().status, 200);
        let rest = client.rest();
        assert!(rest.is_ok(), "{rest:?}");

        // The breaker is open and the target ejected once the body has failed.
        assert_eq!(
            proxy.connect().ask(get("/whole", &[])).status,
            503,
            "{path}"
        );
    }
}

#[test]
fn two_truncated_responses_are_two_failures_in_a_row() {
    let upstream = breaking_off();
    let breaker = "circuit-breaker { failure-threshold 2; timeout-seconds 60 }";
    let proxy = Config::through(&upstream, breaker).start();
    for _ in 0..2 {
        let mut client = proxy.connect();
        client.send(get("/half", &[]));
        assert_eq!(client.head().status, 200);
        let rest = client.rest();
        assert!(rest.is_ok(), "{rest:?}");
    }

    let refused = proxy.connect().ask(get("/whole", &[]));
    assert_eq!(reason(&proxy, &refused), "breaker_open");
}

#[test]
fn a_slow_upload_does_not_hold_the_place_of_a_probe() {
    let (ill, gate) = (Arc::new(AtomicBool::new(true)), Gate::new());
    let upstream = upstream(&ill, &gate);
    let breaker = "circuit-breaker { failure-threshold 1; timeout-ms 100; success-threshold 2 }";
    let proxy = Config::through(&upstream, breaker).start();
    let mut client = proxy.connect();
    assert_eq!(client.ask(get("/", &[])).status, 500);
    ill.store(false, Ordering::Relaxed);

    let mut slow = admitted(&proxy, &upstream);

    // The proxy notices a moment later that the client stalls.
    let end = Instant::now() + EVENT_TIMEOUT;
    while client.ask(get("/", &[])).status != 200 {
        assert!(Instant::now() < end, "the slow upload holds the place");
    }
    slow.send("whole");
    assert_eq!(slow.response().status, 200);
}

#[test]
fn a_body_that_is_read_ahead_holds_no_place_of_a_probe() {
    let (ill, gate) = (Arc::new(AtomicBool::new(true)), Gate::new());
    let upstream = upstream(&ill, &gate);
    let settings = "timeout-ms 100; half-open-max-requests 2; success-threshold 9";
    let breaker = format!("circuit-breaker {{ failure-threshold 1; {settings} }}");
    let route = format!("{breaker}; policies {{ buffer-requests #true }}");
    let proxy = Config::through(&upstream, &route).start();
    let mut client = proxy.connect();
    assert_eq!(client.ask(get("/", &[])).status, 500);
    ill.store(false, Ordering::Relaxed);
    let end = Instant::now() + EVENT_TIMEOUT;
    while client.ask(get("/", &[])).status != 200 {
        assert!(
            Instant::now() < end,
            "the breaker does not become half-open"
        );
    }

    let mut slow = [beginning(&proxy), beginning(&proxy)];

    for _ in 0..5 {
        assert_eq!(client.ask(get("/", &[])).status, 200);
    }
    for client in &mut slow {
        client.send("whole");
        assert_eq!(client.response().status, 200);
    }
}
