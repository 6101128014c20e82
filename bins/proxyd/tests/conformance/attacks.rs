//! Attacks over HTTP/2, and the expected end of each.

use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PADDED, PING, PRIORITY, RST_STREAM,
    SETTINGS, WHOLE, WINDOW_UPDATE, frame,
};
use std::iter::repeat_n;

/// `SETTINGS_INITIAL_WINDOW_SIZE`. [RFC 9113 §6.5.2]
pub(crate) const INITIAL_WINDOW: u16 = 4;
/// A window without effect, in bytes.
pub(crate) const LARGE_WINDOW: u32 = 0x7fff_0000;

/// `GET http://a.test/` in HPACK.
pub(crate) const GET: &[u8] = b"\x82\x84\x86\x41\x06a.test";

/// `POST http://a.test/` in HPACK.
const POST: &[u8] = b"\x83\x84\x86\x41\x06a.test";

const POST_HOLD: &[u8] = b"\x83\x86\x04\x05/hold\x41\x06a.test";

const GET_LARGE: &[u8] = b"\x82\x86\x04\x06/large\x41\x06a.test";

const POST_UNREAD: &[u8] = b"\x83\x86\x04\x07/unread\x41\x06a.test";

const POST_STALLED: &[u8] = b"\x83\x86\x04\x08/stalled\x41\x06a.test";

const GET_CHUNKS: &[u8] = b"\x82\x86\x04\x07/chunks\x41\x06a.test";

/// Number of requests of one connection to a target that reads nothing.
const STALLED_UPLOADS: u32 = 30;
/// The first of those that send one byte at a time.
const FIRST_OF_ONE_BYTE: u32 = 16;
/// The default of `SETTINGS_MAX_FRAME_SIZE`, in bytes.
const FRAME_BYTES: usize = 16 * 1024;

/// An attack that causes work without useful requests.
#[derive(Debug)]
pub(crate) struct Attack {
    pub(crate) settings: &'static [(u16, u32)],
    /// Bytes to send first.
    pub(crate) opening: fn() -> Vec<u8>,
    /// Bytes to send in each round, counted from 0.
    pub(crate) round: fn(u32) -> Vec<u8>,
    /// Number of rounds to send at once.
    pub(crate) at_once: u32,
    /// Number of rounds to send on one connection before waiting for the proxy's reaction.
    pub(crate) most: u32,
    /// Whether the proxy's output is read.
    pub(crate) reads: bool,
    pub(crate) end: End,
}

/// Expected end of an attacking connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Closed by `GOAWAY` with `ENHANCE_YOUR_CALM`.
    Calmed,
    /// Closed in any way.
    Closed,
    /// The streams are reset; the connection may stay open.
    StreamsReset,
    /// The connection may stay open, and its streams too.
    Optional,
}

fn nothing() -> Vec<u8> {
    Vec::new()
}

/// Returns the ID of the stream that a client opens in this round, if there is one per round.
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
    frame(HEADERS, WHOLE, stream(round), GET)
}

fn get_large(round: u32) -> Vec<u8> {
    frame(HEADERS, WHOLE, stream(round), GET_LARGE)
}

/// CVE-2023-44487.
pub(crate) fn rapid_reset() -> Attack {
    calmed(nothing, |round| {
        let gives_up = frame(RST_STREAM, 0, stream(round), &[0, 0, 0, 8]);
        [get(round), gives_up].concat()
    })
}

/// CVE-2025-8671: requests that the proxy itself must reset.
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

/// Like [`endless_head`], with empty frames.
pub(crate) fn endless_empty_head() -> Attack {
    calmed(
        || frame(HEADERS, END_STREAM, 1, &[]),
        |_| frame(CONTINUATION, 0, 1, &[]),
    )
}

