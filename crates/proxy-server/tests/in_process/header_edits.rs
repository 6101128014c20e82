//! Fields that a route sets, adds and removes.

use crate::support::{Config, post};
use proxy_testkit::{Upstream, get};

#[test]
fn request_headers_are_set_added_and_removed() {
    let upstream = Upstream::saying("");
    let proxyd = Config::through(
        &upstream,
        r#"policies { request-headers {
            set { "X-Set" "new"; "X-Fresh" "1" }
            add "X-Added" "two"
            remove "X-Gone" "Accept-Encoding"
        } }"#,
    )
    .start();

    proxyd.connect().ask(get(
        "/",
        &[
            ("X-Set", "old"),
            ("x-set", "older"),
            ("X-Added", "one"),
            ("X-Gone", "1"),
            ("x-gone", "2"),
            ("Accept-Encoding", "gzip"),
            ("X-Kept", "yes"),
        ],
    ));

    let fields = upstream.last_request().fields;
    assert_eq!(fields.get("x-set"), Some("new"));
    assert_eq!(fields.get("x-fresh"), Some("1"));
    assert_eq!(fields.all("x-added"), ["one", "two"]);
    assert!(!fields.has("x-gone") && !fields.has("accept-encoding"));
    assert_eq!(fields.get("x-kept"), Some("yes"));
}

#[test]
fn response_headers_are_set_added_and_removed() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nServer: secret/1.0\r\nX-Set: old\r\nVary: Origin\r\n\
         Content-Length: 0\r\n\r\n",
    );
    let proxyd = Config::through(
        &upstream,
        r#"response-headers { set "X-Set" "new"; add "Vary" "Accept"; remove "Server" }"#,
    )
    .start();

    let fields = proxyd.connect().ask(get("/", &[])).fields;

    assert_eq!(fields.get("x-set"), Some("new"));
    assert_eq!(fields.all("vary"), ["Origin", "Accept"]);
    assert!(!fields.has("server"));
}

