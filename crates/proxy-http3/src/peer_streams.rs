//! The client's unidirectional streams: control, QPACK, and unknown types. [RFC 9114 §6.2]

use crate::code::{ErrorCode, Http3Error};
use crate::frame::{FrameHeader, FrameType, PartialHeader};
use crate::qpack::read_integer;
use crate::settings::{self, CONTROL_STREAM};
use crate::varint;
use bytes::{Buf, Bytes};

const PUSH_STREAM: u64 = 0x1;
const ENCODER_STREAM: u64 = 0x2;
const DECODER_STREAM: u64 = 0x3;

/// Maximum size of a frame that is buffered: settings, and identifiers.
const MAX_CONTROL_FRAME_BYTES: u64 = 4096;

/// Records which streams are open, of the types that a client may open once.
#[derive(Debug, Default)]
pub struct PeerStreams {
    has_control: bool,
    has_encoder: bool,
    has_decoder: bool,
}

/// A unidirectional stream of the client.
#[derive(Debug, Default)]
pub struct UniStream {
    kind: UniKind,
    /// Incomplete input: a type, an instruction, or the payload of a control frame.
    pending: Vec<u8>,
    /// Number of frames and instructions since the last call of [`Self::take_events`].
    events: u32,
}

#[derive(Debug, Default)]
enum UniKind {
    /// The type has not arrived yet.
    #[default]
    Unknown,
    Control(ControlStream),
    Encoder,
    Decoder,
    /// A stream of an unknown type, which is ignored.
    Ignored,
}

#[derive(Debug, Default)]
struct ControlStream {
    header: PartialHeader,
    frame: Option<FrameHeader>,
    has_settings: bool,
    max_push_id: Option<u64>,
    goaway: Option<u64>,
}

impl PeerStreams {
    /// Registers a stream's type; fails if the client has opened another stream of that type.
    fn open(&mut self, kind: u64) -> Result<UniKind, Http3Error> {
        let (has, kind) = match kind {
            CONTROL_STREAM => (
                &mut self.has_control,
                UniKind::Control(ControlStream::default()),
            ),
            ENCODER_STREAM => (&mut self.has_encoder, UniKind::Encoder),
            DECODER_STREAM => (&mut self.has_decoder, UniKind::Decoder),
            PUSH_STREAM => return Err(creation("a client opened a push stream")),
            _ => return Ok(UniKind::Ignored),
        };
        if std::mem::replace(has, true) {
            return Err(creation("a second control or QPACK stream"));
        }
        Ok(kind)
    }
}

const fn creation(rule: &'static str) -> Http3Error {
    Http3Error::connection(ErrorCode::STREAM_CREATION_ERROR, rule)
}

impl UniStream {
    /// Returns true if the stream has an unknown type, so that the caller may stop reading it.
    #[must_use]
    pub fn is_ignored(&self) -> bool {
        matches!(self.kind, UniKind::Ignored)
    }

    /// Number of frames and instructions since the last call.
    pub fn take_events(&mut self) -> u32 {
        std::mem::take(&mut self.events)
    }

    /// Processes `input`.
    ///
    /// # Errors
    /// Errors that close the connection.
    pub fn read(&mut self, streams: &mut PeerStreams, mut input: Bytes) -> Result<(), Http3Error> {
        if matches!(self.kind, UniKind::Unknown) {
            let Some(kind) = self.read_type(&mut input) else {
                return Ok(());
            };
            self.kind = streams.open(kind)?;
        }
        match &mut self.kind {
            UniKind::Control(control) => {
                control.read(&mut self.pending, &mut self.events, &mut input)
            }
            UniKind::Encoder => read_instructions(
                &mut self.pending,
                &mut self.events,
                &input,
                encoder_instruction,
            ),
            UniKind::Decoder => read_instructions(
                &mut self.pending,
                &mut self.events,
                &input,
                decoder_instruction,
            ),
            UniKind::Unknown | UniKind::Ignored => Ok(()),
        }
    }

