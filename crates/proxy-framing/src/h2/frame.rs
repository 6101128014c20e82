//! The frame header. [RFC 9113 §4.1]

/// Size of a frame header, in bytes.
pub(super) const HEADER_BYTES: usize = 9;

/// The largest accepted payload: the server's `SETTINGS_MAX_FRAME_SIZE`. [RFC 9113 §6.5.2]
pub(super) const MAX_PAYLOAD_BYTES: usize = 16_384;

/// A parsed frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) length: u32,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
/// [RFC 9218 §7.1]
pub(super) const PRIORITY_UPDATE: u8 = 16;

pub(super) const END_STREAM: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const WITH_PRIORITY: u8 = 0x20;

impl FrameHeader {
    pub(super) const fn parse(bytes: [u8; HEADER_BYTES]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            // The first bit is reserved.
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
        }
    }

    /// Appends a frame of this kind to `out`.
    pub(super) fn write(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
        let [_, length @ ..] = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
        out.extend_from_slice(&length);
        out.extend([kind, flags]);
        out.extend_from_slice(&stream.to_be_bytes());
        out.extend_from_slice(payload);
    }

    pub(super) const fn ends_stream(self) -> bool {
        self.flags & END_STREAM != 0
    }

    pub(super) const fn ends_headers(self) -> bool {
        self.flags & END_HEADERS != 0
    }

    pub(super) const fn is_padded(self) -> bool {
        self.flags & PADDED != 0
    }

    pub(super) const fn has_priority(self) -> bool {
        self.flags & WITH_PRIORITY != 0
    }

    /// Returns true if the payload is within the maximum size.
    pub(super) const fn is_in_size(self) -> bool {
        self.length as usize <= MAX_PAYLOAD_BYTES
    }
}
