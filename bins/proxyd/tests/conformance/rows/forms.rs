//! Forms of targets, methods and versions. [RFC 9112 §2.3, §3.2]

use super::{Expected, Row};
use crate::frame_row::{Seen, seen};

pub(super) fn rows() -> Vec<Row> {
    [
        absolute(),
        no_absolute(),
        asterisks(),
        methods(),
        tunnels(),
        old(),
        paths(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn line(line: &str, host: &str) -> Vec<u8> {
    format!("{line}\r\nHost: {host}\r\n\r\n").into_bytes()
}

fn received_request(line_: &str, host: &str, seen: Seen) -> Row {
    Row::new(
        format!("line {line_:?}, Host {host:?}"),
        line(line_, host),
        Expected::Received(seen),
    )
}

fn absolute() -> Vec<Row> {
    let found = |target: &str| seen("GET", target).with("host", "a.test");
    vec![
        received_request("GET http://a.test/ HTTP/1.1", "a.test", found("/")),
        received_request(
            "GET http://a.test/a?b=c HTTP/1.1",
            "a.test",
            found("/a?b=c"),
        ),
        received_request("GET http://a.test HTTP/1.1", "a.test", found("/")),
        received_request("GET http://a.test?b HTTP/1.1", "a.test", found("/?b")),
        received_request("GET HTTP://a.test/ HTTP/1.1", "a.test", found("/")),
        received_request("GET https://a.test/ HTTP/1.1", "a.test", found("/")),
        // The target has precedence over the field. [RFC 9112 §3.2.2]
        received_request(
            "GET http://a.test/ HTTP/1.1",
            "b.test",
            found("/").with("x-forwarded-host", "a.test"),
        ),
        received_request(
            "GET http://a.test:80/ HTTP/1.1",
            "a.test",
            seen("GET", "/").with("host", "a.test:80"),
        ),
        received_request(
            "GET http://[::1]/ HTTP/1.1",
            "a.test",
            seen("GET", "/").with("host", "[::1]"),
        ),
        received_request(
            "OPTIONS http://a.test/ HTTP/1.1",
            "a.test",
            seen("OPTIONS", "/"),
        ),
        // A target without a path concerns the whole server. [RFC 9112 §3.2.4]
        received_request(
            "OPTIONS http://a.test HTTP/1.1",
            "a.test",
            seen("OPTIONS", "*").with("host", "a.test"),
        ),
        received_request(
            "OPTIONS http://a.test?q HTTP/1.1",
            "a.test",
            seen("OPTIONS", "/?q"),
        ),
    ]
}

fn no_absolute() -> Vec<Row> {
    let mut rows = Vec::new();
    for target in [
        "http:/a.test/",
        "http:a.test/",
        "//",
        "ftp://a.test/",
        "file:///etc/passwd",
        "http://u:p@a.test/",
        "http://a.test@b.test/",
        "http://a.test\\/",
        "http://a.test/#x",
        "http://a b/",
        "http://a,b/",
        "http://a%41/",
        "http://a.test:x/",
        "http://a.test:65536/",
        "http://[::1/",
        "http://:80/",
        "ws://a.test/",
        "gopher://a.test",
    ] {
        let bytes = line(&format!("GET {target} HTTP/1.1"), "a.test");
        let expected = match target {
            // An ordinary path.
            "//" => Expected::Passed {
                target: "//",
                body: "",
            },
            _ => Expected::Refused(400),
        };
        rows.push(Row::new(
            format!("absolute target {target:?}"),
            bytes,
            expected,
        ));
    }
    rows
}

fn asterisks() -> Vec<Row> {
    let mut rows = vec![received_request(
        "OPTIONS * HTTP/1.1",
        "a.test",
        seen("OPTIONS", "*"),
    )];
    for text in [
        "GET * HTTP/1.1",
        "POST * HTTP/1.1",
        "OPTIONS ** HTTP/1.1",
        "OPTIONS */ HTTP/1.1",
        "OPTIONS *?a HTTP/1.1",
        "options * HTTP/1.1",
    ] {
        rows.push(Row::new(
            format!("line {text:?}"),
            line(text, "a.test"),
            Expected::Refused(400),
        ));
    }
    rows
}

fn methods() -> Vec<Row> {
    let mut rows = Vec::new();
    for method in [
        "POST",
        "PUT",
        "DELETE",
        "PATCH",
        "TRACE",
        "PROPFIND",
        "get",
        "X",
        "M-SEARCH",
        "!#$%&'*+-.^_`|~",
    ] {
        let bytes = line(&format!("{method} /m HTTP/1.1"), "a.test");
        rows.push(Row::new(
            format!("method {method}"),
            bytes,
            Expected::Received(seen(method, "/m")),
        ));
    }
    for method in [
        "", "GE T", "GET\0", "GET:", "GET/", "\"GET\"", "GET,POST", "[GET]", "{GET}", "GET\x7f",
    ] {
        let bytes = line(&format!("{method} / HTTP/1.1"), "a.test");
        rows.push(Row::new(
            format!("method {method:?}"),
            bytes,
            Expected::Refused(400),
        ));
    }
    rows
}

fn tunnels() -> Vec<Row> {
    let message = |text: &str| {
        Row::new(
            format!("line {text:?}"),
            line(text, "a.test:443"),
            Expected::Answered(405),
        )
    };
    let refused = |text: &str| {
        Row::new(
            format!("line {text:?}"),
            line(text, "a.test:443"),
            Expected::Refused(400),
        )
    };
    vec![
        message("CONNECT a.test:443 HTTP/1.1"),
        message("CONNECT [::1]:443 HTTP/1.1"),
        refused("CONNECT a.test HTTP/1.1"),
        refused("CONNECT / HTTP/1.1"),
        refused("CONNECT * HTTP/1.1"),
        refused("CONNECT http://a.test:443/ HTTP/1.1"),
        refused("CONNECT u@a.test:443 HTTP/1.1"),
        refused("CONNECT a.test:443/ HTTP/1.1"),
        refused("CONNECT a.test: HTTP/1.1"),
        refused("GET a.test:443 HTTP/1.1"),
    ]
}

fn old() -> Vec<Row> {
    let expected = || {
        Expected::Received(
            seen("GET", "/")
                .with("via", "1.0 proxyd")
                .without("connection"),
        )
    };
    vec![
        Row::new(
            "HTTP/1.0 with a host",
            line("GET / HTTP/1.0", "a.test"),
            expected(),
        ),
        Row::new(
            "HTTP/1.0 without a host",
            *b"GET / HTTP/1.0\r\n\r\n",
            expected(),
        ),
        Row::new(
            "HTTP/1.0 that keeps its connection",
            *b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            expected(),
        ),
        Row::new(
            "HTTP/1.0 with a body",
            *b"POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi",
            Expected::Received(seen("POST", "/").body("hi").with("content-length", "2")),
        ),
        Row::new(
            "HTTP/1.0 with an upgrade",
            *b"GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
            Expected::Received(seen("GET", "/").without("upgrade").without("connection")),
        ),
        Row::new(
            "HTTP/1.0 with two hosts",
            *b"GET / HTTP/1.0\r\nHost: a.test\r\nHost: a.test\r\n\r\n",
            Expected::Refused(400),
        ),
        Row::new(
            "HTTP/1.0 that ends the connection to upstreams",
            *b"GET / HTTP/1.0\r\nConnection: close, x-kept\r\nX-Kept: 1\r\n\r\n",
            Expected::Received(seen("GET", "/").without("x-kept").without("connection")),
        ),
        Row::new("HTTP/0.9", *b"GET /\r\n", Expected::Refused(400)),
        Row::new(
            "HTTP/1.2",
            line("GET / HTTP/1.2", "a.test"),
            Expected::Refused(400),
        ),
        Row::new(
            "HTTP/2.0",
            line("GET / HTTP/2.0", "a.test"),
            Expected::Refused(400),
        ),
        Row::new(
            "HTTP/0.9 spelt out",
            line("GET / HTTP/0.9", "a.test"),
            Expected::Refused(400),
        ),
    ]
}

/// Paths that are invalid in some reading are refused by default; ambiguous ones are accepted if
/// all readings lead to the same route.
fn paths() -> Vec<Row> {
    let mut rows = Vec::new();
    for path in [
        "/a%00b",
        "/..%2fb",
        "/..;/b",
        "/..",
        "/../a",
        "/a/../../b",
        "/%2e%2e/b",
        "/.%2e/",
        "/%",
        "/%z",
        "/%0",
        "/..\\b",
    ] {
        let bytes = line(&format!("GET {path} HTTP/1.1"), "a.test");
        rows.push(Row::new(
            format!("path {path}"),
            bytes,
            Expected::Answered(400),
        ));
    }
    for path in [
        "/a/../b",
        "/./a",
        "/a/..",
        "/%61",
        "/%7e",
        "/%0d%0aX:%20y",
        "/a//b",
        "/a%3fb",
        "/a%23b",
        "/%25%32%66",
        "/a%2fb",
        "/a%2Fb",
        "/a%5cb",
        "/a\\b",
    ] {
        let bytes = line(&format!("GET {path} HTTP/1.1"), "a.test");
        rows.push(Row::new(
            format!("path {path}"),
            bytes,
            Expected::Received(seen("GET", path)),
        ));
    }
    rows
}
