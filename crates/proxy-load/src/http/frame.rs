//! HTTP/2 frames. [RFC 9113 §4.1]

/// Size of a frame header, in bytes.
const HEADER_BYTES: usize = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: &'a [u8],
}

/// The type of a frame, as far as a client without pushes needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Data,
    Headers,
    Reset,
    Settings,
    Ping,
    GoAway,
    WindowUpdate,
    Continuation,
    /// Any other type, which is ignored.
    Other,
}

impl Frame<'_> {
    /// On data and headers: the stream ends.
    pub(crate) const END_STREAM: u8 = 0x1;
    /// On settings and pings: an acknowledgement.
    pub(crate) const ACK: u8 = 0x1;
    /// On headers: no continuation follows.
    pub(crate) const END_HEADERS: u8 = 0x4;
    /// On data and headers: the payload is padded.
    pub(crate) const PADDED: u8 = 0x8;
    /// On headers: the payload begins with a priority.
    pub(crate) const PRIORITY: u8 = 0x20;

    /// Returns true if this flag is set.
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Appends the frame to `out`. Payloads are far shorter than the maximum length.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let length = u32::try_from(self.payload.len()).unwrap_or(u32::MAX);
        let [_, length @ ..] = length.to_be_bytes();
        out.extend_from_slice(&length);
        out.extend_from_slice(&[self.kind.code(), self.flags]);
        out.extend_from_slice(&self.stream.to_be_bytes());
        out.extend_from_slice(self.payload);
    }
}

impl<'a> Frame<'a> {
    /// The first frame and the bytes after it; `None` while it is incomplete.
    pub(crate) fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *header else {
            return None;
        };
        let length = u32::from_be_bytes([0, l0, l1, l2]);
        let (payload, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        let frame = Self {
            kind: Kind::from(kind),
            flags,
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & 0x7fff_ffff,
            payload,
        };
        Some((frame, rest))
    }

    /// The payload of data or headers without padding and priority.
    pub(crate) fn content(&self) -> Option<&'a [u8]> {
        let mut content = self.payload;
        if self.has(Self::PADDED) {
            let (padding, rest) = content.split_first()?;
            let kept = rest.len().checked_sub(usize::from(*padding))?;
            content = rest.get(..kept)?;
        }
        if self.kind == Kind::Headers && self.has(Self::PRIORITY) {
            content = content.get(5..)?;
        }
        Some(content)
    }
}

/// [RFC 9113 §6]
impl From<u8> for Kind {
    fn from(code: u8) -> Self {
        match code {
            0x0 => Self::Data,
            0x1 => Self::Headers,
            0x3 => Self::Reset,
            0x4 => Self::Settings,
            0x6 => Self::Ping,
            0x7 => Self::GoAway,
            0x8 => Self::WindowUpdate,
            0x9 => Self::Continuation,
            _ => Self::Other,
        }
    }
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Self::Data => 0x0,
            Self::Headers => 0x1,
            Self::Reset => 0x3,
            Self::Settings => 0x4,
            Self::Ping => 0x6,
            Self::GoAway => 0x7,
            Self::WindowUpdate => 0x8,
            Self::Continuation => 0x9,
            Self::Other => 0xff,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame<'static> = Frame {
        kind: Kind::Headers,
        flags: Frame::END_STREAM | Frame::END_HEADERS,
        stream: 0x0102_0305,
        payload: b"block",
    };

    #[test]
    fn a_frame_survives_a_round_trip() {
        let mut bytes = Vec::new();
        FRAME.write(&mut bytes);
        assert_eq!(bytes, b"\x00\x00\x05\x01\x05\x01\x02\x03\x05block");

        assert_eq!(Frame::split(&bytes[..bytes.len() - 1]), None);
        bytes.extend_from_slice(b"next");
        assert_eq!(Frame::split(&bytes), Some((FRAME, b"next".as_slice())));
    }

    #[test]
    fn padding_and_priority_are_not_content() {
        let padded = Frame {
            flags: Frame::PADDED | Frame::PRIORITY,
            payload: b"\x0212345block\0\0",
            ..FRAME
        };
        assert_eq!(padded.content(), Some(b"block".as_slice()));
        let short = Frame {
            flags: Frame::PADDED,
            payload: b"\x09abc",
            ..FRAME
        };
        assert_eq!(short.content(), None);
    }
}