    /// Handles the end of the stream, including a reset.
    ///
    /// # Errors
    /// The client closed a stream that must stay open as long as the connection. [RFC 9114 §6.2.1]
    pub fn finish(&self) -> Result<(), Http3Error> {
        match self.kind {
            UniKind::Control(_) | UniKind::Encoder | UniKind::Decoder => {
                let rule = "the client closed its control stream or a QPACK stream";
                Err(Http3Error::connection(
                    ErrorCode::CLOSED_CRITICAL_STREAM,
                    rule,
                ))
            }
            UniKind::Unknown | UniKind::Ignored => Ok(()),
        }
    }

    fn read_type(&mut self, input: &mut Bytes) -> Option<u64> {
        loop {
            if let Some((kind, _)) = varint::read(&self.pending) {
                self.pending.clear();
                return Some(kind);
            }
            if !input.has_remaining() {
                return None;
            }
            self.pending.push(input.get_u8());
        }
    }
}

impl ControlStream {
    fn read(
        &mut self,
        pending: &mut Vec<u8>,
        events: &mut u32,
        input: &mut Bytes,
    ) -> Result<(), Http3Error> {
        loop {
            let frame = if let Some(frame) = self.frame {
                frame
            } else {
                let Some(header) = self.header.read(input) else {
                    return Ok(());
                };
                self.check_kind(header)?;
                *events = events.saturating_add(1);
                self.frame = Some(header);
                header
            };
            // Unknown payloads are skipped; all other ones are buffered until complete.
            let have = if frame.kind == FrameType::Unknown {
                0
            } else {
                pending.len() as u64
            };
            let missing = usize::try_from(frame.length.saturating_sub(have)).unwrap_or(usize::MAX);
            let piece = input.split_to(missing.min(input.len()));
            let is_whole = piece.len() == missing;
            if frame.kind == FrameType::Unknown {
                let left = frame.length.saturating_sub(piece.len() as u64);
                self.frame = Some(FrameHeader {
                    length: left,
                    ..frame
                });
            } else {
                pending.extend_from_slice(&piece);
            }
            if !is_whole {
                return Ok(());
            }
            self.frame = None;
            let payload = std::mem::take(pending);
            self.take(frame.kind, &payload)?;
        }
    }

    fn check_kind(&self, FrameHeader { kind, length }: FrameHeader) -> Result<(), Http3Error> {
        let unexpected = |rule| Err(Http3Error::connection(ErrorCode::FRAME_UNEXPECTED, rule));
        if !self.has_settings && kind != FrameType::Settings {
            let rule = "a control stream begins without SETTINGS";
            return Err(Http3Error::connection(ErrorCode::MISSING_SETTINGS, rule));
        }
        match kind {
            FrameType::Settings if self.has_settings => return unexpected("SETTINGS occur twice"),
            FrameType::Data
            | FrameType::Headers
            | FrameType::PushPromise
            | FrameType::Forbidden => {
                return unexpected("a frame that is not allowed on a control stream");
            }
            FrameType::Unknown => return Ok(()),
            FrameType::Settings
            | FrameType::CancelPush
            | FrameType::Goaway
            | FrameType::MaxPushId => {}
        }
        if length > MAX_CONTROL_FRAME_BYTES {
            let rule = "a control frame far above any useful size";
            return Err(Http3Error::connection(ErrorCode::EXCESSIVE_LOAD, rule));
        }
        Ok(())
    }

    fn take(&mut self, kind: FrameType, payload: &[u8]) -> Result<(), Http3Error> {
        let id_error = |rule| Err(Http3Error::connection(ErrorCode::ID_ERROR, rule));
        match kind {
            FrameType::Settings => {
                self.has_settings = true;
                settings::check(payload)
            }
            FrameType::MaxPushId => {
                let id = identifier(payload)?;
                if self.max_push_id.is_some_and(|before| id < before) {
                    return id_error("MAX_PUSH_ID is lower than before");
                }
                self.max_push_id = Some(id);
                Ok(())
            }
            FrameType::Goaway => {
                let id = identifier(payload)?;
                if self.goaway.is_some_and(|before| id > before) {
                    return id_error("GOAWAY is higher than before");
                }
                self.goaway = Some(id);
                Ok(())
            }
            FrameType::CancelPush => {
                identifier(payload)?;
                id_error("CANCEL_PUSH of a push that was not promised")
            }
            FrameType::Data
            | FrameType::Headers
            | FrameType::PushPromise
            | FrameType::Forbidden
            | FrameType::Unknown => Ok(()),
        }
    }
}

