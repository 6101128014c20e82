//! Effects of settings that no other test of the real program covers.

use crate::support::{BINARY, Config, reason, refusal, target};
use proxy_testkit::{Gate, Launch, RawClient, Upstream, get};
use std::fs;

#[test]
fn the_admin_interface_asks_for_the_token_in_its_file() {
    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    let upstream = Upstream::saying("");
    let admin = r#"admin { address "127.0.0.1:0"; token-file "admin.token" }"#;
    let launch = Launch::new(BINARY, &Config::to(&upstream).top(admin).kdl());
    fs::write(launch.folder().join("admin.token"), TOKEN).unwrap();
    let proxyd = launch.start();
    let status = |fields: &[(&str, &str)]| {
        let mut client = RawClient::connect(proxyd.admin_address());
        client.ask(get("/status", fields)).status
    };

    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(status(&[]), 401);
    assert_eq!(status(&[("Authorization", &bearer)]), 200);
}

#[test]
fn an_access_log_that_is_off_writes_no_line() {
    let upstream = Upstream::saying("");
    let log = |enabled: &str| {
        let top = format!("observability {{ access-log {{ path \"a.log\"; enabled {enabled} }} }}");
        let mut proxyd = Config::to(&upstream).top(&top).start();
        let _ = proxyd.connect().ask(get("/", &[]));
        proxyd.terminate();
        assert!(proxyd.wait().success());
        fs::read_to_string(proxyd.folder().join("a.log")).unwrap_or_default()
    };

    assert_eq!(log("#true").lines().count(), 1);
    assert_eq!(log("#false"), "");
}

#[test]
fn the_short_timeouts_of_routes_and_upstreams_are_kept() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.end();
    });
    let cases = [
        (
            Config::through(&upstream, "timeout-ms 300"),
            "request_timeout",
        ),
        (
            Config::to_with(&upstream, "timeout-ms 300"),
            "response_header_timeout",
        ),
    ];
    for (config, expected) in cases {
        let proxyd = config.start();
        let response = proxyd.connect().ask(get("/", &[]));
        refusal(&response, 504, "TIMEOUT");
        assert_eq!(reason(&proxyd, &response), expected);
    }
}

#[test]
fn round_robin_shares_requests_out_evenly() {
    let upstreams = [Upstream::saying("one"), Upstream::saying("two")];
    let [one, two] = upstreams.each_ref().map(target);
    let settings = format!("{one}; {two}; load-balancing \"round_robin\"");
    let proxyd = Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &settings)
        .start();
    let mut client = proxyd.connect();

    for _ in 0..10 {
        assert_eq!(client.ask(get("/", &[])).status, 200);
    }

    let asked = upstreams
        .each_ref()
        .map(|upstream| upstream.requests().len());
    assert_eq!(asked, [5, 5]);
}

#[test]
fn idle_connections_are_limited_for_all_upstreams_together() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "done");
    let limit = "limits { max-idle-connections-per-upstream 2 }";
    let proxyd = Config::to(&upstream).top(limit).start();
    let mut clients: Vec<_> = (0..5).map(|_| proxyd.connect()).collect();
    for client in &mut clients {
        client.send(get("/", &[]));
    }
    upstream.wait_for_requests(5);

    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().text(), "done");
    }

    assert_eq!(upstream.wait_for_ends(3).len(), 3, "two of five are kept");
}

#[test]
fn a_host_of_the_request_that_is_none_leaves_the_clients() {
    let upstream = Upstream::saying("hello");
    let edits = r#"request-headers { set "Host" "{query}"; set "X-None" "" }"#;
    let proxyd = Config::new()
        .route("all", &format!("upstream \"u\"; policies {{ {edits} }}"))
        .upstream("u", &target(&upstream))
        .start();
    let mut client = proxyd.connect();

    for (path, host) in [
        ("/", "a.test"),
        ("/?b.test:81", "b.test:81"),
        ("/?b.test/c", "a.test"),
        ("/?b.test:99999", "a.test"),
    ] {
        let fields = "Host: a.test\r\nX-None: 1";
        let answer = client.ask(format!("GET {path} HTTP/1.1\r\n{fields}\r\n\r\n"));

        assert_eq!(answer.status, 200, "{path}");
        let seen = upstream.last_request().fields;
        assert_eq!(seen.get("host"), Some(host), "{path}");
        assert!(!seen.has("x-none"));
    }
}
