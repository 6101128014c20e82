//! Paths: normalized for matching, forwarded unchanged, refused if they are ambiguous.

use crate::support::{Config, Proxy, refusal, request, target};
use proxy_testkit::{Response, Upstream};

fn secret_and_rest(upstream: &Upstream) -> Config {
    Config::new()
        .upstream("u", &target(upstream))
        .route(
            "secret",
            r#"upstream "u"; matches { path-prefix "/a/secret" }; response-headers { set "X-Route" "secret" }"#,
        )
        .route("rest", r#"upstream "u"; response-headers { set "X-Route" "rest" }"#)
}

fn ask(proxyd: &Proxy, path: &str) -> Response {
    proxyd
        .connect()
        .ask(request(&format!("GET {path}"), "", ""))
}

#[test]
fn paths_are_matched_after_decoding_and_removing_dot_segments() {
    let upstream = Upstream::saying("");
    let strict = secret_and_rest(&upstream).start();
    let forward = secret_and_rest(&upstream).listener(r#"path-policy "forward""#);
    let forward = forward.start();

    for path in [
        "/a/secret",
        "/a/%73ecret",
        "/%61/s%65cret?x",
        "/a/secret/../secret",
        "/a/secret/./x",
    ] {
        for proxyd in [&strict, &forward] {
            let response = ask(proxyd, path);
            assert_eq!(response.fields.get("x-route"), Some("secret"), "{path}");
        }
    }
    // A server that keeps dot segments finds another route for these.
    for path in [
        "/a/./secret",
        "/a/b/../secret/x",
        "/x/%2e%2e/a/secret",
        "/x/.%2E/a/secret",
    ] {
        let response = ask(&forward, path);
        assert_eq!(response.fields.get("x-route"), Some("secret"), "{path}");
        assert_eq!(ask(&strict, path).status, 400, "{path}");
    }
    for path in ["/A/secret", "/a/%20secret", "/a/secrets", "/b;c=/a/secret"] {
        let response = ask(&strict, path);
        assert_eq!(response.fields.get("x-route"), Some("rest"), "{path}");
    }
}

/// A route with a policy, one without, and files; each with its own service.
fn guarded(upstream: &Upstream) -> Config {
    Config::new()
        .upstream("u", &target(upstream))
        .route(
            "private",
            r#"service-type "builtin"; builtin-handler "not-found"; matches { path-prefix "/private" }"#,
        )
        .route("public", r#"upstream "u"; matches { path-prefix "/public" }"#)
        .route("rest", r#"upstream "u""#)
}

#[test]
fn a_path_that_another_server_takes_to_another_route_is_refused() {
    let upstream = Upstream::saying("");
    let proxyd = guarded(&upstream).start();

    for path in [
        "//private/x",
        "/private;a=b/x",
        "/public/..;/private/x",
        "/x/../private/../echo",
        "/x/../private/x",
        "/public/../private/x",
        "/public%2F..%2Fprivate/x",
        "/public%2f%2e%2e%2fprivate/x",
        "/public\\..\\private/x",
        "/public%5C..%5Cprivate",
        "/x;/../private",
        "/;/private",
        "/;a=b/private/x",
        "/.//private/x",
        "/private%3Ba=b/x",
        "/private%2Fx",
        "/x/..//private/x",
        "/private/../x",
        "http://a.test//private/x",
    ] {
        let response = ask(&proxyd, path);
        refusal(&response, 400, "REQUEST_VALIDATION");
        let reason = crate::support::reason(&proxyd, &response);
        assert_eq!(reason, "ambiguous_path", "{path}");
    }
    assert!(upstream.requests().is_empty());
}

#[test]
fn a_path_is_forwarded_unchanged_if_all_readings_agree() {
    let upstream = Upstream::saying("");
    let proxyd = guarded(&upstream).start();

    let targets = [
        "/@scope%2fname",
        "/@scope%2Fname/-/name-1.0.0.tgz",
        "/%40scope%2fname",
        "/a//b",
        "/a\\b;c=d/e%5Cf",
        "/a/./b/../c",
        "/public;v=1/x?y=//private;z",
        "/public//x",
        "/.well-known/x",
        "/a?..;/private",
        "/PRIVATE//x",
    ];
    for path in targets {
        let expected = if path.starts_with("/public;") {
            400
        } else {
            200
        };
        assert_eq!(ask(&proxyd, path).status, expected, "{path}");
    }

    let seen: Vec<String> = upstream
        .requests()
        .into_iter()
        .map(|request| request.target)
        .collect();
    let passed = targets.iter().filter(|path| !path.starts_with("/public;"));
    assert!(seen.iter().eq(passed), "{seen:?}");
}

#[test]
fn a_route_selects_the_reading_of_its_paths() {
    let upstream = Upstream::saying("");
    let config = |listener: &str, route: &str| {
        Config::new()
            .listener(listener)
            .upstream("u", &target(&upstream))
            .route(
                "private",
                r#"service-type "builtin"; builtin-handler "not-found"; matches { path-prefix "/private" }"#,
            )
            .route(
                "files",
                &format!(r#"upstream "u"; matches {{ path-prefix "/files" }}; {route}"#),
            )
            .route("rest", r#"upstream "u""#)
            .start()
    };
    let path = "/files%2Fx";
    let forward = r#"path-policy "forward""#;
    let strict = r#"path-policy "strict""#;

    // The path as sent matches `rest`, so its listener's policy decides.
    assert_eq!(ask(&config("", forward), path).status, 400);
    for (listener, route, status) in [
        ("", forward, 200),
        ("", &format!("policies {{ {forward} }}") as &str, 200),
        ("", "", 400),
        (forward, "", 200),
        (forward, strict, 400),
    ] {
        let proxyd = config(listener, route);
        let reported = ask(&proxyd, "/files/..%2Fprivate").status;
        assert_eq!(reported, status, "{listener} {route}");
    }
}

#[test]
fn the_request_target_is_forwarded_unchanged() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    let targets = [
        "/",
        "/a/../b/./c",
        "/%61%7E%7e",
        "//double//slash/",
        "/q?x=%2F..%5c&y=/../&z=a+b",
        "/?",
        "/a;b=c,d:e@f!$&'()*",
        "/%e2%82%ac/%FF",
        "/a\"<>`{}|^[]",
        "/query?q=up{job=\"x\"}<>`|^",
    ];
    for path in targets {
        assert_eq!(ask(&proxyd, path).status, 200, "{path}");
    }

    let seen: Vec<String> = upstream
        .requests()
        .into_iter()
        .map(|request| request.target)
        .collect();
    assert_eq!(seen, targets);
}

#[test]
fn ambiguous_paths_are_refused() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    for (path, reason) in [
        ("/a%00b", "encoded_nul"),
        ("/a%2f%00b", "encoded_nul"),
        ("/..%2Fb", "path_escapes_root"),
        ("/..%5cb", "path_escapes_root"),
        ("/a/..;/..;/b", "path_escapes_root"),
        ("/..", "path_escapes_root"),
        ("/a/../../b", "path_escapes_root"),
        ("/%2e%2e/b", "path_escapes_root"),
        ("/a/%2E./../b", "path_escapes_root"),
        ("/100%", "bad_path_escape"),
        ("/%zz", "bad_path_escape"),
    ] {
        let response = ask(&proxyd, path);
        refusal(&response, 400, "REQUEST_VALIDATION");
        assert_eq!(crate::support::reason(&proxyd, &response), reason, "{path}");
    }
    let dots = "/.".repeat(40);
    let response = ask(&proxyd, &dots);
    refusal(&response, 400, "REQUEST_VALIDATION");
    assert_eq!(crate::support::reason(&proxyd, &response), "ambiguous_path");
    assert!(upstream.requests().is_empty());
}

#[test]
fn a_listener_may_forward_ambiguous_paths_unchanged() {
    let upstream = Upstream::saying("");
    let config = secret_and_rest(&upstream).listener(r#"path-policy "forward""#);
    let proxyd = config.start();

    for (path, route) in [
        ("/a%2Fsecret", "rest"),
        ("/a/secret/%5C", "secret"),
        ("/..%2f", "rest"),
    ] {
        let response = ask(&proxyd, path);
        assert_eq!(response.fields.get("x-route"), Some(route), "{path}");
        assert_eq!(upstream.requests().last().unwrap().target, path);
    }
}

#[test]
fn connect_is_refused() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    let text = "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n";
    let response = proxyd.connect().ask(text);

    refusal(&response, 405, "REQUEST_VALIDATION");
    assert_eq!(response.fields.get("allow"), Some(""));
    assert!(upstream.requests().is_empty());
}

#[test]
fn a_query_after_an_authority_is_forwarded_with_a_path() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    for (line, target) in [
        ("GET http://a.test?b", "/?b"),
        ("OPTIONS http://a.test?b", "/?b"),
        ("OPTIONS http://a.test", "*"),
        ("OPTIONS http://a.test/", "/"),
    ] {
        assert_eq!(proxyd.connect().ask(request(line, "", "")).status, 200);
        assert_eq!(upstream.requests().last().unwrap().target, target);
    }
}
