//! Trailers. [RFC 9113 §8.1, RFC 9110 §6.5]

use crate::frame_row::{Expected, Row, seen};
use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PADDED, PROTOCOL_ERROR, STREAM_CLOSED,
    WHOLE, WITH_PRIORITY, frame,
};
use crate::hpack::{POST, field, fields, post_with};

const BROKEN: Expected = Expected::Reset(&[PROTOCOL_ERROR]);

pub(super) fn rows() -> Vec<Row> {
    let mut rows = broken();
    rows.extend(led_by_pseudo_header_fields());
    rows.extend(led_by_a_path_in_other_frames());
    rows.extend(dropped());
    rows.extend(passed());
    rows.extend(passed_in_other_frames());
    rows
}

/// A body of two bytes, followed by this.
fn after(frames: &[u8]) -> Vec<u8> {
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
            after(&trailers(&section)),
            BROKEN,
        ));
    }
    let sum = field("x-sum", "1");
    rows.push(Row::new(
        "trailers that do not end their stream",
        after(&frame(HEADERS, END_HEADERS, 1, &sum)),
        BROKEN,
    ));
    let closed = Expected::Reset(&[STREAM_CLOSED, PROTOCOL_ERROR]);
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
    let closed = Expected::Reset(&[STREAM_CLOSED, PROTOCOL_ERROR]);
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
        after(&interrupted),
        BROKEN,
    ));
    rows
}

/// Fields about framing, routing or the sender are not allowed in trailers, because a receiver that
/// merges trailers into the headers would be misled.
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
        let expected = Expected::Passed(seen("POST", "/").body("hi").trailer("x-sum", "1"));
        rows.push(Row::new(
            format!("{name} behind a body"),
            after(&trailers(&section)),
            expected,
        ));
    }
    rows
}

/// Pseudo-header fields at the beginning of a trailer section, in each form of HPACK. [RFC 9113
/// §8.1]
fn led_by_pseudo_header_fields() -> Vec<Row> {
    let sum = field("x-sum", "1");
    let table = [&[0x40][..], &field(":path", "/b")[1..]].concat();
    let mut rows = Vec::new();
    for (name, section) in [
        (":method", field(":method", "GET")),
        (":scheme", field(":scheme", "http")),
        (":authority", field(":authority", "b.test")),
        (":path", field(":path", "/b")),
        (":protocol", field(":protocol", "websocket")),
        (":status", field(":status", "200")),
        ("an indexed :method", b"\x82".to_vec()),
        ("an indexed :path", b"\x84".to_vec()),
        ("an indexed :status", b"\x88".to_vec()),
        ("a :path with an indexed name", b"\x04\x02/b".to_vec()),
        (
            "a :path that is never to be indexed",
            b"\x14\x02/b".to_vec(),
        ),
        ("a :path that enters the table", table),
        (
            "a :path in Huffman's code",
            b"\x00\x84\xb9\x58\xd3\x3f\x02/b".to_vec(),
        ),
        ("a :authority from the table", b"\xbe".to_vec()),
        (
            "a :path behind a new table size",
            [&b"\x20"[..], &field(":path", "/b")].concat(),
        ),
        (
            "a :path behind two table sizes",
            [&b"\x20\x3f\xe1\x1f"[..], &field(":path", "/b")].concat(),
        ),
    ] {
        for more in [&[][..], &sum] {
            let section = [&section, more].concat();
            rows.push(Row::new(
                format!("trailers led by {name}, {} bytes", section.len()),
                after(&trailers(&section)),
                BROKEN,
            ));
        }
    }
    rows
}

/// A section in two frames; the first has this many bytes.
fn in_two(section: &[u8], at: usize) -> Vec<u8> {
    let (first, rest) = section.split_at(at);
    [
        frame(HEADERS, END_STREAM, 1, first),
        frame(CONTINUATION, END_HEADERS, 1, rest),
    ]
    .concat()
}

