//! Circuit breakers: requests are refused while an upstream fails.
#![expect(clippy::disallowed_methods, reason = "a test waits until a deadline")]

use crate::support::{Config, METRICS, metric, reason, refusal, request};
use proxy_testkit::{EVENT_TIMEOUT, Gate, Proxyd, RawClient, Record, Reload, Upstream, get, ok};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Starts an upstream that responds 500 while it is `ill`, and delays requests to `/hold` until the
/// gate opens.
fn moody(ill: &Arc<AtomicBool>, gate: &Gate) -> Upstream {
    let (ill, gate) = (Arc::clone(ill), gate.clone());
    Upstream::start(move |served| {
        while let Some(request) = served.request() {
            if request.target == "/hold" {
                gate.wait();
            }
            if request.target == "/missing" {
                served.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
            } else if ill.load(Ordering::Relaxed) {
                served.send("HTTP/1.1 500 Oh No\r\nContent-Length: 0\r\n\r\n");
            } else {
                served.send(ok("well"));
            }
        }
    })
}

fn started(upstream: &Upstream, breaker: &str) -> Proxyd {
    let route = format!("circuit-breaker {{ {breaker} }}");
    Config::through(upstream, &route)
        .route("metrics", &format!("priority 100; {METRICS}"))
        .start()
}

fn state(client: &mut RawClient) -> f64 {
    metric(
        client,
        "proxy_circuit_breaker_state{component=\"u\",route=\"all\"}",
    )
}

fn statuses(client: &mut RawClient, requests: usize) -> Vec<u16> {
    let statuses = (0..requests).map(|_| client.ask(get("/", &[])).status);
    statuses.collect()
}

/// Waits until the breaker has changed to `state` this number of times. The control thread counts
/// changes with a delay.
#[track_caller]
fn wait_for_transitions(client: &mut RawClient, state: &str, count: u32) {
    let name = "proxy_circuit_breaker_transitions_total";
    let line = format!("{name}{{component=\"u\",route=\"all\",state=\"{state}\"}} {count}");
    let end = Instant::now() + EVENT_TIMEOUT;
    loop {
        let page = client.ask(request("GET /metrics", "", "")).text();
        if page.lines().any(|reported| reported == line) {
            return;
        }
        assert!(Instant::now() < end, "no {line} in:\n{page}");
    }
}

/// Sends a request that is delayed if the breaker admits it. Only the upstream can prove that,
/// because a refusal may arrive late.
fn hold(proxyd: &Proxyd, upstream: &Upstream) -> Option<RawClient> {
    let seen = upstream.requests().len();
    let mut trying = proxyd.connect();
    trying.send(get("/hold", &[]));
    trying.set_response_timeout(Duration::from_millis(20));
    let end = Instant::now() + EVENT_TIMEOUT;
    while trying.peek().is_err() {
        if seen < upstream.requests().len() {
            trying.set_response_timeout(EVENT_TIMEOUT);
            return Some(trying);
        }
        assert!(Instant::now() < end, "neither admitted nor refused");
    }
    None
}

/// Sends requests until the breaker admits one; returns its status.
fn request_until_tried(client: &mut RawClient) -> u16 {
    let end = Instant::now() + EVENT_TIMEOUT;
    loop {
        let response = client.ask(get("/", &[]));
        if response.status != 503 || end < Instant::now() {
            return response.status;
        }
    }
}

#[test]
fn a_breaker_opens_after_its_failures_and_closes_again() {
    let ill = Arc::new(AtomicBool::new(true));
    let upstream = moody(&ill, &Gate::new());
    let proxyd = started(&upstream, "failure-threshold 3; timeout-seconds 60");
    let mut client = proxyd.connect();
    assert!(state(&mut client) < 0.5);

    assert_eq!(statuses(&mut client, 3), [500; 3]);
    let response = client.ask(get("/", &[]));

    let message = refusal(&response, 503, "CIRCUIT_BREAKER_OPEN");
    assert!(message.starts_with("Circuit breaker open: "), "{message}");
    let wait: u64 = response.fields.get("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(reason(&proxyd, &response), "breaker_open");
    assert_eq!(upstream.requests().len(), 3, "the upstream is left alone");
    assert!((state(&mut client) - 1.0).abs() < 0.1);

    let proxyd = started(&upstream, "failure-threshold 3; timeout-ms 100");
    let mut client = proxyd.connect();
    assert_eq!(statuses(&mut client, 3), [500; 3]);
    // The first trial fails, and opens the breaker again.
    assert_eq!(request_until_tried(&mut client), 500);
    wait_for_transitions(&mut client, "open", 2);
    ill.store(false, Ordering::Relaxed);
    assert_eq!(request_until_tried(&mut client), 200);
    assert!(state(&mut client) < 0.5);
    assert_eq!(statuses(&mut client, 5), [200; 5]);
}

#[test]
fn an_open_breaker_is_shown_as_half_open_after_its_timeout() {
    let ill = Arc::new(AtomicBool::new(true));
    let upstream = moody(&ill, &Gate::new());
    let proxyd = started(&upstream, "failure-threshold 1; timeout-ms 100");
    let mut client = proxyd.connect();

    assert_eq!(statuses(&mut client, 1), [500]);

    let end = Instant::now() + EVENT_TIMEOUT;
    while state(&mut client) < 1.5 {
        assert!(Instant::now() < end, "the metric stays at 1");
    }
    assert_eq!(upstream.requests().len(), 1, "no request was necessary");
}

#[test]
fn changes_of_a_breaker_are_counted_and_logged() {
    let ill = Arc::new(AtomicBool::new(true));
    let upstream = moody(&ill, &Gate::new());
    let proxyd = started(&upstream, "failure-threshold 2; timeout-ms 100");
    let mut client = proxyd.connect();

    assert_eq!(statuses(&mut client, 2), [500, 500]);
    let logged = |what: &'static str| {
        let is_it = move |record: &Record| record.text("message") == what;
        proxyd.stderr().find(0, is_it)
    };
    let opened = logged("a circuit breaker has opened");
    assert_eq!(
        (opened.text("upstream"), opened.text("route")),
        ("u", "all")
    );
    ill.store(false, Ordering::Relaxed);
    assert_eq!(request_until_tried(&mut client), 200);
    let _ = logged("a circuit breaker has closed");

    for state in ["open", "half-open", "closed"] {
        wait_for_transitions(&mut client, state, 1);
    }
}

