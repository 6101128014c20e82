//! Black-box tests of the frame meter.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proptest::prelude::*;
use proxy_framing::h2::{Flood, FrameKind, FrameMeter};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length.get(1..).unwrap().to_vec();
    frame.extend([kind, flags, 0, 0, 0, 1]);
    frame.extend_from_slice(payload);
    frame
}

/// Like [`frame`], on another stream.
fn frame_on(stream: u8, kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = frame(kind, flags, payload);
    if let Some(last) = frame.get_mut(8) {
        *last = stream;
    }
    frame
}

/// A meter that has read the preface.
fn meter() -> FrameMeter {
    let mut meter = FrameMeter::new(256, 1 << 16);
    meter.pass(PREFACE, 0).unwrap();
    meter
}

/// Number of these frames that pass without a delay, and the error after them.
fn passing(frame: &[u8]) -> (usize, Option<Flood>) {
    let mut meter = meter();
    for count in 0..100_000 {
        if let Err(flood) = meter.pass(frame, 0) {
            return (count, Some(flood));
        }
    }
    (100_000, None)
}

#[test]
fn each_kind_of_frame_has_its_allowance() {
    let cases = [
        (frame(3, 0, &[0; 4]), FrameKind::Reset, 256),
        (frame(4, 0, &[]), FrameKind::Settings, 16),
        (frame(4, 1, &[]), FrameKind::Settings, 16),
        (frame(6, 0, &[0; 8]), FrameKind::Ping, 64),
        (frame(8, 0, &[0, 0, 0, 1]), FrameKind::WindowUpdate, 1024),
        (frame(2, 0, &[0; 5]), FrameKind::Priority, 256),
        (frame(16, 0, &[0; 8]), FrameKind::Priority, 256),
        (frame(0, 0, &[]), FrameKind::EmptyData, 64),
        (frame(0, PADDED, &[3, 0, 0, 0]), FrameKind::EmptyData, 64),
        (frame(9, 0, b"x"), FrameKind::Continuation, 32),
        (frame(7, 0, &[0; 8]), FrameKind::Other, 64),
        (frame(250, 0, b"grease"), FrameKind::Other, 64),
    ];
    for (frame, kind, allowed) in cases {
        assert_eq!(
            passing(&frame),
            (allowed, Some(Flood { kind })),
            "{frame:?}"
        );
    }
}

#[test]
fn frames_that_bring_something_are_never_too_many() {
    for useful in [
        frame(0, 0, b"x"),
        frame(0, PADDED, &[2, b'x', 0, 0]),
        frame(0, END_STREAM, &[]),
        frame(1, END_HEADERS | END_STREAM, b"head"),
    ] {
        assert_eq!(passing(&useful).1, None, "{useful:?}");
    }
}

#[test]
fn an_allowance_is_refilled_with_time() {
    let mut meter = meter();
    let ping = frame(6, 0, &[0; 8]);
    for _ in 0..64 {
        meter.pass(&ping, 5).unwrap();
    }
    meter.pass(&ping, 5).unwrap_err();
    // After a second, the allowance permits eight more frames.
    let mut meter = self::meter();
    for _ in 0..64 {
        meter.pass(&ping, 5).unwrap();
    }
    for _ in 0..8 {
        meter.pass(&ping, 15).unwrap();
    }
    meter.pass(&ping, 15).unwrap_err();
}

#[test]
fn a_client_that_takes_data_may_acknowledge_it() {
    let mut meter = meter();
    let (update, ping) = (frame(8, 0, &[0, 0, 0, 1]), frame(6, 0, &[0; 8]));
    for _ in 0..10_000 {
        meter.wrote(16 * 1024);
        for _ in 0..18 {
            meter.pass(&update, 0).unwrap();
        }
        meter.pass(&ping, 0).unwrap();
    }
}

#[test]
fn a_client_may_give_up_as_many_requests_as_were_served() {
    let mut meter = meter();
    let reset = frame(3, 0, &[0; 4]);
    for _ in 0..10_000 {
        meter.served(1);
        meter.pass(&reset, 0).unwrap();
    }
}

#[test]
fn a_header_section_lasts_from_its_first_frame_to_its_last() {
    let mut meter = meter();
    assert!(!meter.in_head());
    meter.pass(&frame(1, END_STREAM, b"ab"), 0).unwrap();
    assert!(meter.in_head());
    meter.pass(&frame(9, 0, b"cd"), 0).unwrap();
    assert!(meter.in_head());
    meter.pass(&frame(9, END_HEADERS, b"ef"), 0).unwrap();
    assert!(!meter.in_head());
}

/// The bytes that the parser gets if the client sends `bytes`.
fn seen(bytes: &[u8]) -> Vec<u8> {
    meter()
        .pass(bytes, 0)
        .unwrap()
        .unwrap_or_else(|| bytes.to_vec())
}

#[test]
fn the_first_section_of_a_stream_is_unchanged() {
    let heads = [
        frame_on(1, 1, END_HEADERS | END_STREAM, b"\x82"),
        frame_on(3, 1, END_HEADERS | PADDED, b"\x01\x82\0"),
        frame_on(3, 0, END_STREAM, b"body"),
    ]
    .concat();
    assert_eq!(meter().pass(&heads, 0), Ok(None));
}