/// The single integer in a frame's payload.
fn identifier(payload: &[u8]) -> Result<u64, Http3Error> {
    let read = varint::read(payload).filter(|(_, used)| *used == payload.len());
    let rule = "a control frame is not one integer";
    Ok(read
        .ok_or(Http3Error::connection(ErrorCode::FRAME_ERROR, rule))?
        .0)
}

/// Parses an instruction and returns its length; `None` if it is incomplete.
type ReadInstruction = fn(&[u8]) -> Result<Option<usize>, Http3Error>;

fn read_instructions(
    pending: &mut Vec<u8>,
    events: &mut u32,
    input: &[u8],
    read: ReadInstruction,
) -> Result<(), Http3Error> {
    pending.extend_from_slice(input);
    let mut used = 0;
    while let Some(rest) = pending.get(used..).filter(|rest| !rest.is_empty())
        && let Some(length) = read(rest)?
    {
        used += length;
        *events = events.saturating_add(1);
    }
    pending.drain(..used);
    Ok(())
}

/// Accepts only a capacity of 0, because no dynamic table is offered. [RFC 9204 §4.3]
fn encoder_instruction(bytes: &[u8]) -> Result<Option<usize>, Http3Error> {
    let error = |rule| Http3Error::connection(ErrorCode::QPACK_ENCODER_STREAM_ERROR, rule);
    if bytes.first().is_some_and(|byte| byte >> 5 != 0b001) {
        return Err(error(
            "an insertion into a dynamic table that is not offered",
        ));
    }
    match read_integer(bytes, 5) {
        Ok(Some((0, used))) => Ok(Some(used)),
        Ok(Some(_)) | Err(_) => Err(error("a capacity of a dynamic table that is not offered")),
        Ok(None) => Ok(None),
    }
}