/// Requests with empty heads.
pub(crate) fn empty_heads() -> Attack {
    calmed(nothing, |round| frame(HEADERS, WHOLE, stream(round), &[]))
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

/// CVE-2019-9517, on streams without data to send.
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

/// Like [`empty_data`], with padding.
pub(crate) fn padded_data() -> Attack {
    calmed(begun_upload, |_| frame(DATA, PADDED, 1, &[3, 0, 0, 0]))
}

/// Little data per frame, on requests that wait for a connection to their upstream.
pub(crate) fn one_byte_data() -> Attack {
    Attack {
        at_once: 2000,
        ..calmed(
            || frame(HEADERS, END_HEADERS, 1, POST_HOLD),
            |_| frame(DATA, 0, 1, b"x"),
        )
    }
}

/// Like [`one_byte_data`], on requests that are forwarded until the buffers between proxy and upstream are full.
pub(crate) fn forwarded_one_byte_data() -> Attack {
    Attack {
        opening: || frame(HEADERS, END_HEADERS, 1, POST_UNREAD),
        end: End::Optional,
        ..one_byte_data()
    }
}

/// Uploads to an HTTP/2 target that grants large windows and reads nothing: half of them fill the socket to it, the
/// rest send one byte at a time.
pub(crate) fn stalled_one_byte_data() -> Attack {
    Attack {
        at_once: 1,
        opening: || {
            let open = |number| frame(HEADERS, END_HEADERS, stream(number), POST_STALLED);
            (0..STALLED_UPLOADS).flat_map(open).collect()
        },
        // The first round only waits: the connection's window has its full size after the proxy's first frames.
        round: |round| match round {
            0 => Vec::new(),
            1..FIRST_OF_ONE_BYTE => frame(DATA, 0, stream(round), &[b'x'; FRAME_BYTES]).repeat(3),
            _ => {
                let of_one_byte = |number| frame(DATA, 0, stream(number), b"x").repeat(100);
                let uploads = FIRST_OF_ONE_BYTE..STALLED_UPLOADS;
                uploads.flat_map(of_one_byte).collect()
            }
        },
        ..forwarded_one_byte_data()
    }
}

/// Responses of which the upstream sends one byte at a time, until the buffers before a client that does not
/// read are full.
pub(crate) fn one_byte_chunks() -> Attack {
    Attack {
        at_once: 1,
        most: 8,
        reads: false,
        end: End::Optional,
        settings: &[(INITIAL_WINDOW, LARGE_WINDOW)],
        opening: || frame(WINDOW_UPDATE, 0, 0, &LARGE_WINDOW.to_be_bytes()),
        ..calmed(nothing, |round| {
            frame(HEADERS, WHOLE, stream(round), GET_CHUNKS)
        })
    }
}

/// Small heads that decompress to large ones.
pub(crate) fn unfolding_heads() -> Attack {
    Attack {
        at_once: 4,
        end: End::Closed,
        ..calmed(nothing, |round| {
            frame(HEADERS, WHOLE, stream(round), &bomb())
        })
    }
}

/// Responses that are requested, but never read.
pub(crate) fn closed_windows() -> Attack {
    Attack {
        settings: &[(INITIAL_WINDOW, 0)],
        most: 100,
        end: End::StreamsReset,
        ..calmed(nothing, get_large)
    }
}

/// Like [`closed_windows`], with large windows and a socket that is never read.
pub(crate) fn deaf() -> Attack {
    Attack {
        settings: &[(INITIAL_WINDOW, LARGE_WINDOW)],
        opening: || frame(WINDOW_UPDATE, 0, 0, &LARGE_WINDOW.to_be_bytes()),
        reads: false,
        end: End::Closed,
        ..calmed(nothing, get_large)
    }
}

/// `GET` with a field of 4000 bytes that is indexed once, and then referenced three thousand times
/// with one byte each.
fn bomb() -> Vec<u8> {
    let mut head = GET.to_vec();
    head.extend([0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
    head.extend(repeat_n(b'a', 4000));
    head.extend(repeat_n(0xbe, 3000));
    head
}
