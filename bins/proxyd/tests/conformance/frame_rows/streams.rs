//! Stream ids and stream states. [RFC 9113 §5.1, §6.1 to §6.4, §6.9, §6.10]
//!
//! For frames on closed or half-closed streams the standard requires `STREAM_CLOSED`; `h2` ends the
//! whole connection with `PROTOCOL_ERROR` unless a race was possible.

use crate::frame_row::{Expected, Row, seen};
use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, FLOW_CONTROL_ERROR, HEADERS, PING, PRIORITY,
    PROTOCOL_ERROR, REFUSED_STREAM, RST_STREAM, SETTINGS, STREAM_CLOSED, WHOLE, WINDOW_UPDATE,
    WITH_PRIORITY, frame,
};
use crate::hpack::{GET, LOCAL, POST, WAITING, WAITING_POST};

const PROTOCOL: Expected = Expected::Ended(&[PROTOCOL_ERROR]);
const CLOSED: Expected = Expected::Reset(&[STREAM_CLOSED, PROTOCOL_ERROR]);
const CANCEL: [u8; 4] = [0, 0, 0, 8];

pub(super) fn rows() -> Vec<Row> {
    [
        idle(),
        numbers(),
        half_closed(),
        closed(),
        interrupted_heads(),
        heads_in_pieces(),
        priorities(),
        windows(),
        many(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn idle() -> Vec<Row> {
    let on = |name: &str, kind, flags, payload: &[u8]| {
        Row::new(
            format!("{name} on an idle stream"),
            frame(kind, flags, 1, payload),
            PROTOCOL,
        )
    };
    vec![
        on("DATA", DATA, END_STREAM, b"x"),
        on("RST_STREAM", RST_STREAM, 0, &CANCEL),
        on("WINDOW_UPDATE", WINDOW_UPDATE, 0, &[0, 0, 0, 1]),
        on("CONTINUATION", CONTINUATION, END_HEADERS, GET),
        Row::new(
            "PRIORITY on an idle stream",
            frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 5]),
            Expected::Ignored,
        ),
        Row::new(
            "PRIORITY on an idle stream, then a request by it",
            [
                frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 5]),
                frame(HEADERS, WHOLE, 1, GET),
            ]
            .concat(),
            Expected::Passed(seen("GET", "/")),
        ),
        Row::new(
            "RST_STREAM on an idle stream below one that was used",
            [frame(HEADERS, WHOLE, 5, LOCAL), frame(DATA, 0, 7, b"x")].concat(),
            PROTOCOL,
        ),
    ]
}

fn numbers() -> Vec<Row> {
    let on_zero = |name: &str, kind, flags, payload: &[u8]| {
        Row::new(
            format!("{name} on stream 0"),
            frame(kind, flags, 0, payload),
            PROTOCOL,
        )
    };
    let then = |first: u32, second: u32| {
        [
            frame(HEADERS, WHOLE, first, LOCAL),
            frame(HEADERS, WHOLE, second, LOCAL),
        ]
        .concat()
    };
    vec![
        on_zero("DATA", DATA, END_STREAM, b"x"),
        on_zero("HEADERS", HEADERS, WHOLE, GET),
        on_zero("PRIORITY", PRIORITY, 0, &[0, 0, 0, 1, 5]),
        on_zero("RST_STREAM", RST_STREAM, 0, &CANCEL),
        on_zero("CONTINUATION", CONTINUATION, END_HEADERS, GET),
        Row::new("SETTINGS on a stream", frame(SETTINGS, 0, 1, &[]), PROTOCOL),
        Row::new(
            "a request on stream 2",
            frame(HEADERS, WHOLE, 2, GET),
            PROTOCOL,
        ),
        Row::new(
            "DATA on stream 2",
            frame(DATA, END_STREAM, 2, b"x"),
            PROTOCOL,
        ),
        Row::new(
            "WINDOW_UPDATE on stream 2",
            frame(WINDOW_UPDATE, 0, 2, &[0, 0, 0, 1]),
            PROTOCOL,
        ),
        Row::new(
            "a request on a lower stream than the last",
            then(5, 3),
            PROTOCOL,
        ),
        Row::new(
            "a request on a lower stream that was used",
            then(3, 1),
            PROTOCOL,
        ),
        // The first request may be answered before the second one arrives.
        Row::new("two requests on one stream", then(1, 1), PROTOCOL).on(0),
        Row::new(
            "a request on the last stream there is",
            frame(HEADERS, WHOLE, 0x7fff_ffff, LOCAL),
            Expected::Ignored,
        ),
        Row::new(
            "a request beyond the last stream there is",
            then(0x7fff_ffff, 1),
            PROTOCOL,
        ),
        Row::new(
            "requests with gaps between their streams",
            [
                frame(HEADERS, WHOLE, 1, GET),
                frame(HEADERS, WHOLE, 101, LOCAL),
            ]
            .concat(),
            Expected::Passed(seen("GET", "/")),
        ),
    ]
}

