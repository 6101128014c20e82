//! Pseudo-header fields of requests. [RFC 9113 §8.3]

use crate::frame_row::{Expected, Row, seen};
use crate::hpack::{BARE, GET, field, fields, request_head};

const METHOD: (&str, &str) = (":method", "GET");
const SCHEME: (&str, &str) = (":scheme", "http");
const HOST: (&str, &str) = (":authority", "a.test");
const PATH: (&str, &str) = (":path", "/");

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    sets(&mut rows);
    methods(&mut rows);
    schemes(&mut rows);
    paths(&mut rows);
    bytes_of_paths(&mut rows);
    rows
}

fn malformed(rows: &mut Vec<Row>, name: impl Into<String>, section: &[u8]) {
    rows.push(Row::head(name, section, Expected::Malformed));
}

fn sets(rows: &mut Vec<Row>) {
    for (name, set) in [
        ("no method", &[SCHEME, HOST, PATH][..]),
        ("no scheme", &[METHOD, HOST, PATH]),
        ("no path", &[METHOD, SCHEME, HOST]),
        ("nothing but a method", &[METHOD]),
        ("nothing but a field", &[("x", "y")]),
        ("no field at all", &[]),
        ("two methods", &[METHOD, METHOD, SCHEME, HOST, PATH]),
        ("two schemes", &[METHOD, SCHEME, SCHEME, HOST, PATH]),
        ("two authorities", &[METHOD, SCHEME, HOST, HOST, PATH]),
        (
            "two different authorities",
            &[METHOD, SCHEME, HOST, (":authority", "b.test"), PATH],
        ),
        ("two paths", &[METHOD, SCHEME, HOST, PATH, PATH]),
        (
            "two different paths",
            &[METHOD, SCHEME, HOST, PATH, (":path", "/b")],
        ),
        (
            "a status",
            &[METHOD, SCHEME, HOST, PATH, (":status", "200")],
        ),
        (
            "an unknown pseudo-header field",
            &[METHOD, SCHEME, HOST, PATH, (":x", "y")],
        ),
        (
            "a pseudo-header field without a name",
            &[METHOD, SCHEME, HOST, PATH, (":", "y")],
        ),
        (
            "a pseudo-header field in capitals",
            &[METHOD, SCHEME, HOST, PATH, (":Path", "/b")],
        ),
        (
            "a path behind a field",
            &[METHOD, SCHEME, HOST, ("x", "y"), PATH],
        ),
        (
            "a method behind a field",
            &[SCHEME, HOST, PATH, ("x", "y"), METHOD],
        ),
        (
            "an authority behind a field",
            &[METHOD, SCHEME, PATH, ("x", "y"), HOST],
        ),
        (
            "a scheme behind a field",
            &[METHOD, HOST, PATH, ("x", "y"), SCHEME],
        ),
        (
            "a second path behind a field",
            &[METHOD, SCHEME, HOST, PATH, ("x", "y"), (":path", "/b")],
        ),
    ] {
        malformed(rows, name, &fields(set));
    }
    // h2 replaces it by `/`, the only possible meaning.
    let pathless = fields(&[METHOD, SCHEME, ("host", "a.test")]);
    rows.push(Row::head(
        "no path and no authority",
        &pathless,
        Expected::Passed(seen("GET", "/")),
    ));
    let any = fields(&[PATH, HOST, SCHEME, METHOD]);
    rows.push(Row::head(
        "pseudo-header fields in another order",
        &any,
        Expected::Passed(seen("GET", "/")),
    ));
}