#[test]
fn a_held_response_that_breaks_is_a_failure_of_its_upstream() {
    let upstream = Upstream::start(|served| {
        if served.request().is_some() {
            served.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart");
        }
    });
    let route = "policies { buffer-responses #true }; circuit-breaker { failure-threshold 2; timeout-seconds 60 }";
    let proxyd = Config::through(&upstream, route).start();
    let mut client = proxyd.connect();

    let statuses = statuses(&mut client, 3);

    assert_eq!(statuses, [502, 502, 503]);
    assert_eq!(upstream.requests().len(), 2);
}

#[test]
fn only_failures_in_a_row_count_and_answers_below_500_are_none() {
    let ill = Arc::new(AtomicBool::new(true));
    let upstream = moody(&ill, &Gate::new());
    let proxyd = started(&upstream, "failure-threshold 3; timeout-seconds 60");
    let mut client = proxyd.connect();

    for _ in 0..4 {
        assert_eq!(statuses(&mut client, 2), [500; 2]);
        assert_eq!(client.ask(get("/missing", &[])).status, 404);
    }
    assert_eq!(statuses(&mut client, 4), [500, 500, 500, 503]);
}

#[test]
fn a_half_open_breaker_admits_the_configured_number_of_probes() {
    let ill = Arc::new(AtomicBool::new(true));
    let gate = Gate::new();
    let upstream = moody(&ill, &gate);
    let settings =
        "failure-threshold 1; timeout-ms 200; half-open-max-requests 2; success-threshold 3";
    let proxyd = started(&upstream, settings);
    let mut client = proxyd.connect();
    assert_eq!(statuses(&mut client, 1), [500]);
    ill.store(false, Ordering::Relaxed);
    let deadline = Instant::now() + EVENT_TIMEOUT;
    let mut held = Vec::new();
    // Two trials are admitted at the same time. Further requests are refused.
    while held.len() < 2 {
        assert!(Instant::now() < deadline);
        held.extend(hold(&proxyd, &upstream));
    }
    assert!((state(&mut client) - 2.0).abs() < 0.1);
    assert_eq!(statuses(&mut client, 3), [503; 3]);

    gate.open();
    for client in &mut held {
        assert_eq!(client.response().status, 200);
    }
    // After two of three successes, the breaker is still half-open. A third one closes it.
    assert!((state(&mut client) - 2.0).abs() < 0.1);
    assert_eq!(statuses(&mut client, 1), [200]);
    assert!(state(&mut client) < 0.5);
}

#[test]
fn a_client_that_disconnects_releases_its_probe_and_is_not_counted() {
    let ill = Arc::new(AtomicBool::new(true));
    let gate = Gate::new();
    let upstream = moody(&ill, &gate);
    let proxyd = started(&upstream, "failure-threshold 1; timeout-ms 200");
    let mut client = proxyd.connect();
    assert_eq!(statuses(&mut client, 1), [500]);
    ill.store(false, Ordering::Relaxed);
    let deadline = Instant::now() + EVENT_TIMEOUT;
    while hold(&proxyd, &upstream).is_none() {
        assert!(Instant::now() < deadline);
    }
    // The client of the first trial has disconnected, so another trial is admitted.
    assert_eq!(request_until_tried(&mut client), 200);
    assert!(state(&mut client) < 0.5);
    gate.open();
}

#[test]
fn a_breaker_stays_open_over_a_reload_that_keeps_its_settings() {
    let ill = Arc::new(AtomicBool::new(true));
    let upstream = moody(&ill, &Gate::new());
    let breaker = |threshold: u32| {
        let block = format!("failure-threshold {threshold}; timeout-seconds 60");
        Config::through(&upstream, &format!("circuit-breaker {{ {block} }}"))
    };
    let proxyd = breaker(1).start();
    let mut client = proxyd.connect();
    assert_eq!(statuses(&mut client, 2), [500, 503]);

    assert_eq!(proxyd.reload(&breaker(1).kdl()), Reload::Applied);
    assert_eq!(statuses(&mut client, 1), [503]);
    assert_eq!(proxyd.reload(&breaker(2).kdl()), Reload::Applied);
    assert_eq!(statuses(&mut client, 3), [500, 500, 503]);
}