fn half_closed() -> Vec<Row> {
    let open = frame(HEADERS, WHOLE, 1, WAITING);
    let after = |name: &str, frame: Vec<u8>, expected| {
        let name = format!("{name} behind the end of its stream");
        Row::new(name, [&open[..], &frame].concat(), expected)
    };
    vec![
        after("DATA", frame(DATA, 0, 1, b"x"), CLOSED),
        after("empty DATA", frame(DATA, END_STREAM, 1, &[]), CLOSED),
        after("HEADERS", frame(HEADERS, WHOLE, 1, GET), CLOSED),
        after(
            "CONTINUATION",
            frame(CONTINUATION, END_HEADERS, 1, GET),
            PROTOCOL,
        ),
        after(
            "WINDOW_UPDATE",
            frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
            Expected::Ignored,
        ),
        after(
            "PRIORITY",
            frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 5]),
            Expected::Ignored,
        ),
        after(
            "RST_STREAM",
            frame(RST_STREAM, 0, 1, &CANCEL),
            Expected::Ignored,
        ),
    ]
}

fn closed() -> Vec<Row> {
    let gone = [
        frame(HEADERS, END_HEADERS, 1, WAITING_POST),
        frame(RST_STREAM, 0, 1, &CANCEL),
    ]
    .concat();
    let after = |name: &str, frame: Vec<u8>, expected| {
        let name = format!("{name} on a stream given up");
        Row::new(name, [&gone[..], &frame].concat(), expected)
    };
    vec![
        after("DATA", frame(DATA, END_STREAM, 1, b"x"), CLOSED),
        after("HEADERS", frame(HEADERS, WHOLE, 1, GET), CLOSED),
        after(
            "CONTINUATION",
            frame(CONTINUATION, END_HEADERS, 1, GET),
            PROTOCOL,
        ),
        after(
            "PRIORITY",
            frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 5]),
            Expected::Ignored,
        ),
        after(
            "WINDOW_UPDATE",
            frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
            Expected::Ignored,
        ),
        after(
            "RST_STREAM",
            frame(RST_STREAM, 0, 1, &CANCEL),
            Expected::Ignored,
        ),
        Row::new(
            "RST_STREAM with an unknown code",
            [
                frame(HEADERS, END_HEADERS, 1, WAITING_POST),
                frame(RST_STREAM, 0, 1, &[1, 2, 3, 4]),
            ]
            .concat(),
            Expected::Ignored,
        ),
    ]
}

fn piece(flags: u8, stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame(CONTINUATION, flags, stream, bytes)
}

fn interrupted_heads() -> Vec<Row> {
    let begun = frame(HEADERS, END_STREAM, 1, &GET[..4]);
    let after = |name: &str, frame: Vec<u8>, expected| {
        let name = format!("{name} within a head");
        Row::new(name, [&begun[..], &frame].concat(), expected)
    };
    let rest = &GET[4..];
    vec![
        after("DATA", frame(DATA, 0, 1, b"x"), PROTOCOL),
        after(
            "PRIORITY",
            frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 5]),
            PROTOCOL,
        ),
        after("SETTINGS", frame(SETTINGS, 0, 0, &[]), PROTOCOL),
        after(
            "WINDOW_UPDATE",
            frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
            PROTOCOL,
        ),
        after("RST_STREAM", frame(RST_STREAM, 0, 1, &CANCEL), PROTOCOL),
        after(
            "HEADERS of the same stream",
            frame(HEADERS, WHOLE, 1, GET),
            PROTOCOL,
        ),
        after(
            "HEADERS of another stream",
            frame(HEADERS, WHOLE, 3, GET),
            PROTOCOL,
        ),
        after(
            "CONTINUATION of another stream",
            piece(END_HEADERS, 3, rest),
            PROTOCOL,
        ),
        after(
            "CONTINUATION of stream 0",
            piece(END_HEADERS, 0, rest),
            PROTOCOL,
        ),
    ]
}

