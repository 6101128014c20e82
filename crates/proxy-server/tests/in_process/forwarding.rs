//! Header fields that the upstream gets about the client, and those that are removed.

use crate::support::{Config, request};
use proxy_testkit::{Upstream, get, ok};

#[test]
fn the_upstream_gets_client_protocol_and_host() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    proxyd
        .connect()
        .ask("GET / HTTP/1.1\r\nHost: shop.test:8443\r\n\r\n");

    let fields = upstream.last_request().fields;
    assert_eq!(fields.get("host"), Some("shop.test:8443"));
    assert_eq!(fields.get("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(fields.get("x-forwarded-proto"), Some("http"));
    assert_eq!(fields.get("x-forwarded-host"), Some("shop.test:8443"));
    assert!(!fields.has("via"));
}

#[test]
fn via_is_added_only_where_it_is_asked_for() {
    for (listener, via) in [
        ("", None),
        ("via #false", None),
        ("via #true", Some("1.1 proxyd")),
    ] {
        // With and without header edits, which take different code paths.
        for edits in ["", r#"request-headers { set "X-A" "b" }"#] {
            let upstream = Upstream::saying("");
            let proxyd = Config::through(&upstream, edits).listener(listener).start();

            proxyd.connect().ask(get("/", &[]));

            let fields = upstream.last_request().fields;
            assert_eq!(fields.get("via"), via, "{listener} {edits}");
        }
    }
}

const CLAIMS: &[(&str, &str)] = &[
    ("X-Forwarded-For", "1.1.1.1, 2.2.2.2"),
    ("X-Forwarded-For", "127.0.0.9"),
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-Host", "claimed.test"),
    ("Forwarded", "for=1.1.1.1"),
    ("Via", "1.0 edge"),
];

#[test]
fn claims_of_an_untrusted_peer_are_dropped() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    let response = proxyd.connect().ask(get("/", CLAIMS));

    let fields = upstream.last_request().fields;
    assert_eq!(fields.get("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(fields.get("x-forwarded-proto"), Some("http"));
    assert_eq!(fields.get("x-forwarded-host"), Some("a.test"));
    assert!(!fields.has("via"));
    assert!(!fields.has("forwarded"));
    let record = proxyd.access_record(&response.correlation_id());
    assert_eq!(record.text("client_ip"), "127.0.0.1");
}

#[test]
fn claims_with_underscores_are_dropped_from_every_sender() {
    const SHADOWS: [&str; 5] = [
        "X_Forwarded_For",
        "X-Forwarded_For",
        "X_Forwarded_Proto",
        "X_Forwarded_Host",
        "X_Correlation_Id",
    ];
    for trusted in ["", r#"trusted-proxies "127.0.0.0/8""#] {
        let upstream = Upstream::saying("");
        let proxyd = Config::to(&upstream).listener(trusted).start();
        for name in SHADOWS {
            proxyd
                .connect()
                .ask(get("/", &[(name, "1.1.1.1"), ("X_Mine", "kept")]));

            let fields = upstream.last_request().fields;
            assert!(!fields.has(name), "{name}");
            assert_eq!(fields.get("x_mine"), Some("kept"), "{name}");
            assert_eq!(fields.get("x-forwarded-for"), Some("127.0.0.1"), "{name}");
            assert!(fields.has("x-correlation-id"), "{name}");
        }
    }
}

#[test]
fn a_trusted_proxy_s_claims_are_continued_and_name_the_client() {
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream).listener(r#"trusted-proxies "127.0.0.0/8" "::1""#);
    let proxyd = config.listener("via #true").start();

    let response = proxyd.connect().ask(get("/", CLAIMS));

    let fields = upstream.last_request().fields;
    let whole = "1.1.1.1, 2.2.2.2, 127.0.0.9, 127.0.0.1";
    assert_eq!(fields.all("x-forwarded-for").join(", "), whole);
    assert_eq!(fields.get("x-forwarded-proto"), Some("https"));
    assert_eq!(fields.get("x-forwarded-host"), Some("claimed.test"));
    assert_eq!(fields.all("via").join(", "), "1.0 edge, 1.1 proxyd");
    let record = proxyd.access_record(&response.correlation_id());
    assert_eq!(record.text("client_ip"), "2.2.2.2");
}

/// Fields that report the client, the proxies on the path, or the target to an upstream.
const OTHER_CLAIMS: [&str; 28] = [
    "Client-IP",
    "CF-Connecting-IP",
    "Fastly-Client-IP",
    "Front-End-Https",
    "True-Client-IP",
    "X-Client-IP",
    "X-Cluster-Client-IP",
    "X-Forwarded",
    "X-Forwarded-By",
    "X-Forwarded-Client-Cert",
    "X-Forwarded-Path",
    "X-Forwarded-Port",
    "X-Forwarded-Prefix",
    "X-Forwarded-Scheme",
    "X-Forwarded-Server",
    "X-Forwarded-Ssl",
    "X-Forwarded-Uri",
    "X-Host",
    "X-HTTP-Host-Override",
    "X-Original-For",
    "X-Original-Host",
    "X-Original-Proto",
    "X-Original-URI",
    "X-Original-URL",
    "X-Real-IP",
    "X-Rewrite-URL",
    "X-Scheme",
    "X-Url-Scheme",
];

#[test]
fn no_forwarding_claim_of_an_untrusted_peer_reaches_the_upstream() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for name in OTHER_CLAIMS {
        let folded = name.replace('-', "_");
        for name in [name, &name.to_uppercase(), &folded] {
            client.ask(get("/", &[(name, "liar"), ("X-Kept", "1")]));

            let seen = upstream.last_request().fields;
            assert!(!seen.has(name), "{name}");
            assert_eq!(seen.get("x-kept"), Some("1"), "{name}");
            assert_eq!(seen.get("x-forwarded-for"), Some("127.0.0.1"), "{name}");
        }
    }
}

#[test]
fn forwarding_claims_of_a_trusted_proxy_pass_but_not_with_underscores() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream)
        .listener(r#"trusted-proxies "127.0.0.0/8""#)
        .start();
    let mut client = proxyd.connect();

    for name in OTHER_CLAIMS {
        client.ask(get("/", &[(name, "balancer")]));
        assert_eq!(upstream.last_request().fields.get(name), Some("balancer"));
        let folded = name.replace('-', "_");
        client.ask(get("/", &[(&folded, "liar")]));
        assert!(!upstream.last_request().fields.has(&folded), "{folded}");
    }
}

