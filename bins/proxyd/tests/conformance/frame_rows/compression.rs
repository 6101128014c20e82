//! Header sections with valid and invalid compression. [RFC 7541, RFC 9113 §4.3]
//!
//! The standard requires `COMPRESSION_ERROR`; `h2` sends `PROTOCOL_ERROR`. The connection ends in
//! both cases, as the shared state of compression requires.

use crate::frame_row::{Expected, Row, seen};
use crate::frames::{
    COMPRESSION_ERROR, HEADERS, PROTOCOL_ERROR, RST_STREAM, WHOLE, frame, head_in_pieces,
};
use crate::hpack::{GET, LOCAL, WAITING, field};

const BROKEN: Expected = Expected::Ended(&[COMPRESSION_ERROR, PROTOCOL_ERROR]);

pub(super) fn rows() -> Vec<Row> {
    let mut rows = broken();
    valid_fields(&mut rows);
    tables(&mut rows);
    rows
}

fn found(name: &'static str, value: &'static str) -> Expected {
    Expected::Passed(seen("GET", "/").with(name, value))
}

fn broken() -> Vec<Row> {
    let broken = [
        ("an index of 0", &b"\x80"[..]),
        ("an index beyond the table", b"\xbf"),
        ("an index far beyond the table", b"\xff\x80\x80\x01"),
        (
            "an index of too many bytes",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        ),
        ("a name's index beyond the table", b"\x7f\x00\x01a"),
        (
            "a name's index beyond the table, unindexed",
            b"\x0f\x30\x01a",
        ),
        ("a change of the table behind a field", b"\x20"),
        ("a name cut short", b"\x00\x05x-a"),
        ("a value cut short", b"\x00\x01x\x05ab"),
        ("no value", b"\x00\x01x"),
        ("a length cut short", b"\x00\x7f"),
        (
            "a length of too many bytes",
            b"\x00\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        ),
        (
            "a string that ends in an end of string",
            b"\x00\x01x\x84\xff\xff\xff\xff",
        ),
        (
            "a string with a whole byte of padding",
            b"\x00\x01x\x82\x1f\xff",
        ),
        ("a string padded with zeros", b"\x00\x01x\x81\x18"),
        ("an empty name", b"\x00\x00\x01a"),
    ];
    broken
        .into_iter()
        .map(|(name, bytes)| Row::head(name, &[GET, bytes].concat(), BROKEN))
        .collect()
}

fn valid_fields(rows: &mut Vec<Row>) {
    for (name, bytes, expected) in [
        (
            "a field that is inserted into the table",
            &b"\x40\x01x\x01a"[..],
            found("x", "a"),
        ),
        (
            "a field that is never indexed",
            b"\x10\x01x\x01a",
            found("x", "a"),
        ),
        (
            "a field from the table",
            b"\x40\x01x\x01a\xbe",
            Expected::Passed(seen("GET", "/")),
        ),
        (
            "a name from the table",
            b"\x40\x01x\x01a\x7e\x01b",
            Expected::Passed(seen("GET", "/")),
        ),
        ("an empty value", b"\x00\x01x\x00", found("x", "")),
        (
            "a value in Huffman code",
            b"\x00\x01x\x81\x1f",
            found("x", "a"),
        ),
        (
            "a name in Huffman code",
            b"\x00\x81\xf3\x01a",
            found("x", "a"),
        ),
    ] {
        rows.push(Row::head(name, &[GET, bytes].concat(), expected));
    }
}

fn tables(rows: &mut Vec<Row>) {
    for (name, change) in [
        ("a table larger than announced", &b"\x3f\xe2\x1f"[..]),
        (
            "a table much larger than announced",
            b"\x3f\xff\xff\xff\xff\x07",
        ),
    ] {
        rows.push(Row::head(name, &[change, GET].concat(), BROKEN));
    }
    let smaller = [&b"\x20"[..], GET].concat();
    rows.push(Row::head(
        "no table from now on",
        &smaller,
        Expected::Passed(seen("GET", "/")),
    ));
    let twice = [&b"\x20\x3f\xe1\x1f"[..], GET].concat();
    rows.push(Row::head(
        "no table, then one again",
        &twice,
        Expected::Passed(seen("GET", "/")),
    ));
    let left = Row::new(
        "a field that another request left in the table",
        [
            frame(HEADERS, WHOLE, 1, &[LOCAL, &b"\x40\x01x\x01a"[..]].concat()),
            // The authority is in the table since.
            frame(HEADERS, WHOLE, 3, &[GET, &b"\xbf"[..]].concat()),
        ]
        .concat(),
        found("x", "a"),
    );
    rows.push(left.on(3));
    rows.extend(kept());
}

/// Table entries of a head are kept independent of its request's outcome.
fn kept() -> Vec<Row> {
    let many: Vec<_> = (0..120).map(|_| field("y", "z")).collect();
    let large: Vec<_> = (0..17).map(|_| field("y", "z".repeat(4_000))).collect();
    let heads = [
        ("malformed", field("connection", "close")),
        ("of two paths", field(":path", "/")),
        ("with a padded value", field("y", " z")),
        ("with an empty length", field("content-length", "")),
        (
            "with a length of another body",
            field("content-length", "5"),
        ),
        ("with too many fields", many.concat()),
        ("with too large fields", large[..3].concat()),
        ("larger than h2 takes", large.concat()),
    ];
    let mut rows = Vec::new();
    for (name, fields) in heads {
        let first = [LOCAL, &fields, &b"\x40\x01x\x01a"[..]].concat();
        let bytes = [
            head_in_pieces(1, &first),
            frame(HEADERS, WHOLE, 3, &[GET, &b"\xbf"[..]].concat()),
        ];
        let name = format!("a field that a head {name} left in the table");
        rows.push(Row::new(name, bytes.concat(), found("x", "a")).on(3));
    }
    let waiting = (0..8_u32).map(|number| frame(HEADERS, WHOLE, 2 * number + 1, WAITING));
    let refused = frame(
        HEADERS,
        WHOLE,
        17,
        &[LOCAL, &b"\x40\x01x\x01a"[..]].concat(),
    );
    let reset = frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]);
    let request = frame(HEADERS, WHOLE, 19, &[GET, &b"\xbf"[..]].concat());
    let bytes = [
        waiting.collect::<Vec<_>>().concat(),
        refused,
        reset,
        request,
    ]
    .concat();
    let name = "a field that a refused stream left in the table";
    rows.push(Row::new(name, bytes, found("x", "a")).on(19));
    rows
}
