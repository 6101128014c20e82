//! Redirects and fixed responses.

use crate::support::{Config, Proxy, reason, refusal, request};
use proxy_testkit::{Response, get};

fn answering(route: &str) -> Proxy {
    Config::new().route("own", route).start()
}

fn location(response: &Response) -> (u16, &str) {
    let location = response.fields.get("location").unwrap_or("none");
    (response.status, location)
}

#[test]
fn a_redirect_keeps_the_parts_of_the_url_that_it_does_not_replace() {
    for (to, expected) in [
        ("https", "https://a.test/p%20q/r?s=t&u"),
        ("https://www.a.test", "https://www.a.test/p%20q/r?s=t&u"),
        (
            "https://www.a.test:8443",
            "https://www.a.test:8443/p%20q/r?s=t&u",
        ),
        ("//www.a.test", "http://www.a.test/p%20q/r?s=t&u"),
        ("/new", "http://a.test/new?s=t&u"),
        ("https://b.test/new", "https://b.test/new?s=t&u"),
        ("https://b.test/new?", "https://b.test/new"),
        ("https://b.test?x=y", "https://b.test/p%20q/r?x=y"),
        ("/#/login", "http://a.test/?s=t&u#/login"),
    ] {
        let proxyd = answering(&format!("redirect \"{to}\""));

        let response = proxyd.connect().ask(get("/p%20q/r?s=t&u", &[]));

        assert_eq!(location(&response), (302, expected), "{to}");
        assert!(response.body.is_empty());
    }
}

#[test]
fn a_redirect_to_another_scheme_leaves_the_port_out() {
    let proxyd = answering("redirect \"https\"");
    let ask = |host: &str| {
        let head = format!("GET /a HTTP/1.1\r\nHost: {host}\r\n\r\n");
        proxyd.connect().ask(head)
    };

    assert_eq!(location(&ask("a.test:8080")), (302, "https://a.test/a"));
    assert_eq!(location(&ask("[::1]:8080")), (302, "https://[::1]/a"));
    let other = answering("redirect \"/b\"");
    let head = "GET /a HTTP/1.1\r\nHost: a.test:8080\r\n\r\n";
    let response = other.connect().ask(head);
    assert_eq!(location(&response), (302, "http://a.test:8080/b"));
}

