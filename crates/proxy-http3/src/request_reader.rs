//! Parser for request streams. [RFC 9114 §4.1]

use crate::code::{ErrorCode, Http3Error};
use crate::frame::{FrameHeader, FrameType, PartialHeader};
use bytes::{Buf, Bytes, BytesMut};

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestPart {
    /// Encoded header section of the head.
    Head(Bytes),
    /// Body data, not empty.
    Data(Bytes),
    /// Encoded header section of the trailers.
    Trailers(Bytes),
}

/// Incremental parser for the frames of a request stream. Buffers a header section up to a limit,
/// and passes data on as it arrives.
#[derive(Debug)]
pub struct RequestReader {
    stage: Stage,
    header: PartialHeader,
    frame: Option<OpenFrame>,
    section: BytesMut,
    max_section_bytes: u64,
    /// Remaining bytes of the body according to `Content-Length`.
    expected: Option<u64>,
    empty_frames: u32,
}

/// Next part of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    Body,
    End,
}

/// A frame with `left` bytes that have not arrived.
#[derive(Clone, Copy, Debug)]
struct OpenFrame {
    kind: PayloadKind,
    left: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PayloadKind {
    Data,
    Section,
    Skipped,
}

impl RequestReader {
    /// Creates a parser; encoded header sections may have at most `max_section_bytes`.
    #[must_use]
    pub fn new(max_section_bytes: usize) -> Self {
        Self {
            stage: Stage::Head,
            header: PartialHeader::default(),
            frame: None,
            section: BytesMut::new(),
            max_section_bytes: max_section_bytes as u64,
            expected: None,
            empty_frames: 0,
        }
    }

    /// Sets the body's expected length, from the head.
    pub fn expect(&mut self, length: Option<u64>) {
        self.expected = length;
    }

    /// Number of unknown frames and empty `DATA` frames since the last call.
    pub fn take_empty_frames(&mut self) -> u32 {
        std::mem::take(&mut self.empty_frames)
    }

    /// Buffered bytes of an incomplete header section.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.section.len()
    }

    /// Consumes `input` up to the end of the next part; `None` if it contains no further part.
    ///
    /// # Errors
    /// A frame that is not permitted at this point, a header section above the limit, or a body
    /// longer than `Content-Length`.
    pub fn read(&mut self, input: &mut Bytes) -> Result<Option<RequestPart>, Http3Error> {
        loop {
            let Some(frame) = &mut self.frame else {
                let Some(header) = self.header.read(input) else {
                    return Ok(None);
                };
                self.begin(header)?;
                if let Some(part) = self.take_whole_section() {
                    return Ok(Some(part));
                }
                continue;
            };
            if input.is_empty() {
                return Ok(None);
            }
            let len = usize::try_from(frame.left)
                .unwrap_or(usize::MAX)
                .min(input.len());
            frame.left -= len as u64;
            let kind = frame.kind;
            if frame.left == 0 && kind != PayloadKind::Section {
                self.frame = None;
            }
            match kind {
                PayloadKind::Data => {
                    self.count(len as u64)?;
                    return Ok(Some(RequestPart::Data(input.split_to(len))));
                }
                PayloadKind::Section => {
                    self.section.extend_from_slice(&input.split_to(len));
                    if let Some(part) = self.take_whole_section() {
                        return Ok(Some(part));
                    }
                }
                PayloadKind::Skipped => input.advance(len),
            }
        }
    }

    /// Handles the end of the stream.
    ///
    /// # Errors
    /// The stream ended within a frame, before a head, or before the end of the body.
    pub fn finish(&self) -> Result<(), Http3Error> {
        if self.frame.is_some() || !self.header.is_empty() {
            let rule = "a request stream ends within a frame";
            return Err(Http3Error::connection(ErrorCode::FRAME_ERROR, rule));
        }
        if self.stage == Stage::Head {
            let rule = "a request stream ends before its head";
            return Err(Http3Error::stream(ErrorCode::REQUEST_INCOMPLETE, rule));
        }
        if self.expected.is_some_and(|left| left > 0) {
            return Err(Http3Error::malformed(
                "a body is shorter than its content-length",
            ));
        }
        Ok(())
    }

    fn begin(&mut self, FrameHeader { kind, length }: FrameHeader) -> Result<(), Http3Error> {
        let unexpected = |rule| Err(Http3Error::connection(ErrorCode::FRAME_UNEXPECTED, rule));
        let kind = match (kind, self.stage) {
            (FrameType::Headers, Stage::Head | Stage::Body) => {
                if length > self.max_section_bytes {
                    let rule = "a header section far above the limits";
                    return Err(Http3Error::stream(ErrorCode::EXCESSIVE_LOAD, rule));
                }
                PayloadKind::Section
            }
            (FrameType::Data, Stage::Body) => {
                if length == 0 {
                    self.empty_frames = self.empty_frames.saturating_add(1);
                }
                PayloadKind::Data
            }
            (FrameType::Data, Stage::Head) => return unexpected("DATA before HEADERS"),
            (FrameType::Data | FrameType::Headers, Stage::End) => {
                return unexpected("a frame after the trailers");
            }
            (FrameType::Unknown, _) => {
                self.empty_frames = self.empty_frames.saturating_add(1);
                PayloadKind::Skipped
            }
            (
                FrameType::CancelPush
                | FrameType::Settings
                | FrameType::PushPromise
                | FrameType::Goaway
                | FrameType::MaxPushId
                | FrameType::Forbidden,
                _,
            ) => return unexpected("a frame that is not allowed on a request stream"),
        };
        let is_open = length > 0 || kind == PayloadKind::Section;
        self.frame = is_open.then_some(OpenFrame { kind, left: length });
        Ok(())
    }

