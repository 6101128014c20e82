//! Frames above the maximum size, or of an invalid size for their type. [RFC 9113 §4.2, §6]
//!
//! The standard requires `FRAME_SIZE_ERROR`; `h2` sends `PROTOCOL_ERROR` for a frame that is too
//! short or too long for its type. Both end the connection before the frame has an effect.

use crate::frame_row::{Expected, Row, seen};
use crate::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, FRAME_SIZE_ERROR, GOAWAY, HEADERS, PADDED,
    PING, PRIORITY, PROTOCOL_ERROR, PUSH_PROMISE, RST_STREAM, SETTINGS, WHOLE, WINDOW_UPDATE,
    WITH_PRIORITY, frame,
};
use crate::hpack::{GET, POST, WAITING_POST, field};

const SIZE: Expected = Expected::Ended(&[FRAME_SIZE_ERROR, PROTOCOL_ERROR]);
const TOO_LARGE: Expected = Expected::Ended(&[FRAME_SIZE_ERROR]);
const PROTOCOL: Expected = Expected::Ended(&[PROTOCOL_ERROR]);

pub(super) fn rows() -> Vec<Row> {
    [kinds(), largest(), padded_data(), padded_heads()]
        .into_iter()
        .flatten()
        .collect()
}

fn kinds() -> Vec<Row> {
    let open = frame(HEADERS, END_HEADERS, 1, WAITING_POST);
    let mut rows = Vec::new();
    for (name, kind, flags, length, on_stream) in [
        ("PING of 7 bytes", PING, 0, 7, false),
        ("PING of 9 bytes", PING, 0, 9, false),
        ("PING of no bytes", PING, 0, 0, false),
        ("SETTINGS of 5 bytes", SETTINGS, 0, 5, false),
        ("SETTINGS of 7 bytes", SETTINGS, 0, 7, false),
        (
            "an acknowledgement of SETTINGS with a payload",
            SETTINGS,
            ACK,
            6,
            false,
        ),
        ("WINDOW_UPDATE of 3 bytes", WINDOW_UPDATE, 0, 3, false),
        ("WINDOW_UPDATE of 5 bytes", WINDOW_UPDATE, 0, 5, false),
        ("WINDOW_UPDATE of no bytes", WINDOW_UPDATE, 0, 0, false),
        ("GOAWAY of 7 bytes", GOAWAY, 0, 7, false),
        ("GOAWAY of no bytes", GOAWAY, 0, 0, false),
        ("RST_STREAM of 3 bytes", RST_STREAM, 0, 3, true),
        ("RST_STREAM of 5 bytes", RST_STREAM, 0, 5, true),
        ("RST_STREAM of no bytes", RST_STREAM, 0, 0, true),
        ("PRIORITY of 4 bytes", PRIORITY, 0, 4, true),
        ("PRIORITY of 6 bytes", PRIORITY, 0, 6, true),
        ("PRIORITY of no bytes", PRIORITY, 0, 0, true),
        (
            "WINDOW_UPDATE of 5 bytes on a stream",
            WINDOW_UPDATE,
            0,
            5,
            true,
        ),
        (
            "PUSH_PROMISE of 3 bytes",
            PUSH_PROMISE,
            END_HEADERS,
            3,
            true,
        ),
    ] {
        let wrong = frame(kind, flags, u32::from(on_stream), &vec![0; length]);
        let before = if on_stream { &open[..] } else { &[] };
        rows.push(Row::new(name, [before, &wrong].concat(), SIZE));
    }
    rows
}