/// Accepts only stream cancellations, because nothing is ever inserted. [RFC 9204 §4.4]
fn decoder_instruction(bytes: &[u8]) -> Result<Option<usize>, Http3Error> {
    let error = |rule| Http3Error::connection(ErrorCode::QPACK_DECODER_STREAM_ERROR, rule);
    if bytes.first().is_some_and(|byte| byte >> 6 != 0b01) {
        return Err(error("an acknowledgement of insertions that were not made"));
    }
    let read = read_integer(bytes, 6).map_err(|_| error("a stream number is too large"))?;
    Ok(read.map(|(_, used)| used))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds each stream byte by byte.
    fn read(streams: &[&[u8]]) -> Result<u32, ErrorCode> {
        let mut known = PeerStreams::default();
        let mut events = 0;
        for bytes in streams {
            let mut stream = UniStream::default();
            for byte in *bytes {
                let input = Bytes::copy_from_slice(&[*byte]);
                stream.read(&mut known, input).map_err(|error| error.code)?;
            }
            events += stream.take_events();
            let mut whole = UniStream::default();
            let read = whole.read(&mut PeerStreams::default(), Bytes::copy_from_slice(bytes));
            assert_eq!(read, Ok(()));
        }
        Ok(events)
    }

    const SETTINGS: &[u8] = &[0x0, 0x4, 0x2, 0x6, 0x10];

    fn control(frames: &[u8]) -> Result<u32, ErrorCode> {
        read(&[&[SETTINGS, frames].concat()])
    }

    #[test]
    fn a_client_s_streams_are_read() {
        assert_eq!(
            read(&[SETTINGS, &[0x2, 0x20], &[0x3, 0x44, 0x7f, 0x1]]),
            Ok(4)
        );
        // MAX_PUSH_ID twice, an unknown frame, GOAWAY.
        assert_eq!(
            control(&[0xd, 1, 4, 0xd, 1, 4, 0x21, 3, 1, 2, 3, 0x7, 1, 0]),
            Ok(5)
        );
    }

    #[test]
    fn streams_of_unknown_types_are_ignored() {
        let mut stream = UniStream::default();
        let read = stream.read(
            &mut PeerStreams::default(),
            Bytes::from_static(&[0x40, 0x54, 0xff]),
        );
        assert_eq!(read, Ok(()));
        assert!(stream.is_ignored());
        assert_eq!(stream.finish(), Ok(()));
    }

    #[test]
    fn each_stream_is_opened_once() {
        let twice = Err(ErrorCode::STREAM_CREATION_ERROR);
        assert_eq!(read(&[SETTINGS, SETTINGS]), twice);
        assert_eq!(read(&[&[0x2], &[0x2]]), twice);
        assert_eq!(read(&[&[0x3], &[0x3]]), twice);
        assert_eq!(read(&[&[0x1]]), twice);
    }

    #[test]
    fn control_frames_are_checked() {
        assert_eq!(read(&[&[0x0, 0x21, 0x0]]), Err(ErrorCode::MISSING_SETTINGS));
        assert_eq!(control(&[0x4, 0]), Err(ErrorCode::FRAME_UNEXPECTED));
        for kind in [0x0, 0x1, 0x2, 0x5, 0x6, 0x8, 0x9] {
            assert_eq!(
                control(&[kind, 0]),
                Err(ErrorCode::FRAME_UNEXPECTED),
                "{kind}"
            );
        }
        assert_eq!(control(&[0xd, 1, 4, 0xd, 1, 3]), Err(ErrorCode::ID_ERROR));
        assert_eq!(control(&[0x7, 1, 4, 0x7, 1, 5]), Err(ErrorCode::ID_ERROR));
        assert_eq!(control(&[0x3, 1, 0]), Err(ErrorCode::ID_ERROR));
        assert_eq!(control(&[0xd, 2, 4, 4]), Err(ErrorCode::FRAME_ERROR));
        assert_eq!(control(&[0xd, 0]), Err(ErrorCode::FRAME_ERROR));
        assert_eq!(control(&[0xd, 0x50, 0x1]), Err(ErrorCode::EXCESSIVE_LOAD));
    }

    #[test]
    fn qpack_streams_insert_nothing() {
        let encoder = Err(ErrorCode::QPACK_ENCODER_STREAM_ERROR);
        for instruction in [&[0x21][..], &[0x3f, 0x1], &[0xc0, 0x0], &[0x40], &[0x00]] {
            assert_eq!(read(&[&[&[0x2], instruction].concat()]), encoder);
        }
        let decoder = Err(ErrorCode::QPACK_DECODER_STREAM_ERROR);
        for instruction in [0x01, 0x80] {
            assert_eq!(read(&[&[0x3, instruction]]), decoder);
        }
    }

    #[test]
    fn critical_streams_stay_open() {
        for bytes in [SETTINGS, &[0x2], &[0x3]] {
            let mut stream = UniStream::default();
            stream
                .read(&mut PeerStreams::default(), Bytes::copy_from_slice(bytes))
                .unwrap();
            assert_eq!(
                stream.finish().unwrap_err().code,
                ErrorCode::CLOSED_CRITICAL_STREAM
            );
        }
    }

    #[test]
    fn a_long_frame_without_a_meaning_is_not_kept() {
        let mut known = PeerStreams::default();
        let mut stream = UniStream::default();
        let begin = [SETTINGS, &[0x21, 0x80, 0x1, 0x0, 0x0]].concat();
        stream.read(&mut known, begin.into()).unwrap();
        for _ in 0..16 {
            stream
                .read(&mut known, Bytes::from_static(&[0; 4096]))
                .unwrap();
        }
        assert!(stream.pending.is_empty());
        assert_eq!(stream.take_events(), 2);
        stream
            .read(&mut known, Bytes::from_static(&[0x7, 1, 0]))
            .unwrap();
        assert_eq!(stream.take_events(), 1);
    }
}
