//! Bodies and their lengths. [RFC 9113 §8.1.1]

use crate::frame_row::{Expected, Row, Seen, seen};
use crate::frames::{DATA, END_HEADERS, END_STREAM, HEADERS, PROTOCOL_ERROR, frame};
use crate::hpack::{GET, POST, field, get_with, post_with};
use crate::rows::NO_LENGTHS;

const SMUGGLED: &str = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n";
const BROKEN: Expected = Expected::Reset(&[PROTOCOL_ERROR]);

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    lengths(&mut rows);
    two_lengths(&mut rows);
    lengths_of_nothing(&mut rows);
    mismatches(&mut rows);
    with_length(&mut rows);
    without_length(&mut rows);
    rows
}

/// A head and DATA frames; the last one ends the stream.
fn sent(section: &[u8], data: &[&str]) -> Vec<u8> {
    let mut bytes = frame(HEADERS, END_HEADERS, 1, section);
    for (place, piece) in data.iter().enumerate() {
        let last = place + 1 == data.len();
        bytes.extend(frame(
            DATA,
            if last { END_STREAM } else { 0 },
            1,
            piece.as_bytes(),
        ));
    }
    bytes
}

fn lengths(rows: &mut Vec<Row>) {
    let further = ["5 ", " 5", "\t5", "5\r\n", "5\r\nx: y", "5\0"];
    for value in NO_LENGTHS.into_iter().chain(further) {
        let head = post_with("content-length", value);
        rows.push(Row::new(
            format!("a length of {value:?}"),
            sent(&head, &["hello"]),
            Expected::Malformed,
        ));
    }
}

fn two_lengths(rows: &mut Vec<Row>) {
    for (name, first, second) in [
        ("one length twice", "5", "5"),
        ("one length in two spellings", "5", "05"),
        ("two lengths, the first right", "5", "6"),
        ("two lengths, the second right", "6", "5"),
        ("a length and nothing", "5", ""),
        ("nothing and a length", "", "5"),
        ("a length and none", "5", "0"),
        ("none and a length", "0", "5"),
    ] {
        let head = [
            POST,
            &field("content-length", first),
            &field("content-length", second),
        ]
        .concat();
        rows.push(Row::new(name, sent(&head, &["hello"]), Expected::Malformed));
    }
}

fn lengths_of_nothing(rows: &mut Vec<Row>) {
    for (name, section) in [
        (
            "an empty length without a body",
            get_with("content-length", ""),
        ),
        (
            "a length twice without a body",
            [
                GET,
                &field("content-length", "0"),
                &field("content-length", "0"),
            ]
            .concat(),
        ),
        ("a length without a body", get_with("content-length", "5")),
        (
            "a length beyond measure without a body",
            get_with("content-length", "99999999999999999999"),
        ),
    ] {
        rows.push(Row::head(name, &section, Expected::Malformed));
    }
    let empty = post_with("content-length", "");
    rows.push(Row::new(
        "an empty length and empty DATA",
        sent(&empty, &[""]),
        Expected::Malformed,
    ));
}

fn mismatches(rows: &mut Vec<Row>) {
    let announcing = |length: &str| post_with("content-length", length);
    for (name, bytes) in [
        ("less than was said", sent(&announcing("6"), &["hello"])),
        ("more than was said", sent(&announcing("4"), &["hello"])),
        (
            "more than was said, in pieces",
            sent(&announcing("4"), &["hel", "lo"]),
        ),
        (
            "nothing where something was said to come",
            sent(&announcing("5"), &[""]),
        ),
        (
            "trailers before all has come",
            [
                sent(&announcing("6"), &[]),
                frame(DATA, 0, 1, b"hello"),
                frame(HEADERS, END_STREAM | END_HEADERS, 1, &field("x", "y")),
            ]
            .concat(),
        ),
    ] {
        rows.push(Row::new(name, bytes, BROKEN));
    }
    let chunked = post_with("transfer-encoding", "chunked");
    rows.push(Row::new(
        "a coding, and chunks",
        sent(&chunked, &[SMUGGLED]),
        Expected::Malformed,
    ));
    let both = [&announcing("5")[..], &field("transfer-encoding", "chunked")].concat();
    rows.push(Row::new(
        "a length and a coding",
        sent(&both, &["hello"]),
        Expected::Malformed,
    ));
}

fn passed(rows: &mut Vec<Row>, name: &str, bytes: Vec<u8>, seen: Seen) {
    rows.push(Row::new(name, bytes, Expected::Passed(seen)));
}

/// An announced length must match.
fn with_length(rows: &mut Vec<Row>) {
    let announcing = |length: &str| post_with("content-length", length);
    let post = |length| {
        seen("POST", "/")
            .with("content-length", length)
            .without("transfer-encoding")
    };
    let five = || post("5").body("hello");
    let whole = |section: &[u8]| frame(HEADERS, END_STREAM | END_HEADERS, 1, section);
    passed(
        rows,
        "a body of the length that was said",
        sent(&announcing("5"), &["hello"]),
        five(),
    );
    passed(
        rows,
        "the same in pieces",
        sent(&announcing("5"), &["he", "", "llo"]),
        five(),
    );
    passed(
        rows,
        "the same with an empty end",
        sent(&announcing("5"), &["hello", ""]),
        five(),
    );
    passed(
        rows,
        "a length of nothing",
        whole(&announcing("0")),
        post("0"),
    );
    passed(
        rows,
        "a length of nothing and empty DATA",
        sent(&announcing("0"), &[""]),
        post("0"),
    );
    let large = 10 * 1024 * 1024 + 1;
    let head = sent(&announcing(&large.to_string()), &[]);
    rows.push(Row::new(
        "a length above the limit",
        head,
        Expected::Answered(413),
    ));
}

/// Bodies without a length are forwarded in chunks.
fn without_length(rows: &mut Vec<Row>) {
    let chunked = |method, body: &str| {
        let seen = seen(method, "/").with("transfer-encoding", "chunked");
        seen.without("content-length").body(body)
    };
    let get = seen("GET", "/")
        .without("content-length")
        .without("transfer-encoding");
    let whole = frame(HEADERS, END_STREAM | END_HEADERS, 1, GET);
    passed(rows, "no body and no length", whole, get);
    passed(
        rows,
        "a body of a length that was not said",
        sent(POST, &["hello"]),
        chunked("POST", "hello"),
    );
    passed(
        rows,
        "such a body in pieces",
        sent(POST, &["hel", "lo", ""]),
        chunked("POST", "hello"),
    );
    passed(
        rows,
        "a body that looks like the end of chunks",
        sent(POST, &[SMUGGLED]),
        chunked("POST", SMUGGLED),
    );
    passed(
        rows,
        "a GET with a body",
        sent(GET, &["hello"]),
        chunked("GET", "hello"),
    );
    passed(
        rows,
        "a GET with a body that is a request",
        sent(GET, &[SMUGGLED]),
        chunked("GET", SMUGGLED),
    );
}