fn largest() -> Vec<Row> {
    let mut rows = Vec::new();
    let open = frame(HEADERS, END_HEADERS, 1, WAITING_POST);
    for (name, kind, flags, stream) in [
        ("SETTINGS", SETTINGS, 0, 0),
        ("PING", PING, 0, 0),
        ("GOAWAY", GOAWAY, 0, 0),
        ("HEADERS", HEADERS, WHOLE, 3),
        ("DATA", DATA, END_STREAM, 1),
        ("CONTINUATION", CONTINUATION, END_HEADERS, 1),
        ("an unknown frame", 0x42, 0, 0),
        ("PRIORITY", PRIORITY, 0, 1),
        ("RST_STREAM", RST_STREAM, 0, 1),
        ("WINDOW_UPDATE", WINDOW_UPDATE, 0, 0),
    ] {
        let large = frame(kind, flags, stream, &vec![0; 16_385]);
        let name = format!("{name} of 16385 bytes");
        rows.push(Row::new(name, [&open[..], &large].concat(), TOO_LARGE));
    }
    let body = vec![b'x'; 16_384];
    rows.push(Row::new(
        "DATA of 16384 bytes",
        [
            frame(HEADERS, END_HEADERS, 1, POST),
            frame(DATA, END_STREAM, 1, &body),
        ]
        .concat(),
        Expected::Passed(seen("POST", "/").body(body)),
    ));
    rows.push(Row::new(
        "an unknown frame of 16384 bytes",
        frame(0x42, 0, 0, &[0; 16_384]),
        Expected::Ignored,
    ));
    rows
}

fn padded_data() -> Vec<Row> {
    let open = frame(HEADERS, END_HEADERS, 1, WAITING_POST);
    let post = frame(HEADERS, END_HEADERS, 1, POST);
    let after = |open: &[u8], flags: u8, payload: &[u8]| {
        [open, &frame(DATA, END_STREAM | flags, 1, payload)].concat()
    };
    let passed = |body: &'static str| Expected::Passed(seen("POST", "/").body(body));
    vec![
        Row::new(
            "DATA padded to its end",
            after(&open, PADDED, &[5, 0, 0, 0, 0]),
            PROTOCOL,
        ),
        Row::new(
            "DATA padded beyond its end",
            after(&open, PADDED, &[9, 1, 2]),
            PROTOCOL,
        ),
        Row::new(
            "DATA padded without a length",
            after(&open, PADDED, &[]),
            SIZE,
        ),
        Row::new(
            "DATA with padding",
            after(&post, PADDED, b"\x03hello\0\0\0"),
            passed("hello"),
        ),
        Row::new(
            "DATA with padding that is not zero",
            after(&post, PADDED, b"\x03helloxyz"),
            passed("hello"),
        ),
        Row::new(
            "DATA with padding of no bytes",
            after(&post, PADDED, b"\0hello"),
            passed("hello"),
        ),
        Row::new(
            "DATA that is nothing but padding",
            after(&post, PADDED, &[2, 0, 0]),
            passed(""),
        ),
    ]
}

fn padded_heads() -> Vec<Row> {
    let padded_head = [&[3][..], GET, &[0, 0, 0]].concat();
    let with_priority = [&[0, 0, 0, 0, 15][..], GET].concat();
    let with_both = [&[2, 0, 0, 0, 0, 15][..], GET, &[0, 0]].concat();
    let head = |name, flags, section: &[u8], expected| {
        Row::new(name, frame(HEADERS, WHOLE | flags, 1, section), expected)
    };
    let found = || Expected::Passed(seen("GET", "/"));
    vec![
        head(
            "a head padded to its end",
            PADDED,
            &[14, 0x82, 0x84],
            PROTOCOL,
        ),
        head("a head padded without a length", PADDED, &[], SIZE),
        head("a head with padding", PADDED, &padded_head, found()),
        head(
            "a head with a priority",
            WITH_PRIORITY,
            &with_priority,
            found(),
        ),
        head(
            "a head with padding and a priority",
            PADDED | WITH_PRIORITY,
            &with_both,
            found(),
        ),
        head(
            "a head too short for its priority",
            WITH_PRIORITY,
            &[0, 0, 0, 0],
            SIZE,
        ),
        head(
            "a head whose padding reaches into its priority",
            PADDED | WITH_PRIORITY,
            &[3, 0, 0, 0, 0, 15],
            PROTOCOL,
        ),
        head(
            "a head with a long field",
            0,
            &[GET, &field("x-long", "v".repeat(300))].concat(),
            found(),
        ),
    ]
}
