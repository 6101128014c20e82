//! Open connections: effects of reloads, age and number of requests.
#![expect(clippy::disallowed_methods, reason = "tests measure")]

use crate::support::Config;
use proxy_testkit::{End, Gate, Reload, Upstream, get};
use std::time::{Duration, Instant};

/// Settings that apply from the accept of a connection on: before and after a reload.
const TIGHTENED: [(&str, &str, &str); 4] = [
    (r#"trusted-proxies "127.0.0.1""#, "", ""),
    ("", "timeouts { header-secs 5 }", ""),
    ("", "timeouts { keep-alive-secs 20 }", ""),
    ("", "", "limits { max-header-count 20 }"),
];

#[test]
fn a_reload_that_tightens_a_listener_reaches_idle_connections() {
    let upstream = Upstream::saying("");
    for (before, after, limits) in TIGHTENED {
        let proxyd = Config::to(&upstream).listener(before).start();
        let mut used = proxyd.connect();
        let _ = used.ask(get("/", &[]));
        let mut reused = proxyd.connect();
        let _ = reused.ask(get("/", &[]));
        let _ = reused.ask(get("/", &[]));

        let tightened = Config::to(&upstream).listener(after).top(limits).kdl();
        assert_eq!(proxyd.reload(&tightened), Reload::Applied);

        for client in [&mut used, &mut reused] {
            client.set_response_timeout(Duration::from_secs(5));
            assert!(client.peek().is_err());
            assert_eq!(
                client.end(),
                End::Closed,
                "{before:?} to {after:?} {limits:?}"
            );
        }
    }
}

#[test]
fn a_request_on_an_idle_connection_at_a_reload_is_answered() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();
    let mut clients = [1, 2].map(|requests| {
        let mut client = proxyd.connect();
        for _ in 0..requests {
            let _ = client.ask(get("/", &[]));
        }
        client
    });

    let before = Instant::now();
    let changed = Config::to(&upstream).listener("timeouts { keep-alive-secs 20 }");
    assert_eq!(proxyd.reload(&changed.kdl()), Reload::Applied);

    for client in &mut clients {
        client.send(get("/", &[]));
        let is_in_time = before.elapsed() < Duration::from_secs(1);
        match client.try_response() {
            Ok(answer) => {
                assert_eq!(answer.status, 200);
                assert_eq!(answer.fields.get("connection"), Some("close"));
            }
            Err(broken) => assert!(!is_in_time, "{broken:?}"),
        }
        assert_eq!(client.end(), End::Closed);
    }
}

#[test]
fn a_reload_that_tightens_a_listener_does_not_cut_the_current_response() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();
    client.send(get("/", &[]));
    upstream.wait_for_requests(1);

    let tightened = Config::to(&upstream).listener("timeouts { header-secs 5 }");
    assert_eq!(proxyd.reload(&tightened.kdl()), Reload::Applied);
    gate.open();

    let answer = client.response();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.fields.get("connection"), Some("close"));
    assert_eq!(client.end(), End::Closed);
}

#[test]
fn a_reload_leaves_connections_of_unchanged_listeners_open() {
    let upstream = Upstream::saying("");
    let second = |settings: &str| {
        format!(r#"listeners {{ listener "second" {{ address "127.0.0.1:0"; {settings} }} }}"#)
    };
    let with = |settings: &str| Config::to(&upstream).top(&second(settings));
    let proxyd = with("").start();
    let mut clients = [0, 1].map(|at| proxy_testkit::RawClient::connect(proxyd.addresses()[at]));
    for client in &mut clients {
        let _ = client.ask(get("/", &[]));
    }

    let changed = with("timeouts { header-secs 5 }; max-requests-per-connection 9").kdl();
    assert_eq!(proxyd.reload(&changed), Reload::Applied);

    let [first, second] = &mut clients;
    assert_eq!(second.end(), End::Closed);
    assert_eq!(first.ask(get("/", &[])).status, 200);
    assert_eq!(first.ask(get("/", &[])).fields.get("connection"), None);
}

#[test]
fn a_connection_ends_at_its_greatest_age() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "late");
    let proxyd = Config::to(&upstream)
        .listener("max-connection-age-secs 2")
        .route(
            "health",
            r#"matches { path "/health" }; service-type "builtin"; builtin-handler "health""#,
        )
        .start();
    let began = Instant::now();
    let mut idle = proxyd.connect();
    let _ = idle.ask(get("/health", &[]));
    let mut busy = proxyd.connect();
    busy.send(get("/", &[]));

    assert_eq!(idle.end(), End::Closed);
    assert!(began.elapsed() >= Duration::from_secs(2));
    // A current request is answered in time.
    let mut later = proxyd.connect();
    let _ = later.ask(get("/health", &[]));
    assert_eq!(later.end(), End::Closed);
    gate.open();
    let answer = busy.response();
    assert_eq!(answer.text(), "late");
    assert_eq!(answer.fields.get("connection"), Some("close"));
    assert_eq!(busy.end(), End::Closed);
}

#[test]
fn a_connection_ends_with_its_last_allowed_request() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream)
        .listener("max-requests-per-connection 3")
        .start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        assert_eq!(client.ask(get("/", &[])).fields.get("connection"), None);
    }
    let last = client.ask(get("/", &[]));
    assert_eq!(last.fields.get("connection"), Some("close"));
    assert_eq!(client.end(), End::Closed);
}