fn heads_in_pieces() -> Vec<Row> {
    let begun = frame(HEADERS, END_STREAM, 1, &GET[..4]);
    let after = |frame: Vec<u8>| [&begun[..], &frame].concat();
    let rest = &GET[4..];
    let found = || Expected::Passed(seen("GET", "/").with("host", "a.test"));
    vec![
        Row::new(
            "a head in two pieces",
            after(piece(END_HEADERS, 1, rest)),
            found(),
        ),
        Row::new(
            "a head in three pieces",
            after([piece(0, 1, &rest[..3]), piece(END_HEADERS, 1, &rest[3..])].concat()),
            found(),
        ),
        Row::new(
            "a head that ends in an empty piece",
            after([piece(0, 1, rest), piece(END_HEADERS, 1, &[])].concat()),
            found(),
        ),
        Row::new(
            "a head that begins with an empty piece",
            [
                frame(HEADERS, END_STREAM, 1, &[]),
                piece(END_HEADERS, 1, GET),
            ]
            .concat(),
            found(),
        ),
        Row::new(
            "CONTINUATION behind a whole head",
            [
                frame(HEADERS, END_HEADERS, 1, WAITING_POST),
                piece(END_HEADERS, 1, rest),
            ]
            .concat(),
            PROTOCOL,
        ),
        Row::new(
            "CONTINUATION behind DATA",
            [
                frame(HEADERS, END_HEADERS, 1, WAITING_POST),
                frame(DATA, 0, 1, b"x"),
                piece(END_HEADERS, 1, rest),
            ]
            .concat(),
            PROTOCOL,
        ),
        Row::new(
            "a PING between a head and its body",
            [
                frame(HEADERS, END_HEADERS, 1, POST),
                frame(PING, 0, 0, &[1; 8]),
                frame(DATA, END_STREAM, 1, b"hi"),
            ]
            .concat(),
            Expected::Passed(seen("POST", "/").body("hi")),
        ),
    ]
}

/// RFC 9113 §5.3.2 treats priorities as advice; RFC 7540 treated these as errors.
fn priorities() -> Vec<Row> {
    let itself = [&[0, 0, 0, 1, 5][..], LOCAL].concat();
    vec![
        Row::new(
            "a PRIORITY that depends on itself",
            frame(PRIORITY, 0, 1, &[0, 0, 0, 1, 5]),
            Expected::Reset(&[PROTOCOL_ERROR]),
        ),
        Row::new(
            "a head that depends on itself",
            frame(HEADERS, WHOLE | WITH_PRIORITY, 1, &itself),
            Expected::Reset(&[PROTOCOL_ERROR]),
        ),
    ]
}

fn windows() -> Vec<Row> {
    let open = frame(HEADERS, WHOLE, 1, WAITING);
    let update = |stream, by: u32| frame(WINDOW_UPDATE, 0, stream, &by.to_be_bytes());
    vec![
        Row::new(
            "a window of the connection that grows by nothing",
            update(0, 0),
            PROTOCOL,
        ),
        Row::new(
            "a window of a stream that grows by nothing",
            [open.clone(), update(1, 0)].concat(),
            Expected::Reset(&[PROTOCOL_ERROR]),
        ),
        Row::new(
            "a window of the connection that grows beyond measure",
            update(0, 0x7fff_ffff),
            Expected::Ended(&[FLOW_CONTROL_ERROR]),
        ),
        Row::new(
            "a window of a stream that grows beyond measure",
            [open.clone(), update(1, 0x7fff_ffff)].concat(),
            Expected::Reset(&[FLOW_CONTROL_ERROR]),
        ),
        Row::new(
            "a window of the connection that grows as far as it may",
            update(0, 0x7fff_ffff - 65_535),
            Expected::Ignored,
        ),
        Row::new(
            "a window of a stream that grows as far as it may",
            [open, update(1, 0x7fff_ffff - 65_535)].concat(),
            Expected::Ignored,
        ),
        Row::new(
            "a window that grows by the reserved bit and one",
            update(0, 0x8000_0001),
            Expected::Ignored,
        ),
        Row::new(
            "a window that grows by the reserved bit alone",
            update(0, 0x8000_0000),
            PROTOCOL,
        ),
    ]
}

/// One more than the listener allows.
fn many() -> Vec<Row> {
    let streams = (0..9_u32).map(|number| frame(HEADERS, WHOLE, 2 * number + 1, WAITING));
    let most = streams.clone().take(8).collect::<Vec<_>>().concat();
    let too_many = streams.collect::<Vec<_>>().concat();
    vec![
        Row::new("as many streams as there may be", most, Expected::Ignored),
        Row::new(
            "one stream more than there may be",
            too_many,
            Expected::Reset(&[REFUSED_STREAM, PROTOCOL_ERROR]),
        )
        .on(17),
    ]
}
