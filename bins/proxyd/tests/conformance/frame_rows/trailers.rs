//! What comes behind a body. [RFC 9113 §8.1, RFC 9110 §6.5]

use crate::frame_row::{Row, Want, seen};
use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PROTOCOL_ERROR, STREAM_CLOSED, WHOLE,
    frame,
};
use crate::hpack::{POST, field, fields, post_with};

const BROKEN: Want = Want::Reset(&[PROTOCOL_ERROR]);

pub(super) fn rows() -> Vec<Row> {
    let mut rows = broken();
    rows.extend(dropped());
    rows.extend(passed());
    rows
}

/// A body of two bytes, and this behind it.
fn behind(frames: &[u8]) -> Vec<u8> {
    let head = frame(HEADERS, END_HEADERS, 1, POST);
    [&head, &frame(DATA, 0, 1, b"hi"), frames].concat()
}

fn trailers(section: &[u8]) -> Vec<u8> {
    frame(HEADERS, WHOLE, 1, section)
}

fn broken() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, section) in [
        ("a name in capitals", field("X-Sum", "1")),
        ("a name with a space", field("x sum", "1")),
        ("a name with a colon", field("x:sum", "1")),
        ("a name with a line end", field("x\r\ny", "1")),
        ("a value with a line end", field("x", "1\r\ny: z")),
        ("a value with a bare LF", field("x", "1\ny: z")),
        ("a value with a bare CR", field("x", "1\ry")),
        ("a value with a zero", field("x", "1\0")),
        ("a field of the connection", field("connection", "close")),
        ("a coding", field("transfer-encoding", "chunked")),
        ("an upgrade", field("upgrade", "h2c")),
        ("a keep-alive", field("keep-alive", "timeout=5")),
        ("an unknown pseudo-header field", field(":x", "y")),
        ("a broken index", b"\xff\x80\x80\x01".to_vec()),
        (
            "a pseudo-header field behind another",
            fields(&[("x", "y"), (":path", "/b")]),
        ),
    ] {
        rows.push(Row::new(
            format!("trailers with {name}"),
            behind(&trailers(&section)),
            BROKEN,
        ));
    }
    let sum = field("x-sum", "1");
    rows.push(Row::new(
        "trailers that do not end their stream",
        behind(&frame(HEADERS, END_HEADERS, 1, &sum)),
        BROKEN,
    ));
    let closed = Want::Reset(&[STREAM_CLOSED, PROTOCOL_ERROR]);
    let waiting = frame(HEADERS, END_HEADERS, 1, crate::hpack::WAITING_POST);
    rows.push(Row::new(
        "DATA behind trailers",
        [
            &waiting[..],
            &trailers(&sum),
            &frame(DATA, END_STREAM, 1, b"x"),
        ]
        .concat(),
        closed,
    ));
    let closed = Want::Reset(&[STREAM_CLOSED, PROTOCOL_ERROR]);
    rows.push(Row::new(
        "trailers behind trailers",
        [&waiting[..], &trailers(&sum), &trailers(&sum)].concat(),
        closed,
    ));
    let interrupted = [
        frame(HEADERS, END_STREAM, 1, &sum),
        frame(DATA, END_STREAM, 1, b"x"),
    ]
    .concat();
    rows.push(Row::new(
        "trailers that DATA interrupts",
        behind(&interrupted),
        BROKEN,
    ));
    rows
}

/// Fields that say something about the message, its way or its sender are of no use behind it, and
/// those who add trailers to headers must not be misled by them.
fn dropped() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, value) in [
        ("content-length", "5"),
        ("host", "b.test"),
        ("te", "trailers"),
        ("trailer", "x"),
        ("expect", "100-continue"),
        ("authorization", "Basic eDp5"),
        ("cookie", "admin=1"),
        ("content-type", "text/html"),
        ("content-encoding", "gzip"),
        ("x-forwarded-for", "10.0.0.1"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "b.test"),
        ("forwarded", "for=10.0.0.1"),
        ("via", "1.0 b.test"),
        ("x-correlation-id", "forged"),
    ] {
        let section = [field(name, value), field("x-sum", "1")].concat();
        let want = Want::Passed(seen("POST", "/").body("hi").trailer("x-sum", "1"));
        rows.push(Row::new(
            format!("{name} behind a body"),
            behind(&trailers(&section)),
            want,
        ));
    }
    // h2 leaves it out, and nobody behind it knows that it was there.
    let section = fields(&[(":path", "/b"), ("x-sum", "1")]);
    let want = Want::Passed(seen("POST", "/").body("hi").trailer("x-sum", "1"));
    rows.push(Row::new(
        "a path behind a body",
        behind(&trailers(&section)),
        want,
    ));
    rows
}

fn passed() -> Vec<Row> {
    let sum = field("x-sum", "1");
    let found = || seen("POST", "/").body("hi");
    let in_pieces = [
        frame(HEADERS, END_STREAM, 1, &sum[..3]),
        frame(CONTINUATION, END_HEADERS, 1, &sum[3..]),
    ]
    .concat();
    let told = frame(HEADERS, END_HEADERS, 1, &post_with("content-length", "2"));
    let alone = frame(HEADERS, END_HEADERS, 1, POST);
    vec![
        Row::new(
            "trailers",
            behind(&trailers(&sum)),
            Want::Passed(found().trailer("x-sum", "1")),
        ),
        Row::new(
            "trailers in pieces",
            behind(&in_pieces),
            Want::Passed(found().trailer("x-sum", "1")),
        ),
        Row::new(
            "trailers without any",
            behind(&trailers(&[])),
            Want::Passed(found()),
        ),
        Row::new(
            "trailers without a body",
            [&alone[..], &trailers(&sum)].concat(),
            Want::Passed(seen("POST", "/").trailer("x-sum", "1")),
        ),
        // HTTP/1.1 has no place for them behind a length.
        Row::new(
            "trailers behind a body whose length was said",
            [&told[..], &frame(DATA, 0, 1, b"hi"), &trailers(&sum)].concat(),
            Want::Passed(found().with("content-length", "2")),
        ),
    ]
}