#[test]
fn response_headers_act_on_pages_of_builtin_handlers() {
    for handler in ["health", "ready", "status", "metrics", "welcome"] {
        let route = format!(
            "service-type \"builtin\"; builtin-handler \"{handler}\"
             response-headers {{ set \"X-Set\" \"new\"; remove \"Server\" }}"
        );
        let proxyd = Config::new().route("own", &route).start();

        let response = proxyd.connect().ask(get("/", &[]));

        assert_eq!(response.status, 200, "{handler}");
        assert_eq!(response.fields.get("x-set"), Some("new"), "{handler}");
        assert!(!response.fields.has("server"), "{handler}");
    }
}

#[test]
fn removing_comes_before_setting_and_setting_before_adding() {
    let upstream = Upstream::saying("");
    let proxyd = Config::through(
        &upstream,
        r#"request-headers { add "X-A" "added"; set "X-A" "set"; remove "X-A" }"#,
    )
    .start();

    proxyd.connect().ask(get("/", &[("X-A", "sent")]));

    assert_eq!(upstream.last_request().fields.all("x-a"), ["set", "added"]);
}

#[test]
fn a_route_may_set_the_host_that_its_upstream_sees() {
    let upstream = Upstream::saying("");
    let config = Config::through(&upstream, r#"request-headers { set "Host" "inner.test" }"#);
    let proxyd = config.start();

    proxyd.connect().ask(get("/", &[]));

    let fields = upstream.last_request().fields;
    assert_eq!(fields.get("host"), Some("inner.test"));
    assert_eq!(fields.get("x-forwarded-host"), Some("a.test"));
}

#[test]
fn values_of_the_request_are_put_into_headers() {
    let upstream = Upstream::saying("");
    let proxyd = Config::through(
        &upstream,
        r##"
        request-headers {
            set "X-Real-IP" "{client_ip}"
            set "X-Original" "{scheme}://{host}{uri}"
            set "X-Route" "{route} {listener} {method} {protocol} {path} {query}"
            set "X-Id" "{correlation_id}"
            set "X-TLS" "{tls_version}"
            add "X-Name" "{tls_server_name}"
            set "X-Literal" #"{host}"#
        }
        response-headers {
            set "X-Seen" "{client_ip}"
            add "X-Served" "{route} for {uri}"
        }"##,
    )
    .start();

    let response = proxyd.connect().ask(get(
        "/a%20b?c=d",
        &[("X-Real-IP", "10.0.0.1"), ("X-TLS", "1.3")],
    ));

    let fields = upstream.last_request().fields;
    assert_eq!(fields.all("x-real-ip"), ["127.0.0.1"]);
    assert_eq!(fields.get("x-original"), Some("http://a.test/a%20b?c=d"));
    let route = "all main GET HTTP/1.1 /a%20b c=d";
    assert_eq!(fields.get("x-route"), Some(route));
    assert_eq!(fields.get("x-id"), fields.get("x-correlation-id"));
    // An empty value sends no field, and removes the client's field of that name.
    assert!(!fields.has("x-tls") && !fields.has("x-name"));
    assert_eq!(fields.get("x-literal"), Some("{host}"));
    assert_eq!(response.fields.get("x-seen"), Some("127.0.0.1"));
    assert_eq!(response.fields.get("x-served"), Some("all for /a%20b?c=d"));
}

#[test]
fn values_of_the_request_are_on_the_proxy_s_own_responses() {
    let proxyd = Config::new()
        .route(
            "own",
            r#"matches { path "/own" }; respond 200 "x"; response-headers { set "X-Path" "{path}" }"#,
        )
        .route(
            "moved",
            r#"redirect "https"; response-headers { set "X-Path" "{path}" }"#,
        )
        .start();
    let mut client = proxyd.connect();

    assert_eq!(
        client.ask(get("/own", &[])).fields.get("x-path"),
        Some("/own")
    );
    assert_eq!(client.ask(get("/a", &[])).fields.get("x-path"), Some("/a"));
    // The value belongs to the request, not to the connection.
    assert_eq!(client.ask(get("/b", &[])).fields.get("x-path"), Some("/b"));
}

#[test]
fn values_of_the_request_are_on_refusals_and_those_of_a_trusted_proxy_count() {
    let upstream = Upstream::saying("");
    let proxyd = Config::through(
        &upstream,
        r#"max-body-size 1; request-headers { set "X-Real-IP" "{client_ip} {scheme}" }
           response-headers { set "X-Route" "{route}" }"#,
    )
    .listener(r#"trusted-proxies "127.0.0.1""#)
    .start();

    let refused = proxyd.connect().ask(post("/", "too long"));
    assert_eq!(refused.status, 413);
    assert_eq!(refused.fields.get("x-route"), Some("all"));
    let fields = [
        ("X-Forwarded-For", "192.0.2.7"),
        ("X-Forwarded-Proto", "https"),
    ];
    proxyd.connect().ask(get("/", &fields));
    let fields = upstream.last_request().fields;
    assert_eq!(fields.get("x-real-ip"), Some("192.0.2.7 https"));
}

#[test]
fn a_preset_sets_security_headers() {
    let proxyd = Config::new()
        .route(
            "basic",
            r#"matches { path "/basic" }; respond 200 "x"; response-headers { preset "basic" }"#,
        )
        .route(
            "strict",
            r#"respond 200 "x"; response-headers {
                preset "strict"
                set "X-Frame-Options" "SAMEORIGIN"
                remove "Referrer-Policy"
            }"#,
        )
        .start();
    let mut client = proxyd.connect();

    let basic = client.ask(get("/basic", &[])).fields;
    assert_eq!(basic.all("x-content-type-options"), ["nosniff"]);
    assert_eq!(basic.all("x-frame-options"), ["SAMEORIGIN"]);
    assert!(basic.has("referrer-policy") && !basic.has("strict-transport-security"));
    let strict = client.ask(get("/", &[])).fields;
    let age = "max-age=31536000";
    assert_eq!(strict.all("strict-transport-security"), [age]);
    // Edits of the route have precedence.
    assert_eq!(strict.all("x-frame-options"), ["SAMEORIGIN"]);
    assert!(!strict.has("referrer-policy"));
}
