//! The client side of HTTP/2, reduced to the needs of a load: many requests at a time.

use crate::http::frame::{Frame, Kind};
use crate::request_error::RequestError;
use std::time::Duration;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// No pushes; windows of 16 MiB for each stream. [RFC 9113 §6.5.2]
const SETTINGS: &[u8] = &[0, 2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0];
/// Increment of the connection's window, at the beginning and whenever half of it is used.
const WINDOW_BYTES: u32 = 1 << 30;
/// `:status: 200`, entry 8 of the static table. [RFC 7541 §6.1]
const STATUS_200: u8 = 0x88;

/// State of one connection.
#[derive(Debug)]
pub(crate) struct Http2 {
    /// The beginning of an incomplete frame.
    held: Vec<u8>,
    open: Vec<Open>,
    next_stream: u32,
    greeted: bool,
    /// Bytes of data since the last window update.
    used_bytes: u32,
}

/// A request with an incomplete response.
#[derive(Clone, Copy, Debug)]
struct Open {
    stream: u32,
    since: Duration,
    head: bool,
    body_bytes: usize,
}

impl Http2 {
    /// For a connection before its preface.
    pub(crate) fn new() -> Self {
        Self {
            held: Vec::new(),
            open: Vec::new(),
            next_stream: 1,
            greeted: false,
            used_bytes: 0,
        }
    }

    /// Appends a request to `out`, after the preface if it is the first; `block` is its compressed
    /// head. Its time counts from `since`.
    pub(crate) fn queue_request(&mut self, block: &[u8], out: &mut Vec<u8>, since: Duration) {
        if !self.greeted {
            self.greeted = true;
            out.extend_from_slice(PREFACE);
            frame(Kind::Settings, 0, 0, SETTINGS).write(out);
            frame(Kind::WindowUpdate, 0, 0, &WINDOW_BYTES.to_be_bytes()).write(out);
        }
        let stream = self.next_stream;
        self.next_stream += 2;
        let flags = Frame::END_STREAM | Frame::END_HEADERS;
        frame(Kind::Headers, flags, stream, block).write(out);
        self.open.push(Open {
            stream,
            since,
            head: false,
            body_bytes: 0,
        });
    }

    /// Number of requests with an incomplete response.
    pub(crate) fn unanswered(&self) -> usize {
        self.open.len()
    }

    /// Consumes input: appends to `answered` the start time of each request with a now complete
    /// response, and to `out` the frames that the protocol requires.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        body_bytes: Option<usize>,
        out: &mut Vec<u8>,
        answered: &mut Vec<Duration>,
    ) -> Result<(), RequestError> {
        let mut whole = std::mem::take(&mut self.held);
        whole.extend_from_slice(bytes);
        let mut rest = whole.as_slice();
        while let Some((frame, after)) = Frame::split(rest) {
            if self.receive(frame, out)? {
                answered.push(self.close(frame.stream, body_bytes)?);
            }
            rest = after;
        }
        let used = whole.len() - rest.len();
        whole.drain(..used);
        self.held = whole;
        Ok(())
    }

    /// True if the frame ends its stream.
    fn receive(&mut self, received: Frame<'_>, out: &mut Vec<u8>) -> Result<bool, RequestError> {
        let ends = received.has(Frame::END_STREAM);
        match received.kind {
            Kind::Headers => {
                let block = received.content().ok_or(RequestError::Unasked)?;
                self.head(received.stream, block)?;
                Ok(ends)
            }
            Kind::Data => {
                self.data(&received, out)?;
                Ok(ends)
            }
            Kind::Settings | Kind::Ping if !received.has(Frame::ACK) => {
                let echo = if received.kind == Kind::Ping {
                    received.payload
                } else {
                    &[]
                };
                frame(received.kind, Frame::ACK, 0, echo).write(out);
                Ok(false)
            }
            Kind::Reset => Err(RequestError::Reset(code(received.payload))),
            Kind::GoAway => Err(RequestError::Reset(code(
                received.payload.get(4..).unwrap_or(&[]),
            ))),
            Kind::Settings | Kind::Ping | Kind::WindowUpdate | Kind::Continuation | Kind::Other => {
                Ok(false)
            }
        }
    }

    /// The status is the first field [RFC 9113 §8.3]; only table size updates may precede it. A
    /// second head is trailers.
    fn head(&mut self, stream: u32, block: &[u8]) -> Result<(), RequestError> {
        let open = self.open.iter_mut().find(|open| open.stream == stream);
        let open = open.ok_or(RequestError::Unasked)?;
        if open.head {
            return Ok(());
        }
        let first = without_size_updates(block).first();
        if first != Some(&STATUS_200) {
            return Err(RequestError::Status("other than 200".to_owned()));
        }
        open.head = true;
        Ok(())
    }

    fn data(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<(), RequestError> {
        let open = self
            .open
            .iter_mut()
            .find(|open| open.stream == frame.stream);
        let open = open.ok_or(RequestError::Unasked)?;
        open.body_bytes += frame.content().ok_or(RequestError::Length)?.len();
        self.used_bytes += u32::try_from(frame.payload.len()).unwrap_or(WINDOW_BYTES);
        if self.used_bytes >= WINDOW_BYTES / 2 {
            let more = self.used_bytes.to_be_bytes();
            self::frame(Kind::WindowUpdate, 0, 0, &more).write(out);
            self.used_bytes = 0;
        }
        Ok(())
    }

    fn close(&mut self, stream: u32, body_bytes: Option<usize>) -> Result<Duration, RequestError> {
        let place = self.open.iter().position(|open| open.stream == stream);
        let open = self.open.swap_remove(place.ok_or(RequestError::Unasked)?);
        if !open.head || body_bytes.is_some_and(|expected| expected != open.body_bytes) {
            return Err(RequestError::Length);
        }
        Ok(open.since)
    }
}

fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Frame<'_> {
    Frame {
        kind,
        flags,
        stream,
        payload,
    }
}

fn code(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk()
        .map_or(0, |code| u32::from_be_bytes(*code))
}

/// [RFC 7541 §6.3]: `001` and a number with a five-bit prefix.
fn without_size_updates(block: &[u8]) -> &[u8] {
    let mut rest = block;
    while let Some((first, after)) = rest.split_first().filter(|(first, _)| **first >> 5 == 1) {
        rest = after;
        if *first == 0x3f {
            let last = rest.iter().position(|byte| byte & 0x80 == 0);
            rest = last.and_then(|at| rest.get(at + 1..)).unwrap_or_default();
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINCE: Duration = Duration::from_millis(7);

    fn written(frames: &[Frame<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for frame in frames {
            frame.write(&mut bytes);
        }
        bytes
    }

    fn with_request() -> Http2 {
        let mut http2 = Http2::new();
        http2.queue_request(b"block", &mut Vec::new(), SINCE);
        http2
    }

    fn taken(http2: &mut Http2, frames: &[Frame<'_>]) -> Result<(usize, Vec<u8>), RequestError> {
        let (mut out, mut answered) = (Vec::new(), Vec::new());
        http2.take(&written(frames), Some(4), &mut out, &mut answered)?;
        assert!(answered.iter().all(|since| *since == SINCE));
        Ok((answered.len(), out))
    }

    #[test]
    fn the_first_request_brings_the_preface_and_streams_are_odd() {
        let mut out = Vec::new();
        let mut http2 = Http2::new();
        http2.queue_request(b"block", &mut out, SINCE);
        let after = out.strip_prefix(PREFACE).unwrap();
        let (settings, after) = Frame::split(after).unwrap();
        let (window, after) = Frame::split(after).unwrap();
        let (request, _) = Frame::split(after).unwrap();
        assert_eq!(
            (settings.kind, window.kind),
            (Kind::Settings, Kind::WindowUpdate)
        );
        assert_eq!((request.stream, request.payload), (1, b"block".as_slice()));

        out.clear();
        http2.queue_request(b"other", &mut out, SINCE);
        let (second, _) = Frame::split(&out).unwrap();
        assert_eq!(second.stream, 3);
        assert_eq!(http2.unanswered(), 2);
    }

    #[test]
    fn an_answer_is_complete_once_for_every_split() {
        let bytes = written(&[
            frame(Kind::Settings, 0, 0, b""),
            frame(
                Kind::Headers,
                Frame::END_HEADERS,
                1,
                b"\x3f\x81\x01\x20\x88rest",
            ),
            frame(Kind::Data, 0, 1, b"xx"),
            frame(Kind::Data, Frame::END_STREAM, 1, b"xx"),
        ]);
        for size in 1..=bytes.len() {
            let mut http2 = with_request();
            let (mut out, mut answered) = (Vec::new(), Vec::new());
            for piece in bytes.chunks(size) {
                http2.take(piece, Some(4), &mut out, &mut answered).unwrap();
            }
            assert_eq!(answered, [SINCE], "in pieces of {size}");
            assert_eq!(http2.unanswered(), 0);
            assert_eq!(out, written(&[frame(Kind::Settings, Frame::ACK, 0, b"")]));
        }
    }

    #[test]
    fn pings_are_answered() {
        let ping = frame(Kind::Ping, 0, 0, b"12345678");
        let echo = frame(Kind::Ping, Frame::ACK, 0, b"12345678");
        assert_eq!(
            taken(&mut with_request(), &[ping]),
            Ok((0, written(&[echo])))
        );
        assert_eq!(taken(&mut with_request(), &[echo]), Ok((0, Vec::new())));
    }

    #[test]
    fn anything_but_the_upstreams_answer_is_a_fault() {
        let end = Frame::END_STREAM;
        let head = frame(Kind::Headers, 0, 1, b"\x88");
        let cases: [(&[Frame<'_>], RequestError); 6] = [
            (
                &[frame(Kind::Headers, end, 1, b"\x8d")],
                RequestError::Status("other than 200".to_owned()),
            ),
            (
                &[head, frame(Kind::Data, end, 1, b"xxx")],
                RequestError::Length,
            ),
            (&[frame(Kind::Data, end, 1, b"xxxx")], RequestError::Length),
            (&[frame(Kind::Data, end, 3, b"xxxx")], RequestError::Unasked),
            (
                &[frame(Kind::Reset, 0, 1, &[0, 0, 0, 7])],
                RequestError::Reset(7),
            ),
            (
                &[frame(Kind::GoAway, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 2])],
                RequestError::Reset(2),
            ),
        ];
        for (frames, fault) in cases {
            assert_eq!(taken(&mut with_request(), frames), Err(fault), "{frames:?}");
        }
    }

    #[test]
    fn the_window_is_opened_again_before_it_is_used_up() {
        let mut http2 = with_request();
        http2.used_bytes = WINDOW_BYTES / 2 - 1;
        let (_, out) = taken(&mut http2, &[frame(Kind::Data, 0, 1, b"x")]).unwrap();

        let more = (WINDOW_BYTES / 2).to_be_bytes();
        assert_eq!(out, written(&[frame(Kind::WindowUpdate, 0, 0, &more)]));
        assert_eq!(http2.used_bytes, 0);
    }
}