#[test]
fn trailers_are_led_by_a_regular_field() {
    let head = frame_on(1, 1, END_HEADERS, b"\x83");
    let trailers = frame_on(1, 1, END_HEADERS | END_STREAM, b"\x84");
    let led = frame_on(1, 1, END_HEADERS | END_STREAM, b"\xa6\x84");
    let ping = frame(6, 0, &[0; 8]);
    let sent = [&head[..], &trailers, &ping].concat();
    assert_eq!(seen(&sent), [&head[..], &led, &ping].concat());
    // Also trailers of a stream other than the last.
    let other = frame_on(3, 1, END_HEADERS, b"\x83");
    let sent = [&head[..], &other, &trailers].concat();
    assert_eq!(seen(&sent), [&head[..], &other, &led].concat());
}

#[test]
fn a_section_on_a_stream_that_ended_or_was_passed_over_ends_the_connection() {
    const WHOLE: u8 = END_HEADERS | END_STREAM;
    let illegal = frame_on(0, 0, 0, &[]);
    let reset = frame_on(1, 3, 0, &[0, 0, 0, 8]);
    let body = frame_on(1, 0, END_STREAM, b"body");
    let (open, head) = (frame_on(1, 1, END_HEADERS, b"\x83"), |stream| {
        frame_on(stream, 1, WHOLE, b"\x82")
    });
    for (before, stream) in [
        (head(1), 1),
        (head(3), 1),
        ([head(1), head(3)].concat(), 1),
        ([open.clone(), reset].concat(), 1),
        ([open, body].concat(), 1),
    ] {
        let sent = [&before[..], &head(stream)].concat();
        assert_eq!(seen(&sent), [&before[..], &illegal].concat());
    }
}

#[test]
fn a_section_of_several_frames_is_seen_whole() {
    let pieces = [
        frame_on(1, 1, END_STREAM, b"\x82\x04"),
        frame_on(1, 9, 0, b"\x02/b"),
        frame_on(1, 9, END_HEADERS, b"\x86"),
    ];
    let whole = frame_on(1, 1, END_STREAM | END_HEADERS, b"\x82\x04\x02/b\x86");
    assert_eq!(seen(&pieces.concat()), whole);
    let mut meter = meter();
    let held = pieces.iter().take(2).map(|piece| meter.pass(piece, 0));
    assert!(held.into_iter().all(|seen| seen == Ok(Some(Vec::new()))));
}

#[test]
fn frames_inside_a_section_are_left_to_the_parser() {
    let begun = frame_on(1, 1, END_STREAM, b"\x82");
    for other in [
        frame(6, 0, &[0; 8]),
        frame_on(3, 9, END_HEADERS, b"\x84"),
        frame_on(3, 1, END_HEADERS, b"\x84"),
        frame_on(1, 0, END_STREAM, &vec![0; 20_000]),
        frame_on(1, 9, END_HEADERS, &vec![0; 16_385]),
    ] {
        let sent = [&begun[..], &other].concat();
        assert_eq!(seen(&sent), sent);
    }
}

#[test]
fn a_section_has_a_largest_size() {
    let mut meter = FrameMeter::new(256, 20_000);
    meter.pass(PREFACE, 0).unwrap();
    let begun = frame_on(1, 1, 0, &[0x82; 16_000]);
    assert_eq!(meter.pass(&begun, 0), Ok(Some(Vec::new())));
    let kind = FrameKind::Continuation;
    let more = frame_on(1, 9, END_HEADERS, &[0x82; 4_001]);
    assert_eq!(meter.pass(&more, 0), Err(Flood { kind }));
}

#[test]
fn a_listener_limits_reset_streams() {
    let mut meter = FrameMeter::new(16, 1 << 16);
    meter.pass(PREFACE, 0).unwrap();
    let reset = frame(3, 0, &[0; 4]);
    for _ in 0..16 {
        meter.pass(&reset, 0).unwrap();
    }
    meter.pass(&reset, 0).unwrap_err();
}

proptest! {
    /// The result does not depend on how the bytes are divided.
    #[test]
    fn cuts_change_nothing(
        frames in prop::collection::vec((0..12_u8, any::<u8>(), prop::collection::vec(any::<u8>(), 0..20)), 0..200),
        cuts in prop::collection::vec(1..40_usize, 1..50),
    ) {
        let mut stream = PREFACE.to_vec();
        for (kind, flags, payload) in frames {
            stream.extend(frame(kind, flags, &payload));
        }
        let mut whole = FrameMeter::new(256, 1 << 16);
        let verdict = whole.pass(&stream, 0).map(|instead| instead.unwrap_or_else(|| stream.clone()));

        let mut pieces = FrameMeter::new(256, 1 << 16);
        let mut reported = Ok(Vec::new());
        let (mut rest, mut cuts) = (&*stream, cuts.iter().cycle());
        while !rest.is_empty() && reported.is_ok() {
            let (piece, after) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            reported = reported.and_then(|mut seen: Vec<u8>| {
                let instead = pieces.pass(piece, 0)?;
                seen.extend(instead.unwrap_or_else(|| piece.to_vec()));
                Ok(seen)
            });
            rest = after;
        }
        prop_assert_eq!(&reported, &verdict);
        if verdict.is_ok() {
            prop_assert_eq!(pieces.in_head(), whole.in_head());
        }
    }

    #[test]
    fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..2_000), now in any::<u32>()) {
        let mut meter = FrameMeter::new(256, 1 << 16);
        let first = meter.pass(&bytes, now);
        let second = meter.pass(&bytes, 0);
        prop_assert!(first.is_ok() || second.is_ok() || bytes.len() > 9);
    }
}
