//! Paths: matched in one form, sent upstream as they came, refused where they could be read two ways.

use crate::support::{Config, refusal, request, target};
use proxy_testkit::{Proxyd, Response, Upstream};

fn secret_and_rest(upstream: &Upstream) -> Config {
    Config::new()
        .upstream("u", &target(upstream))
        .route(
            "secret",
            r#"upstream "u"; matches { path-prefix "/a/secret" }; response-headers { set "X-Route" "secret" }"#,
        )
        .route("rest", r#"upstream "u"; response-headers { set "X-Route" "rest" }"#)
}

fn ask(proxyd: &Proxyd, path: &str) -> Response {
    proxyd
        .connect()
        .ask(request(&format!("GET {path}"), "", ""))
}

#[test]
fn paths_are_matched_after_decoding_and_removing_dot_segments() {
    let upstream = Upstream::saying("");
    let proxyd = secret_and_rest(&upstream).start();

    for path in [
        "/a/secret",
        "/a/./secret",
        "/a/b/../secret/x",
        "/a/%73ecret",
        "/%61/s%65cret?x",
        "/x/%2e%2e/a/secret",
        "/x/.%2E/a/secret",
        "/a/secret/../secret",
    ] {
        let response = ask(&proxyd, path);
        assert_eq!(response.fields.get("x-route"), Some("secret"), "{path}");
    }
    for path in [
        "/a//secret",
        "//a/secret",
        "/a/secret/..",
        "/A/secret",
        "/a/%20secret",
    ] {
        let response = ask(&proxyd, path);
        assert_eq!(response.fields.get("x-route"), Some("rest"), "{path}");
    }
}

#[test]
fn the_target_goes_upstream_byte_for_byte() {
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
        ("/a%2fb", "encoded_slash"),
        ("/a%2Fb", "encoded_slash"),
        ("/a%5cb", "encoded_backslash"),
        ("/a%5C..%5Cb", "encoded_backslash"),
        ("/a%00b", "encoded_nul"),
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
    assert!(upstream.requests().is_empty());
}

#[test]
fn a_listener_may_forward_ambiguous_paths_as_they_came() {
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
fn a_query_behind_an_authority_does_not_go_upstream_without_a_path() {
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
