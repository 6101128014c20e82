//! Paths rewritten for the upstream, and paths in its responses rewritten back.

use crate::support::{Config, reason, refusal};
use proxy_testkit::{Upstream, closed_port, get};
use std::net::TcpListener;

#[test]
fn an_upstream_gets_the_rewritten_path() {
    let upstream = Upstream::saying("");
    for (rewrite, sent, expected) in [
        (
            r#"strip-prefix "/api""#,
            "/api/users?page=2",
            "/users?page=2",
        ),
        (r#"strip-prefix "/api""#, "/api", "/"),
        (r#"strip-prefix "/api""#, "/apis/x", "/apis/x"),
        // A path with two leading slashes would name a host.
        (
            r#"strip-prefix "/api""#,
            "/api//evil.test/x",
            "/evil.test/x",
        ),
        // The prefix of the decoded path is removed.
        (r#"strip-prefix "/api""#, "/%61pi/a%20b", "/a%20b"),
        (
            r#"replace-prefix "/old" "/v2/new""#,
            "/old/a?b",
            "/v2/new/a?b",
        ),
        (r#"path "/index.php""#, "/any/thing?q=1", "/index.php?q=1"),
    ] {
        let proxyd = Config::through(&upstream, &format!("rewrite {{ {rewrite} }}")).start();

        let response = proxyd.connect().ask(get(sent, &[]));

        assert_eq!(response.status, 200);
        assert_eq!(upstream.last_request().target, expected, "{rewrite} {sent}");
        let record = proxyd.access_record(&response.correlation_id());
        assert_eq!(record.text("path"), sent);
    }
}

#[test]
fn a_rewritten_path_is_matched_by_no_other_route() {
    let (api, admin) = (Upstream::saying("api"), Upstream::saying("admin"));
    let proxyd = Config::new()
        .route(
            "api",
            r#"matches { path-prefix "/api" }; upstream "api"; rewrite { strip-prefix "/api" }"#,
        )
        .route(
            "admin",
            r#"matches { path-prefix "/admin" }; upstream "admin""#,
        )
        .upstream("api", &format!("target \"{}\"", api.address()))
        .upstream("admin", &format!("target \"{}\"", admin.address()))
        .start();

    let response = proxyd.connect().ask(get("/api/admin/users", &[]));

    assert_eq!(response.text(), "api");
    assert_eq!(api.last_request().target, "/admin/users");
    assert_eq!(admin.requests().len(), 0);
}

#[test]
fn a_rewritten_path_does_not_leave_its_root() {
    let upstream = Upstream::saying("");
    let proxyd = Config::through(&upstream, r#"rewrite { strip-prefix "/api" }"#).start();

    let response = proxyd.connect().ask(get("/api/..%2f..%2fetc/passwd", &[]));

    refusal(&response, 400, "REQUEST_VALIDATION");
    assert_ne!(reason(&proxyd, &response), "");
    assert_eq!(upstream.requests().len(), 0);
}

#[test]
fn locations_and_cookies_are_written_back() {
    let answer = |fields: &str| {
        let text = format!("HTTP/1.1 302 Found\r\n{fields}\r\nContent-Length: 0\r\n\r\n");
        Upstream::answering(text)
    };
    let rewrite = r#"rewrite { replace-prefix "/app" "/inner" }
        request-headers { set "Host" "inner.test" }"#;
    for (sent, expected) in [
        ("/inner/login?next=/inner/x", "/app/login?next=/inner/x"),
        ("/inner", "/app"),
        ("/other", "/other"),
        ("http://inner.test/inner/a#b", "http://a.test/app/a#b"),
        ("http://inner.test/other", "http://a.test/other"),
        ("http://a.test/inner/a", "http://a.test/app/a"),
        (
            "https://elsewhere.test/inner",
            "https://elsewhere.test/inner",
        ),
        ("//elsewhere.test/inner", "//elsewhere.test/inner"),
        ("login", "login"),
    ] {
        let upstream = answer(&format!("Location: {sent}"));
        let proxyd = Config::through(&upstream, rewrite).start();
        let response = proxyd.connect().ask(get("/app/a", &[]));
        assert_eq!(response.fields.all("location"), [expected], "{sent}");
    }
    let cookies = "Set-Cookie: a=1; Path=/inner; HttpOnly\r\n\
                   Set-Cookie: b=2; Domain=.inner.test; Path=/; Secure\r\n\
                   Set-Cookie: c=3; Domain=a.test";
    let upstream = answer(cookies);
    let response = Config::through(&upstream, rewrite)
        .start()
        .connect()
        .ask(get("/app/a", &[]));
    assert_eq!(
        response.fields.all("set-cookie"),
        [
            "a=1; Path=/app; HttpOnly",
            "b=2; Path=/; Secure",
            "c=3; Domain=a.test"
        ]
    );
    // Unchanged, if the route has this policy.
    let kept = format!("{rewrite}\nresponse-headers {{ remove \"X\" }}").replace(
        "\"/inner\" }",
        "\"/inner\"; location #false; cookies #false }",
    );
    let upstream = answer("Location: /inner/a\r\nSet-Cookie: a=1; Path=/inner");
    let fields = Config::through(&upstream, &kept)
        .start()
        .connect()
        .ask(get("/app/a", &[]))
        .fields;
    assert_eq!(fields.get("location"), Some("/inner/a"));
    assert_eq!(fields.get("set-cookie"), Some("a=1; Path=/inner"));
}

#[test]
fn a_location_of_the_target_that_answers_is_written_back() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let location = format!("http://{}/inner/x", listener.local_addr().unwrap());
    let second = Upstream::start_on(listener, move |served| {
        while served.request().is_some() {
            served.send(format!(
                "HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
            ));
        }
    });
    let route = r#"upstream "u"; rewrite { replace-prefix "/app" "/inner" }"#;
    let targets = format!(
        "target \"{}\"; target \"{}\"",
        closed_port(),
        second.address()
    );
    let proxyd = Config::new()
        .route("all", route)
        .upstream("u", &targets)
        .start();

    let response = proxyd.connect().ask(get("/app/a", &[]));

    assert_eq!(response.fields.all("location"), ["http://a.test/app/x"]);
}

#[test]
fn a_stripped_prefix_is_put_before_locations() {
    let upstream = Upstream::answering(
        "HTTP/1.1 201 Created\r\nLocation: /users/7\r\nContent-Location: /users/7\r\n\
         Set-Cookie: s=1; Path=/\r\nContent-Length: 0\r\n\r\n",
    );
    let proxyd = Config::through(&upstream, r#"rewrite { strip-prefix "/api" }"#).start();

    let fields = proxyd.connect().ask(get("/api/users", &[])).fields;

    assert_eq!(fields.get("location"), Some("/api/users/7"));
    assert_eq!(fields.get("content-location"), Some("/api/users/7"));
    assert_eq!(fields.get("set-cookie"), Some("s=1; Path=/api"));
}

#[test]
fn locations_are_written_back_in_all_forms_of_the_upstreams_name() {
    let rewrite = r#"rewrite { strip-prefix "/api" }
        request-headers { set "Host" "in.test" }"#;
    for (sent, expected) in [
        ("http://in.test", "http://a.test/api/"),
        ("http://in.test?q=1", "http://a.test/api/?q=1"),
        ("http://in.test:80/x", "http://a.test/api/x"),
        ("http://in.test:8080/x", "http://in.test:8080/x"),
        ("https://in.test:80/x", "https://in.test:80/x"),
        ("http://a.test:80/x", "http://a.test:80/api/x"),
        ("//in.test/x", "//a.test/api/x"),
        ("//in.test:80", "//a.test/api/"),
        ("//in.test:443/x", "//a.test/api/x"),
        ("//in.test:8080/x", "//in.test:8080/x"),
        ("//a.test/x", "//a.test/api/x"),
        ("///in.test/x", "///in.test/x"),
        ("/caf\u{e9}", "/api/caf\u{e9}"),
    ] {
        let text = format!("HTTP/1.1 302 Found\r\nLocation: {sent}\r\nContent-Length: 0\r\n\r\n");
        let upstream = Upstream::answering(text);
        let proxyd = Config::through(&upstream, rewrite).start();
        let response = proxyd.connect().ask(get("/api/a", &[]));
        assert_eq!(response.fields.all("location"), [expected], "{sent}");
    }
}

#[test]
fn fields_of_a_switch_of_protocols_are_written_back() {
    let upstream = Upstream::start(|served| {
        served.head();
        served.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Set-Cookie: a=b; Domain=in.test; Path=/\r\nLocation: http://in.test/x\r\n\r\n",
        );
        served.end();
    });
    let rewrite = r#"rewrite { strip-prefix "/api" }
        request-headers { set "Host" "in.test" }"#;
    let proxyd = Config::through(&upstream, rewrite).start();
    let mut client = proxyd.connect();

    client.send(get(
        "/api/socket",
        &[("Connection", "Upgrade"), ("Upgrade", "websocket")],
    ));
    let response = client.response();

    assert_eq!(response.status, 101);
    assert_eq!(response.fields.get("set-cookie"), Some("a=b; Path=/api"));
    assert_eq!(response.fields.get("location"), Some("http://a.test/api/x"));
}

#[test]
fn the_path_of_a_cookie_for_the_whole_host_stays() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nSet-Cookie: __Host-s=1; Secure; Path=/\r\n\
         Set-Cookie: s=\u{e9}; Path=/x/\r\nContent-Length: 0\r\n\r\n",
    );
    let proxyd = Config::through(&upstream, r#"rewrite { strip-prefix "/api" }"#).start();

    let fields = proxyd.connect().ask(get("/api", &[])).fields;

    assert_eq!(
        fields.all("set-cookie"),
        ["__Host-s=1; Secure; Path=/", "s=\u{e9}; Path=/api/x/"]
    );
}

#[test]
fn a_path_is_made_of_captures_of_the_regex() {
    let upstream = Upstream::saying("x");
    let proxyd = Config::through(
        &upstream,
        "matches { path-regex \"^/v1/(?P<kind>[a-z]+)(/.*)?$\" }; \
         rewrite { path-from-regex \"/v2$2/${kind}\" }",
    )
    .start();
    let mut client = proxyd.connect();

    for (sent, expected) in [
        ("/v1/users/7?a=b", "/v2/7/users?a=b"),
        ("/v1/users", "/v2/users"),
        ("/v1/users//evil.example", "/v2//evil.example/users"),
    ] {
        assert_eq!(client.ask(get(sent, &[])).status, 200, "{sent}");
        assert_eq!(upstream.last_request().target, expected, "{sent}");
    }
}

#[test]
fn a_path_made_of_captures_never_leaves_its_root_and_names_no_host() {
    let upstream = Upstream::saying("x");
    let proxyd = Config::through(
        &upstream,
        "matches { path-regex \"^/a(.*)z$\" }; rewrite { path-from-regex \"/$1\" }",
    )
    .start();
    let mut client = proxyd.connect();

    assert_eq!(client.ask(get("/a//evil.example/z", &[])).status, 200);
    assert_eq!(upstream.last_request().target, "/evil.example/");
    // The rewritten paths would be `/..` and `/../x/`.
    for sent in ["/a..z", "/a../x/z"] {
        let response = client.ask(get(sent, &[]));
        assert_eq!(response.status, 400, "{sent}");
        assert_eq!(reason(&proxyd, &response), "ambiguous_path");
    }
    assert_eq!(upstream.requests().len(), 1);
}
