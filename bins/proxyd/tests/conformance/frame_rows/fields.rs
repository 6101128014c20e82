//! Header fields that HTTP/2 or HTTP/1.1 cannot represent, and fields that are rewritten. [RFC 9113
//! §8.2]

use crate::frame_row::{Expected, Row, seen};
use crate::frames::{ENHANCE_YOUR_CALM, head_in_pieces};
use crate::hpack::{GET, field, fields, get_with, request_head};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    names(&mut rows);
    values(&mut rows);
    of_the_connection(&mut rows);
    ours(&mut rows);
    too_large(&mut rows);
    rows
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn malformed(rows: &mut Vec<Row>, name: String, section: &[u8]) {
    rows.push(Row::head(name, section, Expected::Malformed));
}

fn names(rows: &mut Vec<Row>) {
    for byte in (0..=u8::MAX).filter(|byte| !is_name(*byte)) {
        let name = [b"x", &[byte][..], b"y"].concat();
        malformed(
            rows,
            format!("byte {byte:#04x} in a name"),
            &get_with(name, "v"),
        );
    }
    for name in [
        "X",
        "Content-Length",
        "transfer-encoding ",
        " transfer-encoding",
        "transfer-encoding:",
        "host: b.test\r\nx",
        "x\r\n",
        "\r\n",
        "x: y\r\nz",
    ] {
        malformed(rows, format!("name {name:?}"), &get_with(name, "v"));
    }
}

fn values(rows: &mut Vec<Row>) {
    let controls = (0..=0x1f).chain([0x7f]).filter(|byte| *byte != b'\t');
    for byte in controls {
        let value = [b"a", &[byte][..], b"b"].concat();
        malformed(
            rows,
            format!("byte {byte:#04x} in a value"),
            &get_with("x", value),
        );
    }
    for value in [
        " a",
        "a ",
        "\ta",
        "a\t",
        " ",
        "\t",
        "a\r\nx: y",
        "a\r\n\r\nGET /b HTTP/1.1\r\n",
        "\r\na",
        "a\r\n",
        "a\r\n b",
    ] {
        malformed(rows, format!("value {value:?}"), &get_with("x", value));
    }
    for value in ["", "a\tb", "a b", "\"q\"", "caf\u{e9}", "a:b", ",,"] {
        let expected = Expected::Passed(seen("GET", "/").with("x", value));
        rows.push(Row::head(
            format!("value {value:?}"),
            &get_with("x", value),
            expected,
        ));
    }
}

fn of_the_connection(rows: &mut Vec<Row>) {
    for (name, value) in [
        ("connection", "close"),
        ("connection", "keep-alive"),
        ("connection", "host"),
        ("connection", ""),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("transfer-encoding", "identity"),
        ("transfer-encoding", ""),
        ("upgrade", "websocket"),
        ("upgrade", "h2c"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
        ("te", "trailers;q=0.5"),
        ("te", ""),
    ] {
        malformed(rows, format!("{name}: {value}"), &get_with(name, value));
    }
    let passed = |rows: &mut Vec<Row>, name: &str, section: &[u8], seen| {
        rows.push(Row::head(name, section, Expected::Passed(seen)));
    };
    let get = || seen("GET", "/");
    passed(
        rows,
        "te: trailers",
        &get_with("te", "trailers"),
        get().with("te", "trailers").with("connection", "te"),
    );
    passed(
        rows,
        "http2-settings",
        &get_with("http2-settings", "AAMAAABkAAQAAP__"),
        get().without("http2-settings"),
    );
    passed(
        rows,
        "trailer",
        &get_with("trailer", "x-sum"),
        get().without("trailer"),
    );
    rows.push(Row::head(
        "an expectation nobody knows",
        &get_with("expect", "miracles"),
        Expected::Answered(417),
    ));
    passed(
        rows,
        "an expectation without a body",
        &get_with("expect", "100-continue"),
        get().without("expect"),
    );
}

fn ours(rows: &mut Vec<Row>) {
    let crumbs = [
        GET,
        &field("cookie", "a=1"),
        &field("x", "y"),
        &field("cookie", "b=2"),
        &field("cookie", "c=3"),
    ]
    .concat();
    for (name, section, seen) in [
        (
            "crumbs of a cookie",
            crumbs,
            seen("GET", "/").with("cookie", "a=1; b=2; c=3"),
        ),
        (
            "one cookie",
            get_with("cookie", "a=1; b=2"),
            seen("GET", "/").with("cookie", "a=1; b=2"),
        ),
        (
            "an address that the client claims",
            get_with("x-forwarded-for", "10.0.0.1"),
            seen("GET", "/").with("x-forwarded-for", "127.0.0.1"),
        ),
        (
            "a host that the client claims",
            get_with("x-forwarded-host", "b.test"),
            seen("GET", "/").with("x-forwarded-host", "a.test"),
        ),
        (
            "a way that the client claims",
            get_with("via", "1.0 b.test"),
            seen("GET", "/").with("via", "2 proxyd"),
        ),
        (
            "a Forwarded field that the client claims",
            get_with("forwarded", "for=10.0.0.1"),
            seen("GET", "/").without("forwarded"),
        ),
        (
            "a correlation ID",
            get_with("x-correlation-id", "abc-1"),
            seen("GET", "/").with("x-correlation-id", "abc-1"),
        ),
    ] {
        rows.push(Row::head(name, &section, Expected::Passed(seen)));
    }
    let two = [GET, &field("x", "1"), &field("x", "2")].concat();
    rows.push(Row::head(
        "one name twice",
        &two,
        Expected::Passed(seen("GET", "/")),
    ));
}

/// The limits' defaults; h2's own limit is far above them.
fn too_large(rows: &mut Vec<Row>) {
    let many = |count: usize, length: usize| {
        let value = "v".repeat(length);
        let each = (0..count).map(|number| field(format!("x{number}"), &value));
        [GET, &each.collect::<Vec<_>>().concat()].concat()
    };
    let long_path = ["/", &"p".repeat(16_000)].concat();
    for (name, section) in [
        ("101 fields", many(101, 1)),
        ("a name of 257 bytes", get_with("x".repeat(257), "v")),
        ("a value of 4097 bytes", get_with("x", "v".repeat(4_097))),
        ("fields of more than 8192 bytes", many(3, 3_000)),
    ] {
        rows.push(Row::head(name, &section, Expected::Answered(429)));
    }
    let whole = fields(&[
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "a.test"),
        (":path", &long_path),
    ]);
    rows.push(in_pieces(
        "a long path",
        &whole,
        Expected::Passed(seen("GET", long_path)),
    ));
    let longer = request_head(
        "GET",
        "http",
        "a.test",
        &["/", &"p".repeat(17_000)].concat(),
    );
    rows.push(in_pieces(
        "a path of more than 16 KiB",
        &longer,
        Expected::Answered(429),
    ));
    // Answered by h2 itself.
    rows.push(in_pieces(
        "fields of more than 64 KiB",
        &many(17, 4_000),
        Expected::Answered(431),
    ));
    let beyond = in_pieces(
        "fields beyond measure",
        &many(80, 4_000),
        Expected::Ended(&[ENHANCE_YOUR_CALM]),
    );
    rows.push(beyond);
}

fn in_pieces(name: &str, section: &[u8], expected: Expected) -> Row {
    Row::new(name, head_in_pieces(1, section), expected)
}
