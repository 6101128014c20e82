//! Incremental decoding of message bodies.

use crate::body_length::BodyLength;
use crate::chunked_decoder::{self, ChunkedDecoder};
use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};

/// Decoder for the remainder of a body.
#[derive(Debug)]
pub struct BodyDecoder(BodyRemainder);

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
        Self(match extent {
            BodyLength::Length(length) => BodyRemainder::Length(length),
            BodyLength::Chunked => BodyRemainder::Chunked(ChunkedDecoder::Size),
            BodyLength::UntilClose => BodyRemainder::UntilClose,
        })
    }

    /// Returns true if the body is complete.
    #[inline]
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(
            self.0,
            BodyRemainder::Length(0) | BodyRemainder::Chunked(ChunkedDecoder::End)
        )
    }

    /// Bounds on the remaining length, in bytes.
    #[must_use]
    pub fn size_hint(&self) -> SizeHint {
        match self.0 {
            BodyRemainder::Length(left) => SizeHint::with_exact(left),
            BodyRemainder::Chunked(_) | BodyRemainder::UntilClose => SizeHint::default(),
        }
    }

    /// Remaining bytes of a body with a known length.
    #[must_use]
    pub const fn left(&self) -> Option<u64> {
        match self.0 {
            BodyRemainder::Length(left) => Some(left),
            BodyRemainder::Chunked(_) | BodyRemainder::UntilClose => None,
        }
    }

    /// Subtracts bytes of a body with a known length that were moved elsewhere, for example by
    /// splicing.
    pub fn skip(&mut self, count: u64) {
        if let BodyRemainder::Length(left) = &mut self.0 {
            *left = left.saturating_sub(count);
        }
    }

    /// Takes the remainder of a body with a known length, if `unread` contains all of it.
    pub fn take_whole(&mut self, unread: &mut BytesMut) -> Option<Bytes> {
        let BodyRemainder::Length(left) = &mut self.0 else {
            return None;
        };
        if *left > unread.len() as u64 {
            return None;
        }
        Some(chunked_decoder::take(unread, left).unwrap_or_default())
    }

    /// Takes the next piece of data, or the trailers, as far as `unread` contains them.
    pub fn take(&mut self, unread: &mut BytesMut) -> Option<Frame<Bytes>> {
        match &mut self.0 {
            BodyRemainder::Length(left) => chunked_decoder::take(unread, left).map(Frame::data),
            BodyRemainder::Chunked(chunks) => {
                let frame = chunks.next(unread);
                chunks.consume_end(unread);
                frame
            }
            BodyRemainder::UntilClose if unread.is_empty() => None,
            BodyRemainder::UntilClose => Some(Frame::data(unread.split().freeze())),
        }
    }
}