#[test]
fn a_redirect_replaces_the_beginning_of_a_path() {
    let proxyd = answering(
        r#"matches { path-prefix "/old" }; redirect "https://b.test" { replace-prefix "/old" "/docs" }"#,
    );
    for (path, expected) in [
        ("/old", "https://b.test/docs"),
        ("/old/a/b?c", "https://b.test/docs/a/b?c"),
        // The prefix of the decoded path is replaced.
        ("/%6Fld/a%20b", "https://b.test/docs/a%20b"),
    ] {
        let response = proxyd.connect().ask(get(path, &[]));
        assert_eq!(location(&response), (302, expected));
    }
    // A path with two leading slashes would name a host.
    let proxyd = answering(r#"redirect { replace-prefix "/old" "/" }"#);
    let response = proxyd.connect().ask(get("/old//evil.test/x", &[]));
    assert_eq!(location(&response), (302, "http://a.test/evil.test/x"));
}

#[test]
fn a_redirect_adds_and_removes_the_slash_at_the_end() {
    let proxyd = answering("redirect trailing-slash=\"add\"");
    let response = proxyd.connect().ask(get("//evil.test?a", &[]));
    assert_eq!(location(&response), (302, "http://a.test//evil.test/?a"));
    let proxyd = answering("redirect trailing-slash=\"remove\" status=308");
    let response = proxyd.connect().ask(get("/a/b/", &[]));
    assert_eq!(location(&response), (308, "http://a.test/a/b"));
}

#[test]
fn a_slash_before_dot_segments_is_removed_with_them() {
    let proxyd = Config::new()
        .listener("path-policy \"forward\"")
        .route(
            "blog",
            "matches { path-regex \"^/blog/.+/$\" }; redirect trailing-slash=\"remove\" status=308",
        )
        .start();

    for (path, expected) in [
        ("/blog/x/.", "/blog/x"),
        ("/blog/x/%2e", "/blog/x"),
        ("/blog/a/b/..", "/blog/a"),
        ("/blog/x/", "/blog/x"),
    ] {
        let response = proxyd.connect().ask(get(path, &[]));
        let url = format!("http://a.test{expected}");
        assert_eq!(location(&response), (308, &*url), "{path}");
    }
}

#[test]
fn a_redirect_has_its_status() {
    for status in [301, 302, 303, 307, 308] {
        let proxyd = answering(&format!("redirect \"https\" status={status}"));
        let response = proxyd
            .connect()
            .ask(request("POST /", "Content-Length: 0\r\n", ""));
        assert_eq!(location(&response), (status, "https://a.test/"));
    }
}

#[test]
fn a_redirect_to_itself_is_refused() {
    let proxyd = answering("redirect \"http://A.test:80\"");

    let response = proxyd.connect().ask(get("/a", &[]));

    refusal(&response, 500, "CONFIG");
    assert_eq!(reason(&proxyd, &response), "redirect_loop");
    // Another host is redirected, once.
    let head = "GET /a HTTP/1.1\r\nHost: www.a.test\r\n\r\n";
    assert_eq!(
        location(&proxyd.connect().ask(head)),
        (302, "http://A.test:80/a")
    );
}

#[test]
fn behind_a_trusted_proxy_the_scheme_is_that_of_its_client() {
    let proxyd = Config::new()
        .listener("trusted-proxies \"127.0.0.1\"")
        .route("own", "redirect \"https\"")
        .start();

    let response = proxyd
        .connect()
        .ask(get("/a", &[("X-Forwarded-Proto", "https")]));
    assert_eq!(reason(&proxyd, &response), "redirect_loop");
    let response = proxyd
        .connect()
        .ask(get("/a", &[("X-Forwarded-Proto", "http")]));
    assert_eq!(location(&response), (302, "https://a.test/a"));
    // Claims by any other peer are ignored.
    let proxyd = answering("redirect \"https\"");
    let response = proxyd
        .connect()
        .ask(get("/a", &[("X-Forwarded-Proto", "https")]));
    assert_eq!(location(&response), (302, "https://a.test/a"));
}

#[test]
fn a_redirect_without_a_host_needs_one() {
    let proxyd = answering("redirect \"https\"");

    let response = proxyd.connect().ask("GET /a HTTP/1.0\r\n\r\n");

    refusal(&response, 400, "PARSE");
    assert_eq!(reason(&proxyd, &response), "missing_host");
}

#[test]
fn a_route_responds_with_its_status_and_text() {
    let proxyd = Config::new()
        .route("text", r#"matches { path "/text" }; respond 200 "hello""#)
        .route("empty", r#"matches { path "/empty" }; respond 204"#)
        .route(
            "down",
            r#"matches { path "/down" }; respond 503 "back soon"; response-headers { set "Retry-After" "3600" }"#,
        )
        .route(
            "gone",
            r#"matches { path "/gone" }; respond { status 410 }"#,
        )
        .start();
    let mut client = proxyd.connect();

    let text = client.ask(request("PUT /text", "Content-Length: 2\r\n", "xy"));
    assert_eq!((text.status, text.text().as_str()), (200, "hello"));
    assert!(text.fields.has("x-correlation-id"));

    let mut client = proxyd.connect();
    client.send(request("HEAD /text", "", ""));
    let head = client.response_to_head();
    assert_eq!(head.fields.get("content-length"), Some("5"));
    let empty = client.ask(get("/empty", &[]));
    assert_eq!(
        (empty.status, empty.fields.get("content-length")),
        (204, None)
    );

    let down = client.ask(get("/down", &[]));
    assert_eq!((down.status, down.text().as_str()), (503, "back soon"));
    assert_eq!(down.fields.all("retry-after"), ["3600"]);
    assert_eq!(reason(&proxyd, &down), "respond_server_error");

    let gone = client.ask(get("/gone", &[]));
    refusal(&gone, 410, "REQUEST_VALIDATION");
    assert_eq!(reason(&proxyd, &gone), "respond_client_error");
    let page = client.ask(get("/gone", &[("Accept", "text/html")]));
    assert_eq!(page.status, 410);
    assert_eq!(
        page.fields.get("content-type"),
        Some("text/html; charset=utf-8")
    );
}

#[test]
fn a_response_has_its_content_type() {
    let proxyd = answering(r#"respond 200 "{}" content-type="application/json""#);
    let response = proxyd.connect().ask(get("/", &[]));
    assert_eq!(
        response.fields.get("content-type"),
        Some("application/json")
    );
    let proxyd = answering(r#"respond 200 "x""#);
    let response = proxyd.connect().ask(get("/", &[]));
    assert_eq!(
        response.fields.get("content-type"),
        Some("text/plain; charset=utf-8")
    );
}

#[test]
fn rate_limits_count_redirects() {
    let proxyd = answering(
        r#"matches { path "/counted" }; redirect "https"; rate-limit { requests-per-second 1; burst 1; key "route" }"#,
    );
    let mut client = proxyd.connect();

    assert_eq!(client.ask(get("/counted", &[])).status, 302);
    assert_eq!(client.ask(get("/counted", &[])).status, 429);
}
