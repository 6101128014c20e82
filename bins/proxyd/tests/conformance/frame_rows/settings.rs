//! Valid and invalid settings. [RFC 9113 §6.5, RFC 8441 §3]

use crate::frame_row::{Expected, Row, seen};
use crate::frames::{
    FLOW_CONTROL_ERROR, HEADERS, PROTOCOL_ERROR, SETTINGS, WHOLE, WINDOW_UPDATE, frame, opening,
    parameters,
};
use crate::hpack::{GET, WAITING};

const TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const MAX_STREAMS: u16 = 3;
const WINDOW: u16 = 4;
const MAX_FRAME: u16 = 5;
const MAX_LIST: u16 = 6;
const CONNECT_PROTOCOL: u16 = 8;

pub(super) fn rows() -> Vec<Row> {
    [values(), first(), windows()]
        .into_iter()
        .flatten()
        .collect()
}

fn values() -> Vec<Row> {
    let settings_frame = |id: u16, value: u32| frame(SETTINGS, 0, 0, &parameters(&[(id, value)]));
    let mut rows = Vec::new();
    for (id, value) in [
        (ENABLE_PUSH, 2),
        (ENABLE_PUSH, u32::MAX),
        (MAX_FRAME, 0),
        (MAX_FRAME, 16_383),
        (MAX_FRAME, 16_777_216),
        (CONNECT_PROTOCOL, 2),
    ] {
        let name = format!("setting {id} of {value}");
        rows.push(Row::new(
            name,
            settings_frame(id, value),
            Expected::Ended(&[PROTOCOL_ERROR]),
        ));
    }
    for value in [0x8000_0000, u32::MAX] {
        let name = format!("setting {WINDOW} of {value}");
        // h2 does not distinguish it from other invalid values; the connection ends in both cases.
        let expected = Expected::Ended(&[FLOW_CONTROL_ERROR, PROTOCOL_ERROR]);
        rows.push(Row::new(name, settings_frame(WINDOW, value), expected));
    }
    for (id, value) in [
        (TABLE_SIZE, 0),
        (TABLE_SIZE, u32::MAX),
        (ENABLE_PUSH, 0),
        (ENABLE_PUSH, 1),
        (MAX_STREAMS, 0),
        (MAX_STREAMS, u32::MAX),
        (WINDOW, 0x7fff_ffff),
        (MAX_FRAME, 16_384),
        (MAX_FRAME, 16_777_215),
        (MAX_LIST, u32::MAX),
        (CONNECT_PROTOCOL, 0),
        (CONNECT_PROTOCOL, 1),
        (0, 1),
        (7, 1),
        (0x0a0a, 77),
        (0xffff, u32::MAX),
    ] {
        let bytes = [settings_frame(id, value), frame(HEADERS, WHOLE, 1, GET)].concat();
        rows.push(Row::new(
            format!("setting {id} of {value}, then a request"),
            bytes,
            passed(),
        ));
    }
    rows
}

fn passed() -> Expected {
    Expected::Passed(seen("GET", "/"))
}

fn first() -> Vec<Row> {
    let request = frame(HEADERS, WHOLE, 1, GET);
    let twice = parameters(&[
        (MAX_FRAME, 16_384),
        (MAX_FRAME, 20_000),
        (MAX_LIST, 1 << 20),
    ]);
    vec![
        Row::new(
            "settings without any",
            frame(SETTINGS, 0, 0, &[]),
            Expected::Ignored,
        ),
        Row::new(
            "one setting twice",
            [frame(SETTINGS, 0, 0, &twice), request.clone()].concat(),
            passed(),
        ),
        Row::new(
            "settings with unknown flags",
            frame(SETTINGS, 0xfe, 0, &[]),
            Expected::Ignored,
        ),
        Row::raw(
            "a window of nothing from the start",
            [opening(&[(WINDOW, 0)]), frame(HEADERS, WHOLE, 1, WAITING)].concat(),
            Expected::Ignored,
        ),
        Row::raw(
            "no table for compression",
            [opening(&[(TABLE_SIZE, 0)]), request].concat(),
            passed(),
        ),
    ]
}

fn windows() -> Vec<Row> {
    let grow = frame(WINDOW_UPDATE, 0, 1, &0x7fff_0000_u32.to_be_bytes());
    let open = frame(HEADERS, WHOLE, 1, WAITING);
    let settings = frame(SETTINGS, 0, 0, &parameters(&[(WINDOW, 0x7fff_ffff)]));
    vec![Row::new(
        "a setting that drives a stream's window beyond measure",
        [open, grow, settings].concat(),
        Expected::Ended(&[FLOW_CONTROL_ERROR]),
    )]
}