/// The same in frames of other forms.
fn led_by_a_path_in_other_frames() -> Vec<Row> {
    let (path, sum) = (field(":path", "/b"), field("x-sum", "1"));
    let long = field("x-long", "v".repeat(16_384 - 10 - 11));
    let full = [&path[..], &long].concat();
    assert_eq!(full.len(), 16_384);
    let next = [&path[..], &sum].concat();
    let resized = [
        frame(HEADERS, END_STREAM, 1, b"\x3f"),
        frame(CONTINUATION, 0, 1, b"\xe1\x1f"),
        frame(CONTINUATION, END_HEADERS, 1, &path),
    ]
    .concat();
    let padded = [&[3], &path[..], &[0; 3]].concat();
    let prior = [&[0, 0, 0, 0, 16], &path[..]].concat();
    let filling = [
        frame(HEADERS, END_STREAM, 1, &full),
        frame(CONTINUATION, END_HEADERS, 1, &[]),
    ]
    .concat();
    let rows = [
        ("in a CONTINUATION", in_two(&path, 0)),
        ("in two frames", in_two(&path, 3)),
        (
            "with the next field cut in two",
            in_two(&next, path.len() + 4),
        ),
        ("and that fill a frame", filling),
        ("behind a table size in two frames", resized),
        ("with padding", frame(HEADERS, WHOLE | PADDED, 1, &padded)),
        (
            "with a priority",
            frame(HEADERS, WHOLE | WITH_PRIORITY, 1, &prior),
        ),
    ];
    // In a head too: the library misses a malformed field before a division.
    let head = [POST, &field("connection", "close"), &sum].concat();
    let cut_head = Row::new(
        "a field of the connection in front of one that is cut in two",
        in_two(&head, head.len() - 3),
        BROKEN,
    );
    let led = |(name, frames): (&str, Vec<u8>)| {
        Row::new(
            format!("trailers led by :path {name}"),
            after(&frames),
            BROKEN,
        )
    };
    rows.into_iter().map(led).chain([cut_head]).collect()
}

fn passed() -> Vec<Row> {
    let sum = field("x-sum", "1");
    let found = || seen("POST", "/").body("hi");
    let post_head = frame(HEADERS, END_HEADERS, 1, &post_with("content-length", "2"));
    let alone = frame(HEADERS, END_HEADERS, 1, POST);
    vec![
        Row::new(
            "trailers",
            after(&trailers(&sum)),
            Expected::Passed(found().trailer("x-sum", "1")),
        ),
        Row::new(
            "trailers without any",
            after(&trailers(&[])),
            Expected::Passed(found()),
        ),
        Row::new(
            "trailers without a body",
            [&alone[..], &trailers(&sum)].concat(),
            Expected::Passed(seen("POST", "/").trailer("x-sum", "1")),
        ),
        // HTTP/1.1 cannot send them after a length.
        Row::new(
            "trailers behind a body whose length was said",
            [&post_head[..], &frame(DATA, 0, 1, b"hi"), &trailers(&sum)].concat(),
            Expected::Passed(found().with("content-length", "2")),
        ),
    ]
}

/// The same in frames of other forms.
fn passed_in_other_frames() -> Vec<Row> {
    let sum = field("x-sum", "1");
    let found = || seen("POST", "/").body("hi");
    // One field that is left out, of the size of a whole frame.
    let filling = field("via", "v".repeat(16_384 - 8 - sum.len()));
    let full = [&sum[..], &filling].concat();
    assert_eq!(full.len(), 16_384);
    let full = trailers(&full);
    vec![
        Row::new(
            "trailers behind a new table size",
            after(&trailers(&[b"\x20", &sum[..]].concat())),
            Expected::Passed(found().trailer("x-sum", "1")),
        ),
        Row::new(
            "trailers of nothing but a new table size",
            after(&trailers(b"\x20")),
            Expected::Passed(found()),
        ),
        Row::new(
            "trailers with padding",
            after(&frame(
                HEADERS,
                WHOLE | PADDED,
                1,
                &[&[2], &sum[..], &[0; 2]].concat(),
            )),
            Expected::Passed(found().trailer("x-sum", "1")),
        ),
        Row::new(
            "trailers with a priority",
            after(&frame(
                HEADERS,
                WHOLE | WITH_PRIORITY,
                1,
                &[&[0, 0, 0, 0, 16], &sum[..]].concat(),
            )),
            Expected::Passed(found().trailer("x-sum", "1")),
        ),
        Row::new(
            "trailers that fill a frame, above the limits of a head",
            after(&full),
            Expected::Answered(429),
        ),
        Row::new(
            "trailers in pieces",
            after(&in_two(&sum, 3)),
            Expected::Passed(found().trailer("x-sum", "1")),
        ),
    ]
}
