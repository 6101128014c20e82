//! What attackers send over HTTP/2, and how it must end.

use crate::attack_frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GET, GET_LARGE, HEADERS, INITIAL_WINDOW, PADDED,
    PING, POST, POST_HOLD, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE, bomb, frame,
};

/// One way to make work for nothing.
#[derive(Debug)]
pub(crate) struct Attack {
    pub(crate) settings: &'static [(u16, u32)],
    /// What comes first.
    pub(crate) opening: fn() -> Vec<u8>,
    /// What comes over and over; rounds are counted from 0.
    pub(crate) round: fn(u32) -> Vec<u8>,
    /// How many rounds are sent at once.
    pub(crate) at_once: u32,
    /// How many rounds one connection sends; then it waits for what is done to it.
    pub(crate) most: u32,
    /// Whether what the proxy says is read.
    pub(crate) reads: bool,
    pub(crate) end: End,
}

/// How a connection that attacks must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By `GOAWAY` with `ENHANCE_YOUR_CALM`.
    Calmed,
    /// In any way.
    Closed,
    /// Its streams are reset; the connection may stay.
    StreamsReset,
}

fn nothing() -> Vec<u8> {
    Vec::new()
}

/// The stream that a client opens in this round, if it opens one in each.
fn stream(round: u32) -> u32 {
    round * 2 + 1
}

fn calmed(opening: fn() -> Vec<u8>, round: fn(u32) -> Vec<u8>) -> Attack {
    Attack {
        settings: &[],
        opening,
        round,
        at_once: 50,
        most: u32::MAX,
        reads: true,
        end: End::Calmed,
    }
}

fn begun_upload() -> Vec<u8> {
    frame(HEADERS, END_HEADERS, 1, POST)
}

fn begun_head() -> Vec<u8> {
    frame(HEADERS, END_STREAM, 1, GET)
}

fn get(round: u32) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream(round), GET)
}

fn get_large(round: u32) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream(round), GET_LARGE)
}

/// CVE-2023-44487.
pub(crate) fn rapid_reset() -> Attack {
    calmed(nothing, |round| {
        let gives_up = frame(RST_STREAM, 0, stream(round), &[0, 0, 0, 8]);
        [get(round), gives_up].concat()
    })
}

/// Requests that the proxy itself must give up: CVE-2025-8671.
pub(crate) fn made_reset() -> Attack {
    calmed(nothing, |round| {
        let too_much = 0x7fff_ffff_u32.to_be_bytes();
        let illegal = frame(WINDOW_UPDATE, 0, stream(round), &too_much);
        [get(round), illegal].concat()
    })
}

/// CVE-2024-27316.
pub(crate) fn endless_head() -> Attack {
    calmed(begun_head, |_| {
        let fields = b"\x00\x01x\x0512345".repeat(50);
        frame(CONTINUATION, 0, 1, &fields)
    })
}

/// The same, with nothing in it.
pub(crate) fn endless_empty_head() -> Attack {
    calmed(
        || frame(HEADERS, END_STREAM, 1, &[]),
        |_| frame(CONTINUATION, 0, 1, &[]),
    )
}

/// Requests that say nothing at all.
pub(crate) fn empty_heads() -> Attack {
    calmed(nothing, |round| {
        frame(HEADERS, END_STREAM | END_HEADERS, stream(round), &[])
    })
}

/// CVE-2019-9515.
pub(crate) fn settings() -> Attack {
    calmed(nothing, |round| {
        let table = [0, 1, 0, 0, 0x10, (round % 2) as u8];
        frame(SETTINGS, 0, 0, &table)
    })
}

/// CVE-2019-9512.
pub(crate) fn pings() -> Attack {
    calmed(nothing, |_| frame(PING, 0, 0, &[7; 8]))
}

/// CVE-2019-9517, without what it is to grant windows for.
pub(crate) fn window_updates_of_one() -> Attack {
    calmed(nothing, |_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]))
}

/// CVE-2019-9513.
pub(crate) fn priorities() -> Attack {
    calmed(nothing, |round| {
        frame(PRIORITY, 0, stream(round), &[0, 0, 0, 1, 5])
    })
}

/// CVE-2019-9518.
pub(crate) fn empty_data() -> Attack {
    calmed(begun_upload, |_| frame(DATA, 0, 1, &[]))
}

/// The same, with padding to hide behind.
pub(crate) fn padded_data() -> Attack {
    calmed(begun_upload, |_| frame(DATA, PADDED, 1, &[3, 0, 0, 0]))
}

/// A little data in each frame, for an upstream that takes none of it.
pub(crate) fn crumbs() -> Attack {
    Attack {
        at_once: 2000,
        ..calmed(
            || frame(HEADERS, END_HEADERS, 1, POST_HOLD),
            |_| frame(DATA, 0, 1, b"x"),
        )
    }
}

/// Small heads that unfold to large ones.
pub(crate) fn unfolding_heads() -> Attack {
    Attack {
        at_once: 4,
        end: End::Closed,
        ..calmed(nothing, |round| {
            frame(HEADERS, END_STREAM | END_HEADERS, stream(round), &bomb())
        })
    }
}

/// Answers that are asked for and never taken.
pub(crate) fn closed_windows() -> Attack {
    Attack {
        settings: &[(INITIAL_WINDOW, 0)],
        most: 100,
        end: End::StreamsReset,
        ..calmed(nothing, get_large)
    }
}

/// The same, with windows wide open, and a socket that nobody reads.
pub(crate) fn deaf() -> Attack {
    Attack {
        settings: &[(INITIAL_WINDOW, 0x7fff_ffff)],
        opening: || frame(WINDOW_UPDATE, 0, 0, &0x7fff_0000_u32.to_be_bytes()),
        reads: false,
        end: End::Closed,
        ..calmed(nothing, get_large)
    }
}
