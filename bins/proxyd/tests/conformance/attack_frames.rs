//! HTTP/2 frame by frame, as a client with bad intentions writes and reads it. [RFC 9113 §4, §6]

use std::iter::repeat_n;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
pub(crate) const PADDED: u8 = 0x8;

pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

/// `SETTINGS_INITIAL_WINDOW_SIZE`.
pub(crate) const INITIAL_WINDOW: u16 = 4;

/// `GET /` at `a.test` over `http`, in HPACK.
pub(crate) const GET: &[u8] = b"\x82\x84\x86\x41\x06a.test";

/// The same with `POST`.
pub(crate) const POST: &[u8] = b"\x83\x84\x86\x41\x06a.test";

/// `POST /hold`.
pub(crate) const POST_HOLD: &[u8] = b"\x83\x86\x04\x05/hold\x41\x06a.test";

/// `GET /large`.
pub(crate) const GET_LARGE: &[u8] = b"\x82\x86\x04\x06/large\x41\x06a.test";

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One frame, as its receiver sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// Takes the first frame of what was read, if it is there whole.
    pub(crate) fn take(read: &mut Vec<u8>) -> Option<Self> {
        let [a, b, c, kind, flags, stream @ ..] = *read.first_chunk::<9>()?;
        let end = 9 + u32::from_be_bytes([0, a, b, c]) as usize;
        let payload = read.get(9..end)?.to_vec();
        read.drain(..end);
        Some(Self {
            kind,
            flags,
            stream: u32::from_be_bytes(stream),
            payload,
        })
    }

    /// The error code of a `GOAWAY`.
    pub(crate) fn code(&self) -> Option<u32> {
        let code = self.payload.get(4..)?.first_chunk()?;
        (self.kind == GOAWAY).then(|| u32::from_be_bytes(*code))
    }
}

/// The preface and the first settings.
pub(crate) fn greeting(settings: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = settings
        .iter()
        .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
        .collect();
    [PREFACE, &frame(SETTINGS, 0, 0, &payload)].concat()
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or_default();
    let [_, length @ ..] = length.to_be_bytes();
    let mut frame = length.to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// `GET` with a field of 4000 bytes that enters the table, then stands three thousand times for one
/// byte each.
pub(crate) fn bomb() -> Vec<u8> {
    let mut head = GET.to_vec();
    head.extend([0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
    head.extend(repeat_n(b'a', 4000));
    head.extend(repeat_n(0xbe, 3000));
    head
}
