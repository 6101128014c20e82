//! A client that sends raw HTTP/2 frames, or bytes that resemble them, and reads the replies.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
pub(crate) const PADDED: u8 = 0x8;
pub(crate) const WITH_PRIORITY: u8 = 0x20;
/// A head with `END_STREAM`.
pub(crate) const WHOLE: u8 = END_STREAM | END_HEADERS;

pub(crate) const PROTOCOL_ERROR: u32 = 1;
pub(crate) const FLOW_CONTROL_ERROR: u32 = 3;
pub(crate) const STREAM_CLOSED: u32 = 5;
pub(crate) const FRAME_SIZE_ERROR: u32 = 6;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const COMPRESSION_ERROR: u32 = 9;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Longer than any response takes; silence is an error.
const EVENT_TIMEOUT: Duration = Duration::from_secs(5);

/// One connection.
pub(crate) struct Frames {
    stream: TcpStream,
    unread: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// The next event of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameEvent {
    Frame(Frame),
    End,
    Silence,
}

impl Frames {
    pub(crate) fn connect(to: SocketAddr) -> Self {
        let stream = TcpStream::connect(to).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(EVENT_TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(EVENT_TIMEOUT)).unwrap();
        Self {
            stream,
            unread: Vec::new(),
        }
    }

    /// Connects, and sends the preface.
    pub(crate) fn begin(to: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let mut frames = Self::connect(to);
        frames.send(&opening(settings));
        frames
    }

    /// Sends raw bytes. A closed connection need not accept them.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).ok();
    }

    pub(crate) fn send_frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.send(&frame(kind, flags, stream, payload));
    }

    /// Closes the sending side.
    pub(crate) fn finish(&self) {
        self.stream.shutdown(Shutdown::Write).ok();
    }

    pub(crate) fn next(&mut self) -> FrameEvent {
        loop {
            if let Some(frame) = Frame::take(&mut self.unread) {
                return FrameEvent::Frame(frame);
            }
            let mut piece = [0; 16 * 1024];
            match self.stream.read(&mut piece) {
                Ok(0) => return FrameEvent::End,
                Ok(count) => self.unread.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return FrameEvent::End,
                Err(_) => return FrameEvent::Silence,
            }
        }
    }

    /// The next frame of this type; frames before it are skipped.
    pub(crate) fn next_of(&mut self, kind: u8) -> Frame {
        self.next_of_flags(kind, 0)
    }

    /// Like [`Self::next`], with these flags.
    pub(crate) fn next_of_flags(&mut self, kind: u8, flags: u8) -> Frame {
        loop {
            match self.next() {
                FrameEvent::Frame(frame) if frame.kind == kind && frame.flags & flags == flags => {
                    return frame;
                }
                FrameEvent::Frame(_) => {}
                end @ (FrameEvent::End | FrameEvent::Silence) => {
                    panic!("no frame of kind {kind} came: {end:?}")
                }
            }
        }
    }
}

impl Frame {
    /// Takes the first complete frame of the input.
    pub(crate) fn take(unread: &mut Vec<u8>) -> Option<Self> {
        let (header, after) = unread.split_first_chunk::<9>()?;
        let [a, b, c, kind, flags, stream @ ..] = *header;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        let payload = after.get(..length)?.to_vec();
        unread.drain(..9 + length);
        Some(Self {
            kind,
            flags,
            stream: u32::from_be_bytes(stream),
            payload,
        })
    }

    /// The error code of `RST_STREAM` or `GOAWAY`.
    pub(crate) fn code(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }

    pub(crate) fn ends_stream(&self) -> bool {
        [DATA, HEADERS].contains(&self.kind) && self.flags & END_STREAM != 0
    }
}

/// The preface, with an acknowledgement of the server's settings.
pub(crate) fn opening(settings: &[(u16, u32)]) -> Vec<u8> {
    let settings = frame(SETTINGS, 0, 0, &parameters(settings));
    [PREFACE, &settings, &frame(SETTINGS, ACK, 0, &[])].concat()
}

/// The payload of a `SETTINGS` frame.
pub(crate) fn parameters(settings: &[(u16, u32)]) -> Vec<u8> {
    let one = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
    settings.iter().flat_map(one).collect()
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A head with `END_STREAM`, in as many frames as it needs.
pub(crate) fn head_in_pieces(stream: u32, section: &[u8]) -> Vec<u8> {
    if section.len() <= 16_000 {
        return frame(HEADERS, WHOLE, stream, section);
    }
    let mut pieces = section.chunks(16_000);
    let first = pieces.next().unwrap_or_default();
    let mut bytes = frame(HEADERS, END_STREAM, stream, first);
    for piece in pieces {
        bytes.extend(frame(CONTINUATION, 0, stream, piece));
    }
    bytes.extend(frame(CONTINUATION, END_HEADERS, stream, &[]));
    bytes
}