fn methods(rows: &mut Vec<Row>) {
    for method in [
        "",
        " ",
        "GET ",
        " GET",
        "G T",
        "GET / HTTP/1.1\r\nHost: b.test\r\n\r\nGET",
        "GET\n",
        "GET\0",
        "G@T",
        "G:T",
        "G\u{e9}T",
    ] {
        malformed(
            rows,
            format!("method {method:?}"),
            &request_head(method, "http", "a.test", "/"),
        );
    }
    for method in ["POST", "DELETE", "PATCH", "PROPFIND", "get", "X-Y", "TRACE"] {
        let expected = Expected::Passed(seen(method, "/"));
        rows.push(Row::head(
            format!("method {method}"),
            &request_head(method, "http", "a.test", "/"),
            expected,
        ));
    }
    let all = request_head("OPTIONS", "http", "a.test", "*");
    rows.push(Row::head(
        "OPTIONS of the whole server",
        &all,
        Expected::Passed(seen("OPTIONS", "*")),
    ));
    // The connection preface, as a request.
    malformed(
        rows,
        "method PRI",
        &request_head("PRI", "http", "a.test", "*"),
    );
}

fn schemes(rows: &mut Vec<Row>) {
    for scheme in [
        " ",
        "http:",
        "http://",
        "http://b.test/?",
        "ht tp",
        "http\r\nx: y",
        "1:",
        "\0",
    ] {
        malformed(
            rows,
            format!("scheme {scheme:?}"),
            &request_head("GET", scheme, "a.test", "/"),
        );
    }
    // RFC 9113 §8.3.1 leaves the accepted schemes to the server, and h2 accepts an empty one; the
    // upstream never gets it.
    for scheme in ["", "http", "https", "HTTP"] {
        let section = request_head("GET", scheme, "a.test", "/");
        let expected = Expected::Passed(seen("GET", "/").without("scheme").without(":scheme"));
        rows.push(Row::head(format!("scheme {scheme}"), &section, expected));
    }
}

fn paths(rows: &mut Vec<Row>) {
    for path in [
        "",
        "a",
        "a/b",
        "?a",
        "*",
        "**",
        "*/",
        ".",
        "@b.test/",
        ":80/",
        "http://b.test/",
        " /",
        "/ ",
        "/a b",
        "/a HTTP/1.1\r\nHost: b.test\r\n\r\nGET /b",
        "/..",
        "/..%2fb",
        "/a%00",
    ] {
        malformed(
            rows,
            format!("path {path:?}"),
            &request_head("GET", "http", "a.test", path),
        );
    }
    for path in [
        "/a/b",
        "/a?b=c",
        "/?",
        "//a",
        "/a?b?c/d",
        "/a%20b",
        "/a;b=c",
        "/a:b@c",
        "/a%2fb",
        "//b.test\\",
    ] {
        let expected = Expected::Passed(seen("GET", path));
        rows.push(Row::head(
            format!("path {path:?}"),
            &request_head("GET", "http", "a.test", path),
            expected,
        ));
    }
    let with_host = [BARE, &field("host", "a.test")].concat();
    rows.push(Row::head(
        "a host in place of an authority",
        &with_host,
        Expected::Passed(seen("GET", "/").with("host", "a.test")),
    ));
    rows.push(Row::head(
        "nothing but what must be there",
        GET,
        Expected::Passed(seen("GET", "/").with("host", "a.test")),
    ));
}

/// Targets that HTTP/1.1 refuses are refused here too.
fn bytes_of_paths(rows: &mut Vec<Row>) {
    for byte in (0..=0x20).chain(0x7f..=u8::MAX) {
        for (place, before) in [("path", &b"/a"[..]), ("query", b"/a?")] {
            let path = [before, &[byte], b"b"].concat();
            let section = [&fields(&[METHOD, SCHEME, HOST])[..], &field(":path", path)].concat();
            malformed(rows, format!("byte {byte:#04x} in a {place}"), &section);
        }
    }
    for path in ["/a#b", "/a?b#c", "/#", "/a#?b", "#"] {
        let section = request_head("GET", "http", "a.test", path);
        malformed(rows, format!("path {path:?}"), &section);
    }
    let section = [
        &fields(&[METHOD, SCHEME, HOST])[..],
        &field(":path", "/caf\u{e9}"),
    ]
    .concat();
    malformed(rows, "a path of more than ASCII", &section);
    let section = [
        &fields(&[METHOD, SCHEME, HOST])[..],
        &field(":path", "/a?caf\u{e9}"),
    ]
    .concat();
    malformed(rows, "a query of more than ASCII", &section);
}
