//! `CONNECT`, plain and extended. [RFC 9113 §8.5, RFC 8441 §4]

use crate::frame_row::{Expected, Row, seen};
use crate::frames::{DATA, END_HEADERS, HEADERS, WHOLE, frame};
use crate::hpack::fields;

const CONNECT: (&str, &str) = (":method", "CONNECT");
const SCHEME: (&str, &str) = (":scheme", "http");
const HOST: (&str, &str) = (":authority", "a.test");
const PATH: (&str, &str) = (":path", "/");
const WEBSOCKET: (&str, &str) = (":protocol", "websocket");

pub(super) fn rows() -> Vec<Row> {
    let mut rows = plain();
    rows.extend(misspelt());
    rows.extend(websockets());
    rows
}

fn plain() -> Vec<Row> {
    let mut rows = Vec::new();
    let to_port = (":authority", "a.test:443");
    for (name, flags) in [("open", END_HEADERS), ("ended", WHOLE)] {
        let section = fields(&[CONNECT, to_port]);
        let bytes = frame(HEADERS, flags, 1, &section);
        rows.push(Row::new(
            format!("CONNECT, its stream {name}"),
            bytes,
            Expected::Answered(405),
        ));
    }
    for (name, set) in [
        ("CONNECT with a path", &[CONNECT, to_port, PATH][..]),
        ("CONNECT with a scheme", &[CONNECT, to_port, SCHEME]),
        ("CONNECT with both", &[CONNECT, to_port, SCHEME, PATH]),
        ("CONNECT to nobody", &[CONNECT]),
        (
            "CONNECT to nobody but a host",
            &[CONNECT, ("host", "a.test:443")],
        ),
        (
            "CONNECT to somebody in particular",
            &[CONNECT, (":authority", "u@a.test:443")],
        ),
    ] {
        // Plain CONNECT is not supported: RFC 9110 allows any 4xx.
        rows.push(Row::head(name, &fields(set), Expected::Refused));
    }
    rows
}

const WHOLE_SET: [(&str, &str); 5] = [CONNECT, WEBSOCKET, SCHEME, HOST, PATH];

fn with(name: &str, value: &str) -> Vec<u8> {
    fields(&[&WHOLE_SET[..], &[(name, value)]].concat())
}

fn misspelt() -> Vec<Row> {
    let without = |left_out: (&str, &str)| {
        let set: Vec<_> = WHOLE_SET
            .into_iter()
            .filter(|field| *field != left_out)
            .collect();
        fields(&set)
    };
    let mut rows = Vec::new();
    for (name, section) in [
        (
            "a protocol without CONNECT",
            fields(&[(":method", "GET"), WEBSOCKET, SCHEME, HOST, PATH]),
        ),
        ("a protocol without a scheme", without(SCHEME)),
        ("a protocol without a path", without(PATH)),
        ("a protocol without an authority", without(HOST)),
        (
            "a protocol twice",
            fields(&[CONNECT, WEBSOCKET, WEBSOCKET, SCHEME, HOST, PATH]),
        ),
        (
            "a protocol nobody knows",
            fields(&[CONNECT, (":protocol", "chat"), SCHEME, HOST, PATH]),
        ),
        (
            "a protocol without a name",
            fields(&[CONNECT, (":protocol", ""), SCHEME, HOST, PATH]),
        ),
        (
            "a protocol with a line end",
            fields(&[
                CONNECT,
                (":protocol", "websocket\r\nx: y"),
                SCHEME,
                HOST,
                PATH,
            ]),
        ),
        ("a protocol and an upgrade", with("upgrade", "websocket")),
        (
            "a protocol and a coding",
            with("transfer-encoding", "chunked"),
        ),
    ] {
        let bytes = frame(HEADERS, END_HEADERS, 1, &section);
        rows.push(Row::new(name, bytes, Expected::Refused));
    }
    rows
}

fn websockets() -> Vec<Row> {
    // The upstream responds as without WebSocket.
    let declined = || {
        seen("GET", "/")
            .with("upgrade", "websocket")
            .with("connection", "upgrade")
            .without("content-length")
            .without("transfer-encoding")
            .without("protocol")
            .answered_with(502)
    };
    let opened = |section: &[u8]| frame(HEADERS, END_HEADERS, 1, section);
    let whole = opened(&fields(&WHOLE_SET));
    let after = [&whole[..], &frame(DATA, 0, 1, b"GET /b HTTP/1.1\r\n\r\n")].concat();
    let keyed = opened(&with("sec-websocket-key", "mine"));
    // A tunnel has no length; a proxy that waited for the upstream would take the next request for
    // tunnel data.
    let measured = opened(&with("content-length", "5"));
    vec![
        Row::new("WebSocket", whole, Expected::Passed(declined())),
        Row::new("WebSocket with a key", keyed, Expected::Passed(declined())),
        Row::new(
            "WebSocket with bytes right behind it",
            after,
            Expected::Passed(declined()),
        ),
        Row::new("WebSocket with a length", measured, Expected::Refused),
    ]
}
