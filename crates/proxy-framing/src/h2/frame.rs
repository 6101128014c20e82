//! The nine bytes that every frame begins with. [RFC 9113 §4.1]

/// Bytes of a frame's header.
pub(super) const HEADER_BYTES: usize = 9;

/// What is said of a frame before its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) length: u32,
    pub(super) kind: u8,
    flags: u8,
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

impl FrameHeader {
    pub(super) const fn parse(bytes: [u8; HEADER_BYTES]) -> Self {
        let [a, b, c, kind, flags, ..] = bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
        }
    }

    pub(super) const fn ends_stream(self) -> bool {
        self.flags & 0x1 != 0
    }

    pub(super) const fn ends_headers(self) -> bool {
        self.flags & 0x4 != 0
    }

    pub(super) const fn is_padded(self) -> bool {
        self.flags & 0x8 != 0
    }
}