#[test]
fn forwarded_and_x_forwarded_for_of_a_trusted_proxy_are_continued() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream)
        .listener(r#"trusted-proxies "127.0.0.0/8""#)
        .start();

    let fields = [
        ("Forwarded", "for=1.1.1.1;proto=https"),
        ("Forwarded", ""),
        ("X-Forwarded-For", "1.1.1.1"),
    ];
    proxyd.connect().ask(get("/", &fields));

    let seen = upstream.last_request().fields;
    assert_eq!(seen.all("x-forwarded-for"), ["1.1.1.1, 127.0.0.1"]);
    assert_eq!(
        seen.all("forwarded"),
        ["for=1.1.1.1;proto=https, for=127.0.0.1"]
    );
}

#[test]
fn an_empty_x_forwarded_for_is_replaced_by_the_peer() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream)
        .listener(r#"trusted-proxies "127.0.0.0/8""#)
        .start();

    for (values, whole) in [
        (&[""][..], "127.0.0.1"),
        (&["", " , "], "127.0.0.1"),
        (&["1.1.1.1, ", ""], "1.1.1.1, 127.0.0.1"),
    ] {
        let fields: Vec<_> = values.iter().map(|it| ("X-Forwarded-For", *it)).collect();
        proxyd.connect().ask(get("/", &fields));
        let seen = upstream.last_request().fields;
        assert_eq!(seen.all("x-forwarded-for"), [whole], "{values:?}");
    }
}

#[test]
fn a_peer_outside_of_the_trusted_networks_is_not_trusted() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream)
        .listener(r#"trusted-proxies "10.0.0.0/8""#)
        .start();

    proxyd.connect().ask(get("/", CLAIMS));

    let fields = upstream.last_request().fields;
    assert_eq!(fields.get("x-forwarded-for"), Some("127.0.0.1"));
}

#[test]
fn fields_of_one_connection_do_not_reach_the_upstream() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    proxyd.connect().ask(get(
        "/",
        &[
            ("Connection", "keep-alive, X-Private"),
            ("Connection", "x-other"),
            ("X-Private", "1"),
            ("X-Other", "2"),
            ("Keep-Alive", "timeout=5"),
            ("Proxy-Connection", "keep-alive"),
            ("Upgrade", "h2c"),
            ("HTTP2-Settings", "AAMAAABkAAQAAP__"),
            ("X-Kept", "3"),
        ],
    ));

    let names = upstream.last_request().fields.names();
    for name in [
        "connection",
        "x-private",
        "x-other",
        "keep-alive",
        "proxy-connection",
    ] {
        assert!(!names.contains(&name.to_owned()), "{name} in {names:?}");
    }
    assert!(!names.contains(&"upgrade".to_owned()));
    assert!(!names.contains(&"http2-settings".to_owned()));
    assert!(names.contains(&"x-kept".to_owned()));
}