    fn take_whole_section(&mut self) -> Option<RequestPart> {
        let whole = self
            .frame
            .is_some_and(|frame| frame.kind == PayloadKind::Section && frame.left == 0);
        if !whole {
            return None;
        }
        self.frame = None;
        let section = std::mem::take(&mut self.section).freeze();
        Some(if self.stage == Stage::Head {
            self.stage = Stage::Body;
            RequestPart::Head(section)
        } else {
            self.stage = Stage::End;
            RequestPart::Trailers(section)
        })
    }

    fn count(&mut self, len: u64) -> Result<(), Http3Error> {
        if let Some(left) = &mut self.expected {
            let rule = "a body is longer than its content-length";
            *left = left.checked_sub(len).ok_or(Http3Error::malformed(rule))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Scope;
    use proptest::prelude::*;

    const MAX: usize = 100;

    fn read_all(pieces: &[&[u8]], length: Option<u64>) -> Result<Vec<RequestPart>, Http3Error> {
        let mut reader = RequestReader::new(MAX);
        reader.expect(length);
        let mut parts = Vec::new();
        for piece in pieces {
            let mut piece = Bytes::copy_from_slice(piece);
            while let Some(part) = reader.read(&mut piece)? {
                parts.push(part);
            }
            assert!(piece.is_empty());
        }
        reader.finish()?;
        Ok(parts)
    }

    fn code(bytes: &[u8]) -> (ErrorCode, Scope) {
        let error = read_all(&[bytes], None).unwrap_err();
        (error.code, error.scope)
    }

    const MESSAGE: &[u8] = b"\x01\x02ab\x00\x03xyz\x21\x02??\x00\x00\x00\x01!\x01\x01t\x21\x00";

    #[test]
    fn a_message_has_a_head_data_and_trailers() {
        let parts = read_all(&[MESSAGE], Some(4)).unwrap();
        assert_eq!(
            parts,
            [
                RequestPart::Head(Bytes::from_static(b"ab")),
                RequestPart::Data(Bytes::from_static(b"xyz")),
                RequestPart::Data(Bytes::from_static(b"!")),
                RequestPart::Trailers(Bytes::from_static(b"t")),
            ]
        );
    }

    #[test]
    fn frames_without_a_meaning_are_counted() {
        let mut reader = RequestReader::new(MAX);
        let mut input = Bytes::from_static(MESSAGE);
        while reader.read(&mut input).unwrap().is_some() {}
        assert_eq!(reader.take_empty_frames(), 3);
        assert_eq!(reader.take_empty_frames(), 0);
    }

    #[test]
    fn frames_at_the_wrong_place_are_refused() {
        let unexpected = (ErrorCode::FRAME_UNEXPECTED, Scope::Connection);
        assert_eq!(code(b"\x00\x01x"), unexpected);
        assert_eq!(code(b"\x01\x00\x01\x00\x00\x01x"), unexpected);
        assert_eq!(code(b"\x01\x00\x01\x00\x01\x00"), unexpected);
        for kind in [0x2, 0x3, 0x4, 0x5, 0x6, 0x7, 0x8, 0x9, 0xd] {
            assert_eq!(code(&[kind, 0]), unexpected, "{kind}");
        }
    }

    #[test]
    fn a_stream_ends_after_a_whole_message() {
        let incomplete = (ErrorCode::REQUEST_INCOMPLETE, Scope::Stream);
        assert_eq!(code(b""), incomplete);
        assert_eq!(code(b"\x21\x00"), incomplete);
        let cut = (ErrorCode::FRAME_ERROR, Scope::Connection);
        assert_eq!(code(b"\x01"), cut);
        assert_eq!(code(b"\x01\x01"), cut);
        assert_eq!(code(b"\x01\x00\x00\x02x"), cut);
    }

    #[test]
    fn a_body_has_its_content_length() {
        let body = b"\x01\x00\x00\x02xy";
        assert!(read_all(&[body], Some(2)).is_ok());
        for length in [0, 1, 3, u64::MAX] {
            let error = read_all(&[body], Some(length)).unwrap_err();
            assert_eq!(error.code, ErrorCode::MESSAGE_ERROR, "{length}");
            assert_eq!(error.scope, Scope::Stream);
        }
    }

    #[test]
    fn a_large_section_is_refused_by_its_length() {
        let mut input = Bytes::from_static(b"\x01\x40\x65");
        let error = RequestReader::new(MAX).read(&mut input).unwrap_err();
        assert_eq!(error.code, ErrorCode::EXCESSIVE_LOAD);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(bytes in prop::collection::vec(0_u8..4, 0..60), cut in 0_usize..60) {
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            let joined = |parts: Vec<RequestPart>| {
                let mut text = Vec::new();
                for part in parts {
                    match part {
                        RequestPart::Head(part) => text.extend([&b"head "[..], &part].concat()),
                        RequestPart::Data(part) => text.extend(part),
                        RequestPart::Trailers(part) => text.extend([&b"trailers "[..], &part].concat()),
                    }
                }
                text
            };
            let whole = read_all(&[&bytes], Some(3)).map(joined);
            prop_assert_eq!(whole, read_all(&[first, second], Some(3)).map(joined));
        }
    }
}
