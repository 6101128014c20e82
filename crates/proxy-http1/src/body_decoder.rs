//! Incremental decoding of message bodies.

use crate::body_length::BodyLength;
use crate::chunked_decoder::{self, ChunkedDecoder};
use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};

/// Decoder for the remainder of a body.
#[derive(Debug)]
pub struct BodyDecoder {
    remainder: BodyRemainder,
    /// The last data had more than [`MAX_FRAMING_BYTES`] of framing.
    has_small_chunks: bool,
}

/// Maximum bytes of chunk sizes and line breaks in a piece of data, without an end of the reader's turn: above,
/// the chunks are so small that thousands of them are in one read.
const MAX_FRAMING_BYTES: usize = 1024;

#[derive(Debug)]
enum BodyRemainder {
    Length(u64),
    Chunked(ChunkedDecoder),
    UntilClose,
}

impl BodyDecoder {
    /// Creates a decoder for a body with this framing.
    #[must_use]
    pub const fn new(extent: BodyLength) -> Self {
        let remainder = match extent {
            BodyLength::Length(length) => BodyRemainder::Length(length),
            BodyLength::Chunked => BodyRemainder::Chunked(ChunkedDecoder::Size),
            BodyLength::UntilClose => BodyRemainder::UntilClose,
        };
        Self {
            remainder,
            has_small_chunks: false,
        }
    }

    /// Returns true if the body is complete.
    #[inline]
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(
            self.remainder,
            BodyRemainder::Length(0) | BodyRemainder::Chunked(ChunkedDecoder::End)
        )
    }

    /// Bounds on the remaining length, in bytes.
    #[must_use]
    pub fn size_hint(&self) -> SizeHint {
        match self.remainder {
            BodyRemainder::Length(left) => SizeHint::with_exact(left),
            BodyRemainder::Chunked(_) | BodyRemainder::UntilClose => SizeHint::default(),
        }
    }

    /// Remaining bytes of a body with a known length.
    #[must_use]
    pub const fn left(&self) -> Option<u64> {
        match self.remainder {
            BodyRemainder::Length(left) => Some(left),
            BodyRemainder::Chunked(_) | BodyRemainder::UntilClose => None,
        }
    }

    /// Subtracts bytes of a body with a known length that were moved elsewhere, for example by
    /// splicing.
    pub fn skip(&mut self, count: u64) {
        if let BodyRemainder::Length(left) = &mut self.remainder {
            *left = left.saturating_sub(count);
        }
    }

    /// Takes the remainder of a body with a known length, if `unread` contains all of it.
    pub fn take_whole(&mut self, unread: &mut BytesMut) -> Option<Bytes> {
        let BodyRemainder::Length(left) = &mut self.remainder else {
            return None;
        };
        if *left > unread.len() as u64 {
            return None;
        }
        Some(chunked_decoder::take(unread, left).unwrap_or_default())
    }

    /// Returns true, once, if the reader of the body should let other tasks run before it reads more: the last
    /// data had chunks of a few bytes.
    pub const fn ends_turn(&mut self) -> bool {
        let ends = self.has_small_chunks;
        self.has_small_chunks = false;
        ends
    }

    /// Takes the next piece of data, or the trailers, as far as `unread` contains them.
    pub fn take(&mut self, unread: &mut BytesMut) -> Option<Frame<Bytes>> {
        match &mut self.remainder {
            BodyRemainder::Length(left) => chunked_decoder::take(unread, left).map(Frame::data),
            BodyRemainder::Chunked(chunks) => {
                let before = unread.len();
                let frame = chunks.next(unread);
                chunks.consume_end(unread);
                let data = frame
                    .as_ref()
                    .and_then(Frame::data_ref)
                    .map_or(0, Bytes::len);
                let framing = before.saturating_sub(unread.len() + data);
                self.has_small_chunks = MAX_FRAMING_BYTES < framing;
                frame
            }
            BodyRemainder::UntilClose if unread.is_empty() => None,
            BodyRemainder::UntilClose => Some(Frame::data(unread.split().freeze())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(chunks: &[u8]) -> (usize, bool) {
        let mut body = BodyDecoder::new(BodyLength::Chunked);
        let mut unread = BytesMut::from(chunks);
        let frame = body.take(&mut unread).unwrap();
        let ends = body.ends_turn();
        assert!(!body.ends_turn());
        (frame.data_ref().unwrap().len(), ends)
    }

    #[test]
    fn a_turn_ends_behind_a_read_of_many_chunks() {
        assert_eq!(take(&b"1\r\nx\r\n".repeat(1000)), (1000, true));
        assert_eq!(take(&b"1\r\nx\r\n".repeat(100)), (100, false));
        let large = [&b"1000\r\n"[..], &[b'x'; 0x1000], b"\r\n"].concat();
        assert_eq!(take(&large.repeat(4)), (0x1000, false));
    }
}
