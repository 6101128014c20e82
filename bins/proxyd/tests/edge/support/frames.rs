//! A client that sends raw HTTP/2 frames, and reads the replies.

use super::http2::plain;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;

pub(crate) const PROTOCOL_ERROR: u32 = 1;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const CANCEL: u32 = 8;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

/// `GET / ` at `a.test` over `http`, in HPACK without compression of the host.
pub(crate) const GET: &[u8] = b"\x82\x84\x86\x41\x06a.test";

/// The same with `POST`.
pub(crate) const POST: &[u8] = b"\x83\x84\x86\x41\x06a.test";

/// `SETTINGS_INITIAL_WINDOW_SIZE`. [RFC 9113 §6.5.2]
pub(crate) const INITIAL_WINDOW: u16 = 4;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One connection.
pub(crate) struct Frames(TcpStream);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frames {
    /// Connects and sends the preface with these settings.
    pub(crate) async fn connect(to: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let mut frames = Self(plain(to).await);
        frames.0.write_all(PREFACE).await.unwrap();
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
            .collect();
        frames.send(SETTINGS, 0, 0, &payload).await;
        frames
    }

    pub(crate) async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.try_send(kind, flags, stream, payload).await.unwrap();
    }

    pub(crate) async fn try_send(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
    ) -> std::io::Result<()> {
        let frame = frame(kind, flags, stream, payload);
        self.0.write_all(&frame).await
    }

    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all(bytes).await
    }

    /// The next frame; `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let mut header = [0; 9];
        self.0.read_exact(&mut header).await.ok()?;
        let [a, b, c, kind, flags, stream @ ..] = header;
        let length = u32::from_be_bytes([0, a, b, c]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut payload).await.ok()?;
        Some(Frame {
            kind,
            flags,
            stream: u32::from_be_bytes(stream),
            payload,
        })
    }

    /// The next frame of this type; frames before it are skipped.
    pub(crate) async fn next_of(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.next().await;
            let frame = frame.unwrap_or_else(|| panic!("no frame of kind {kind} came"));
            if frame.kind == kind {
                return frame;
            }
        }
    }
}

impl Frame {
    /// The error code of `RST_STREAM` or `GOAWAY`.
    pub(crate) fn code(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A field that HPACK cannot compress.
pub(crate) fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
    let mut field = vec![0, length(name)];
    field.extend_from_slice(name);
    field.push(length(value));
    field.extend_from_slice(value);
    field
}
