//! The beginning of connections, and connection-level frames. [RFC 9113 §3.4, §5.5, §6.7, §6.8]

use crate::frame_row::{Expected, Row, seen};
use crate::frames::{
    ACK, END_HEADERS, GOAWAY, HEADERS, PING, PREFACE, PROTOCOL_ERROR, PUSH_PROMISE, SETTINGS,
    WHOLE, frame,
};
use crate::hpack::GET;

const PROTOCOL: Expected = Expected::Ended(&[PROTOCOL_ERROR]);

pub(super) fn rows() -> Vec<Row> {
    [
        beginnings(),
        unknown(),
        promises(),
        pings(),
        goaway_frames(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn beginnings() -> Vec<Row> {
    let request = frame(HEADERS, WHOLE, 1, GET);
    let settings = frame(SETTINGS, 0, 0, &[]);
    let wrong = b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n";
    vec![
        Row::raw(
            "a preface with a wrong end",
            [&wrong[..], &settings].concat(),
            Expected::Closed,
        ),
        Row::raw(
            "a preface of HTTP/2.1",
            *b"PRI * HTTP/2.1\r\n\r\nSM\r\n\r\n",
            Expected::Closed,
        ),
        Row::raw("a preface cut short", &PREFACE[..20], Expected::Closed),
        Row::raw("no bytes at all", [], Expected::Closed),
        Row::raw(
            "a preface twice",
            [PREFACE, PREFACE, &settings].concat(),
            Expected::Closed,
        ),
        Row::raw(
            "a frame before the preface",
            [&settings, PREFACE].concat(),
            Expected::Closed,
        ),
        Row::raw(
            "the beginning of TLS",
            *b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03aaaaaaaaaaaaaaaa",
            Expected::Closed,
        ),
        Row::raw(
            "settings right behind the preface",
            [PREFACE, &settings, &request].concat(),
            passed(),
        ),
        Row::raw(
            "a request before the settings are acknowledged",
            [PREFACE, &settings, &request, &frame(SETTINGS, ACK, 0, &[])].concat(),
            passed(),
        ),
    ]
}

fn passed() -> Expected {
    Expected::Passed(seen("GET", "/"))
}

fn unknown() -> Vec<Row> {
    let request = frame(HEADERS, WHOLE, 1, GET);
    vec![
        Row::new(
            "a frame of an unknown kind",
            frame(0x16, 0, 0, b"whatever"),
            Expected::Ignored,
        ),
        Row::new(
            "a frame of an unknown kind with all flags",
            frame(0xff, 0xff, 0, &[0; 8]),
            Expected::Ignored,
        ),
        Row::new(
            "a frame of an unknown kind on an idle stream",
            frame(0x42, 0, 9, &[]),
            Expected::Ignored,
        ),
        Row::new(
            "an unknown frame before a request",
            [frame(0x42, 0, 0, &[1]), request].concat(),
            passed(),
        ),
        Row::new(
            "a PING with unknown flags",
            frame(PING, 0xfe, 0, b"whatever"),
            Expected::Ignored,
        ),
        Row::new(
            "a request with unknown flags",
            frame(HEADERS, WHOLE | 0xd2 & !0x28, 1, GET),
            passed(),
        ),
        Row::new(
            "a request with the reserved bit",
            frame(HEADERS, WHOLE, 0x8000_0001, GET),
            passed(),
        ),
        Row::new(
            "an unknown frame within a head",
            [frame(HEADERS, 1, 1, GET), frame(0x42, 0, 1, &[])].concat(),
            PROTOCOL,
        ),
        Row::new(
            "an ALTSVC frame",
            frame(0x0a, 0, 0, b"\0\x06a.test"),
            Expected::Ignored,
        ),
        Row::new(
            "an ORIGIN frame",
            frame(0x0c, 0, 0, b"\0\x06a.test"),
            Expected::Ignored,
        ),
        Row::new(
            "a PRIORITY_UPDATE frame",
            frame(0x10, 0, 0, b"\0\0\0\x01u=1"),
            Expected::Ignored,
        ),
    ]
}

fn promises() -> Vec<Row> {
    let promise = [&[0, 0, 0, 2][..], GET].concat();
    vec![
        Row::new(
            "a promise from a client",
            [
                frame(HEADERS, END_HEADERS, 1, crate::hpack::WAITING_POST),
                frame(PUSH_PROMISE, END_HEADERS, 1, &promise),
            ]
            .concat(),
            PROTOCOL,
        ),
        Row::new(
            "a promise on stream 0",
            frame(PUSH_PROMISE, END_HEADERS, 0, &promise),
            PROTOCOL,
        ),
        Row::new(
            "a promise on an idle stream",
            frame(PUSH_PROMISE, END_HEADERS, 1, &promise),
            PROTOCOL,
        ),
    ]
}

fn pings() -> Vec<Row> {
    vec![
        Row::new("a PING", frame(PING, 0, 0, b"01234567"), Expected::Ignored),
        Row::new(
            "an answer to no PING",
            frame(PING, ACK, 0, b"01234567"),
            Expected::Ignored,
        ),
        Row::new(
            "a PING on a stream",
            frame(PING, 0, 1, b"01234567"),
            PROTOCOL,
        ),
        Row::new(
            "a PING within a head",
            [frame(HEADERS, 1, 1, GET), frame(PING, 0, 0, &[0; 8])].concat(),
            PROTOCOL,
        ),
    ]
}

fn goaway_frames() -> Vec<Row> {
    let request = frame(HEADERS, WHOLE, 1, GET);
    vec![
        Row::new(
            "a GOAWAY on a stream",
            frame(GOAWAY, 0, 1, &[0; 8]),
            PROTOCOL,
        ),
        Row::new(
            "a GOAWAY behind a request",
            [request.clone(), frame(GOAWAY, 0, 0, &[0; 8])].concat(),
            passed(),
        ),
        Row::new(
            "a GOAWAY with words behind a request",
            [request, frame(GOAWAY, 0, 0, b"\0\0\0\0\0\0\0\0bye")].concat(),
            passed(),
        ),
    ]
}
