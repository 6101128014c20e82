//! Requests from pages of other origins.

use crate::support::{Config, request};
use proxy_testkit::{Upstream, get};

const CORS: &str = r#"cors {
    allow-origins "https://app.test" "https://*.apps.test"
    allow-methods "GET" "PUT"
    allow-headers "Content-Type" "X-Token"
    expose-headers "X-Total"
    allow-credentials #true
    max-age-secs 60
}"#;

#[test]
fn pages_of_allowed_origins_may_use_a_route() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\n\
         Access-Control-Allow-Private-Network: true\r\nVary: Accept\r\nContent-Length: 0\r\n\r\n",
    );
    let proxyd = Config::through(&upstream, CORS).start();
    let mut client = proxyd.connect();

    for origin in ["https://app.test", "https://one.apps.test"] {
        let fields = client.ask(get("/", &[("Origin", origin)])).fields;
        assert_eq!(fields.all("access-control-allow-origin"), [origin]);
        assert_eq!(fields.all("access-control-allow-credentials"), ["true"]);
        assert_eq!(fields.all("access-control-expose-headers"), ["x-total"]);
        assert!(!fields.has("access-control-allow-methods"));
        assert_eq!(fields.all("vary"), ["Accept", "Origin"]);
    }
    for origin in ["https://evil.test", "null", "http://app.test"] {
        let response = client.ask(get("/", &[("Origin", origin)]));
        assert_eq!(response.status, 200);
        assert!(
            !response.fields.has("access-control-allow-origin"),
            "{origin}"
        );
        assert!(!response.fields.has("access-control-allow-credentials"));
        assert!(!response.fields.has("access-control-allow-private-network"));
        assert_eq!(response.fields.all("vary"), ["Accept", "Origin"]);
    }
    let fields = client.ask(get("/", &[])).fields;
    assert!(!fields.has("access-control-allow-origin"));
    assert_eq!(fields.all("vary"), ["Accept", "Origin"]);
}

#[test]
fn a_preflight_request_is_answered_by_the_proxy() {
    let upstream = Upstream::saying("");
    let proxyd = Config::through(&upstream, CORS).start();
    let mut client = proxyd.connect();
    let preflight = |origin: &str| {
        let fields = format!("Origin: {origin}\r\nAccess-Control-Request-Method: PUT\r\n");
        request("OPTIONS /", &fields, "")
    };

    let allowed = client.ask(preflight("https://app.test"));

    assert_eq!(allowed.status, 204);
    let fields = &allowed.fields;
    assert_eq!(
        fields.all("access-control-allow-origin"),
        ["https://app.test"]
    );
    assert_eq!(fields.all("access-control-allow-methods"), ["GET, PUT"]);
    assert_eq!(
        fields.all("access-control-allow-headers"),
        ["content-type, x-token"]
    );
    assert_eq!(fields.all("access-control-max-age"), ["60"]);
    let refused = client.ask(preflight("https://evil.test"));
    assert_eq!(refused.status, 204);
    assert!(!refused.fields.has("access-control-allow-origin"));
    assert_eq!(upstream.requests().len(), 0);
    // An OPTIONS request that is no preflight is forwarded.
    client.ask(request("OPTIONS /", "Origin: https://app.test\r\n", ""));
    assert_eq!(upstream.last_request().method, "OPTIONS");
}

#[test]
fn public_responses_are_readable_by_every_origin() {
    let proxyd = Config::new()
        .route("own", r#"respond 200 "x"; cors { allow-origins "*" }"#)
        .start();

    let fields = proxyd
        .connect()
        .ask(get("/", &[("Origin", "https://any.test")]))
        .fields;

    assert_eq!(fields.all("access-control-allow-origin"), ["*"]);
    assert!(!fields.has("vary"));
    // A cache may give this response to a request with an origin.
    let fields = proxyd.connect().ask(get("/", &[])).fields;
    assert_eq!(fields.all("access-control-allow-origin"), ["*"]);
}
