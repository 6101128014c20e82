//! The accounts of HTTP/2 connections, from outside.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proptest::prelude::*;
use proxy_framing::h2::{Chore, Flood, FrameMeter};

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

/// A meter behind the preface.
fn meter() -> FrameMeter {
    let mut meter = FrameMeter::new();
    meter.scan(PREFACE, 0).unwrap();
    meter
}

/// How many of these frames pass at once, and what is then said.
fn passing(frame: &[u8]) -> (usize, Option<Flood>) {
    let mut meter = meter();
    for count in 0..100_000 {
        if let Err(flood) = meter.scan(frame, 0) {
            return (count, Some(flood));
        }
    }
    (100_000, None)
}

#[test]
fn each_kind_of_frame_has_its_allowance() {
    let cases = [
        (frame(3, 0, &[0; 4]), Chore::Reset, 256),
        (frame(4, 0, &[]), Chore::Settings, 16),
        (frame(4, 1, &[]), Chore::Settings, 16),
        (frame(6, 0, &[0; 8]), Chore::Ping, 64),
        (frame(8, 0, &[0, 0, 0, 1]), Chore::WindowUpdate, 1024),
        (frame(2, 0, &[0; 5]), Chore::Priority, 256),
        (frame(16, 0, &[0; 8]), Chore::Priority, 256),
        (frame(0, 0, &[]), Chore::EmptyData, 64),
        (frame(0, PADDED, &[3, 0, 0, 0]), Chore::EmptyData, 64),
        (frame(9, 0, b"x"), Chore::Continuation, 32),
        (frame(7, 0, &[0; 8]), Chore::Other, 64),
        (frame(250, 0, b"grease"), Chore::Other, 64),
    ];
    for (frame, chore, allowed) in cases {
        assert_eq!(
            passing(&frame),
            (allowed, Some(Flood { chore })),
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
fn an_allowance_comes_back_with_time() {
    let mut meter = meter();
    let ping = frame(6, 0, &[0; 8]);
    for _ in 0..64 {
        meter.scan(&ping, 5).unwrap();
    }
    meter.scan(&ping, 5).unwrap_err();
    // A second later there are eight more.
    let mut meter = self::meter();
    for _ in 0..64 {
        meter.scan(&ping, 5).unwrap();
    }
    for _ in 0..8 {
        meter.scan(&ping, 15).unwrap();
    }
    meter.scan(&ping, 15).unwrap_err();
}

#[test]
fn a_client_that_takes_data_may_acknowledge_it() {
    let mut meter = meter();
    let (update, ping) = (frame(8, 0, &[0, 0, 0, 1]), frame(6, 0, &[0; 8]));
    for _ in 0..10_000 {
        meter.wrote(16 * 1024);
        for _ in 0..18 {
            meter.scan(&update, 0).unwrap();
        }
        meter.scan(&ping, 0).unwrap();
    }
}

#[test]
fn a_client_may_give_up_as_many_requests_as_were_served() {
    let mut meter = meter();
    let reset = frame(3, 0, &[0; 4]);
    for _ in 0..10_000 {
        meter.served();
        meter.scan(&reset, 0).unwrap();
    }
}

#[test]
fn a_header_section_lasts_from_its_first_frame_to_its_last() {
    let mut meter = meter();
    assert!(!meter.in_head());
    meter.scan(&frame(1, END_STREAM, b"ab"), 0).unwrap();
    assert!(meter.in_head());
    meter.scan(&frame(9, 0, b"cd"), 0).unwrap();
    assert!(meter.in_head());
    meter.scan(&frame(9, END_HEADERS, b"ef"), 0).unwrap();
    assert!(!meter.in_head());
}

proptest! {
    /// Bytes mean the same however they are cut.
    #[test]
    fn cuts_change_nothing(
        frames in prop::collection::vec((0..12_u8, any::<u8>(), prop::collection::vec(any::<u8>(), 0..20)), 0..200),
        cuts in prop::collection::vec(1..40_usize, 1..50),
    ) {
        let mut stream = PREFACE.to_vec();
        for (kind, flags, payload) in frames {
            stream.extend(frame(kind, flags, &payload));
        }
        let mut whole = FrameMeter::new();
        let verdict = whole.scan(&stream, 0);

        let mut pieces = FrameMeter::new();
        let mut said = Ok(());
        let (mut rest, mut cuts) = (&*stream, cuts.iter().cycle());
        while !rest.is_empty() && said.is_ok() {
            let (piece, behind) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            said = pieces.scan(piece, 0);
            rest = behind;
        }
        prop_assert_eq!(said, verdict);
        if verdict.is_ok() {
            prop_assert_eq!(pieces.in_head(), whole.in_head());
        }
    }

    /// Whatever comes, it is counted or not, and nothing else happens.
    #[test]
    fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..2_000), now in any::<u32>()) {
        let mut meter = FrameMeter::new();
        let first = meter.scan(&bytes, now);
        let second = meter.scan(&bytes, 0);
        prop_assert!(first.is_ok() || second.is_ok() || bytes.len() > 9);
    }
}
