//! Fields that a route sets, adds and removes.

use crate::support::Config;
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
