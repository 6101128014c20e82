//! Shadow traffic: copies of requests to a second upstream.
#![expect(clippy::disallowed_methods, reason = "tests wait until a deadline")]

use crate::support::{Config, METRICS, metric, post, request, target};
use proxy_testkit::{Gate, Proxyd, RawClient, Upstream, closed_port, get};

fn proxyd(upstream: &Upstream, shadow: &str, policy: &str, top: &str) -> Proxyd {
    let route = format!("shadow {{ upstream \"shadow\"; {policy} }}");
    Config::through(upstream, &route)
        .route("metrics", &format!("priority 100; {METRICS}"))
        .upstream("shadow", shadow)
        .top(top)
        .start()
}

/// Waits until this number of copies have this result.
#[track_caller]
fn wait_for(client: &mut RawClient, result: &str, count: f64) {
    let name = format!("proxy_shadow_requests_total{{route=\"all\",result=\"{result}\"}}");
    let begun = std::time::Instant::now();
    while metric(client, &name) < count {
        assert!(begun.elapsed() < proxy_testkit::EVENT_TIMEOUT, "{name}");
    }
    assert!((metric(client, &name) - count).abs() < 0.5);
}

#[test]
fn a_shadow_gets_a_copy_of_each_request() {
    let (upstream, shadow) = (Upstream::echo(), Upstream::saying("dropped"));
    let proxyd = proxyd(&upstream, &target(&shadow), "", "");
    let mut client = proxyd.connect();

    assert_eq!(client.ask(get("/a?b=c", &[("X-Own", "1")])).text(), "");
    assert_eq!(client.ask(post("/", "whole")).text(), "whole");
    let chunked = "3\r\none\r\n3\r\ntwo\r\n0\r\nX-Sum: 7\r\n\r\n";
    let head = "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n";
    assert_eq!(client.ask(request("PUT /", head, chunked)).text(), "onetwo");

    wait_for(&mut client, "answered", 3.0);
    let mut copies = shadow.wait_for_requests(3);
    copies.sort_by_key(|copy| copy.body.len());
    let [first, second, third] = <[_; 3]>::try_from(copies).unwrap();
    assert_eq!((&*first.method, &*first.target), ("GET", "/a?b=c"));
    assert_eq!(first.fields.get("x-own"), Some("1"));
    assert_eq!(first.fields.get("x-forwarded-for"), Some("127.0.0.1"));
    let original = &upstream.requests()[0];
    for name in ["x-correlation-id", "x-forwarded-host", "x-forwarded-proto"] {
        let sent = original.fields.get(name).unwrap();
        let copied = first.fields.get(name).unwrap();
        assert_eq!(copied.trim_end_matches("-shadow"), sent, "{name}");
    }
    let host = original.fields.get("host").unwrap();
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    let marked = first.fields.get("host").unwrap();
    assert_eq!(marked.replace(':', ""), format!("{name}-shadow{port}"));
    assert_eq!(second.body, b"whole");
    assert_eq!(second.fields.get("content-length"), Some("5"));
    assert_eq!(third.body, b"onetwo");
    assert_eq!(third.trailers.get("x-sum"), Some("7"));
    let requests = "proxy_requests_total{route=\"all\"";
    assert!((metric(&mut client, requests) - 3.0).abs() < 0.5);
    let attempts = "proxy_upstream_attempts_total{upstream=\"shadow\"}";
    assert!((metric(&mut client, attempts) - 3.0).abs() < 0.5);
}