#[test]
fn connection_options_cannot_remove_fields_that_the_proxy_relies_on() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream).listener("via #true").start();

    let nominations = "Connection: x-forwarded-for, x-forwarded-proto, x-forwarded-host, via, \
        host, content-length, x-correlation-id\r\n";
    let fields = format!("{nominations}Content-Length: 2\r\n");
    let response = proxyd.connect().ask(request("POST /", &fields, "hi"));

    assert_eq!(response.text(), "hi");
    let fields = upstream.last_request().fields;
    assert_eq!(fields.get("host"), Some("a.test"));
    assert_eq!(fields.get("content-length"), Some("2"));
    assert_eq!(fields.get("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(fields.get("x-forwarded-proto"), Some("http"));
    assert_eq!(fields.get("x-forwarded-host"), Some("a.test"));
    assert_eq!(fields.get("via"), Some("1.1 proxyd"));
    assert_eq!(
        fields.get("x-correlation-id"),
        Some(response.correlation_id().as_str())
    );
}

#[test]
fn fields_of_the_upstream_s_connection_do_not_reach_the_client() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Private\r\nKeep-Alive: timeout=5\r\n\
         X-Private: 1\r\nProxy-Connection: keep-alive\r\nUpgrade: h2c\r\nX-Kept: 2\r\n\
         Content-Length: 2\r\n\r\nok",
    );
    let proxyd = Config::to(&upstream).start();

    let response = proxyd.connect().ask(get("/", &[]));

    assert_eq!(response.text(), "ok");
    assert_eq!(response.fields.get("x-kept"), Some("2"));
    for name in [
        "connection",
        "keep-alive",
        "x-private",
        "proxy-connection",
        "upgrade",
    ] {
        assert!(!response.fields.has(name), "{name}");
    }
}

#[test]
fn connection_options_cannot_remove_the_content_length_of_a_response() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 2\r\n\r\nok",
    );
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        let response = client.ask(get("/", &[]));
        assert_eq!((response.status, response.text().as_str()), (200, "ok"));
    }
}

#[test]
fn repeated_fields_keep_their_number_and_order_both_ways() {
    let mut answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n".to_vec();
    answer.extend(b"Content-Length: 0\r\n\r\n");
    let upstream = Upstream::answering(answer);
    let proxyd = Config::to(&upstream).start();

    let fields = [
        ("X-List", "1"),
        ("X-Between", "x"),
        ("X-List", "2"),
        ("X-Empty", ""),
    ];
    let response = proxyd.connect().ask(get("/", &fields));

    let seen = upstream.last_request().fields;
    assert_eq!(seen.all("x-list"), ["1", "2"]);
    assert_eq!(seen.get("x-empty"), Some(""));
    assert_eq!(response.fields.all("set-cookie"), ["a=1", "b=2"]);
}

#[test]
fn te_is_passed_on_as_far_as_the_proxy_understands_it() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    let mut client = proxyd.connect();
    client.ask(get("/", &[("TE", "gzip, trailers"), ("Connection", "TE")]));
    client.ask(get("/", &[("TE", "gzip"), ("Connection", "TE")]));

    let requests = upstream.requests();
    assert_eq!(requests[0].fields.get("te"), Some("trailers"));
    let named = requests[0].fields.get("connection").unwrap();
    assert!(named.eq_ignore_ascii_case("te"), "{named}");
    assert!(!requests[1].fields.has("te") && !requests[1].fields.has("connection"));
}

#[test]
fn opaque_bytes_in_values_pass_both_ways() {
    let mut answer = b"HTTP/1.1 200 OK\r\nX-Bytes: \xE9\xFF\r\nContent-Length: 0\r\n\r\n".to_vec();
    let upstream = Upstream::answering(std::mem::take(&mut answer));
    let proxyd = Config::to(&upstream).start();

    let mut text = b"GET / HTTP/1.1\r\nHost: a.test\r\nX-Bytes: \x80\xFE\r\n\r\n".to_vec();
    let response = proxyd.connect().ask(std::mem::take(&mut text));

    let raw = upstream.last_request().raw;
    assert!(raw.windows(4).any(|bytes| bytes == b" \x80\xFE\r"));
    assert!(response.raw.windows(4).any(|bytes| bytes == b" \xE9\xFF\r"));
}

#[test]
fn the_proxy_adds_no_field_of_its_own_to_a_forwarded_response_but_the_id() {
    let upstream = Upstream::answering(ok("hi"));
    let proxyd = Config::to(&upstream).start();

    let mut names = proxyd.connect().ask(get("/", &[])).fields.names();

    names.sort();
    // `Date` is added if the upstream sent none: RFC 9110 §6.6.1.
    assert_eq!(names, ["content-length", "date", "x-correlation-id"]);
}

#[test]
fn a_request_passes_no_more_servers_than_it_may() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for (method, reported, passed_on) in [
        ("OPTIONS", "5", Some("4")),
        ("TRACE", "1", Some("0")),
        ("OPTIONS", "007", Some("6")),
        ("GET", "0", Some("0")),
        ("OPTIONS", "+5", Some("+5")),
        ("OPTIONS", "0", None),
        ("TRACE", "0", None),
    ] {
        let before = upstream.requests().len();
        let request =
            format!("{method} / HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: {reported}\r\n\r\n");
        let response = client.ask(request);
        let case = format!("{method} {reported}");
        if let Some(left) = passed_on {
            let fields = upstream.last_request().fields;
            assert_eq!(fields.get("max-forwards"), Some(left), "{case}");
        } else {
            assert_eq!(response.status, 405, "{case}");
            assert_eq!(upstream.requests().len(), before, "{case}");
        }
    }
}
