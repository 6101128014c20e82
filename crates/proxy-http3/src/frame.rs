//! Frame headers and frame types. [RFC 9114 §7]

use crate::varint;

/// Type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameType {
    Data,
    Headers,
    CancelPush,
    Settings,
    PushPromise,
    Goaway,
    MaxPushId,
    /// A type of HTTP/2 that HTTP/3 forbids. [RFC 9114 §7.2.8]
    Forbidden,
    /// An unknown type, which is skipped. [RFC 9114 §9]
    Unknown,
}

impl FrameType {
    pub(crate) const DATA: u64 = 0x0;
    pub(crate) const HEADERS: u64 = 0x1;
    pub(crate) const SETTINGS: u64 = 0x4;
    pub(crate) const GOAWAY: u64 = 0x7;
}

impl From<u64> for FrameType {
    fn from(number: u64) -> Self {
        match number {
            Self::DATA => Self::Data,
            Self::HEADERS => Self::Headers,
            0x3 => Self::CancelPush,
            Self::SETTINGS => Self::Settings,
            0x5 => Self::PushPromise,
            Self::GOAWAY => Self::Goaway,
            0xd => Self::MaxPushId,
            0x2 | 0x6 | 0x8 | 0x9 => Self::Forbidden,
            _ => Self::Unknown,
        }
    }
}

/// Header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameType,
    /// Length of the payload, in bytes.
    pub(crate) length: u64,
}

/// Maximum size of a frame header: two variable-length integers.
const MAX_HEADER_BYTES: usize = 16;

/// A frame header of which a part has arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartialHeader {
    bytes: [u8; MAX_HEADER_BYTES],
    len: usize,
}

impl PartialHeader {
    /// Consumes bytes of `input` until the header is complete; `None` if `input` ends before.
    pub(crate) fn read(&mut self, input: &mut impl bytes::Buf) -> Option<FrameHeader> {
        loop {
            if let Some(header) = self.complete() {
                self.len = 0;
                return Some(header);
            }
            if !input.has_remaining() {
                return None;
            }
            let byte = input.get_u8();
            // The header is complete before the array is full.
            *self.bytes.get_mut(self.len)? = byte;
            self.len += 1;
        }
    }

    /// Returns true if no byte of a header has arrived.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn complete(&self) -> Option<FrameHeader> {
        let bytes = self.bytes.get(..self.len)?;
        let (kind, used) = varint::read(bytes)?;
        let (length, _) = varint::read(bytes.get(used..)?)?;
        Some(FrameHeader {
            kind: kind.into(),
            length,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::{Buf, Bytes};

    #[test]
    fn a_header_is_read_in_any_pieces() {
        let bytes = [0x40, 0x21, 0x7b, 0xbd, 0xff];
        for cut in 0..4 {
            let (mut first, mut second) = (&bytes[..cut], &bytes[cut..]);
            let mut header = PartialHeader::default();
            assert_eq!(header.read(&mut first), None);
            assert_eq!(
                header.read(&mut second),
                Some(FrameHeader {
                    kind: FrameType::Unknown,
                    length: 15_293
                })
            );
            assert!(header.is_empty());
            assert_eq!(second, [0xff]);
        }
    }

    #[test]
    fn the_longest_header_fits() {
        let mut bytes = Bytes::from(vec![0xff; 17]);
        assert!(PartialHeader::default().read(&mut bytes).is_some());
        assert_eq!(bytes.remaining(), 1);
    }
}