#[test]
fn trailers_do_not_bring_the_fields_that_the_route_edits() {
    let (upstream, shadow) = (Upstream::echo(), Upstream::saying("dropped"));
    let route = "shadow { upstream \"shadow\" }; request-headers { set \"X-Env\" \"live\"; \
                 remove \"X-Debug\"; add \"X-Via\" \"edge\" }";
    let proxyd = Config::through(&upstream, route)
        .upstream("shadow", &target(&shadow))
        .start();
    let body =
        "3\r\none\r\n0\r\nX-Env: test\r\nX_Debug: 1\r\nX-Debug: 1\r\nX-Via: me\r\nX-Sum: 7\r\n\r\n";

    let chunked = request("POST /", "Transfer-Encoding: chunked\r\n", body);
    assert_eq!(proxyd.connect().ask(chunked).text(), "one");

    for upstream in [&upstream, &shadow] {
        let request = upstream.wait_for_requests(1).pop().unwrap();
        assert_eq!(request.fields.all("x-env"), ["live"]);
        for name in ["x-env", "x_debug", "x-debug", "x-via"] {
            assert!(!request.trailers.has(name), "{name}");
        }
        assert_eq!(request.trailers.get("x-sum"), Some("7"));
    }
}

#[test]
fn a_shadow_gets_its_share_of_the_requests() {
    let (upstream, shadow) = (Upstream::saying("ok"), Upstream::saying("dropped"));
    let count = |percent: &str| {
        let proxyd = proxyd(&upstream, &target(&shadow), percent, "");
        let before = shadow.requests().len();
        let mut client = proxyd.connect();
        for _ in 0..200 {
            assert_eq!(client.ask(get("/", &[])).text(), "ok");
        }
        proxyd.drain();
        shadow.requests().len() - before
    };

    assert_eq!(count("percent 0"), 0);
    assert!((20..=180).contains(&count("percent 50")));
}

#[test]
fn a_shadow_that_hangs_or_refuses_delays_no_request() {
    let upstream = Upstream::saying("ok");
    let gate = Gate::new();
    let shadow = Upstream::gated(&gate, "late");
    let proxyd = proxyd(&upstream, &target(&shadow), "", "");
    let mut client = proxyd.connect();
    for _ in 0..80 {
        assert_eq!(client.ask(get("/", &[])).text(), "ok");
    }
    wait_for(&mut client, "dropped", 16.0);
    gate.open();
    wait_for(&mut client, "answered", 64.0);
    drop(proxyd);

    let proxyd = self::proxyd(&upstream, &format!("target \"{}\"", closed_port()), "", "");
    let mut client = proxyd.connect();
    let response = client.ask(get("/", &[]));
    assert_eq!(response.text(), "ok");
    wait_for(&mut client, "failed", 1.0);
    assert!(
        !proxyd
            .access_record(&response.correlation_id())
            .has("reason")
    );
}

#[test]
fn a_body_larger_than_the_buffer_is_not_copied() {
    let (upstream, shadow) = (Upstream::echo(), Upstream::saying("dropped"));
    let top = "limits { max-body-buffer-bytes 5 }";
    let proxyd = proxyd(&upstream, &target(&shadow), "", top);
    let mut client = proxyd.connect();

    assert_eq!(client.ask(post("/", "five!")).text(), "five!");
    assert_eq!(client.ask(post("/", "sixsix")).text(), "sixsix");
    let chunked = "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n";
    let head = "Transfer-Encoding: chunked\r\n";
    assert_eq!(client.ask(request("PUT /", head, chunked)).text(), "onetwo");

    wait_for(&mut client, "answered", 1.0);
    wait_for(&mut client, "dropped", 2.0);
    assert_eq!(shadow.requests().len(), 1);
}

#[test]
fn a_copy_goes_to_a_target_of_its_own_when_its_body_has_been_read() {
    let (arrived, upstream) = (Gate::new(), Upstream::echo());
    let gate = arrived.clone();
    let shadow = Upstream::start(move |served| {
        while served.request().is_some() {
            gate.open();
            served.send(proxy_testkit::ok("dropped"));
        }
    });
    let proxyd = proxyd(&upstream, &target(&shadow), "", "");
    let mut client = proxyd.connect();

    client.send(request("POST /", "Content-Length: 6\r\n", "one"));
    upstream.wait_for_connections(1);
    assert_eq!(shadow.connections(), 0);
    client.send("two");

    assert_eq!(client.response().text(), "onetwo");
    arrived.wait();
    assert_eq!(shadow.last_request().body, b"onetwo");
}
