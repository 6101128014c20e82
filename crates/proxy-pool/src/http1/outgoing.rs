//! The request on its way: its head, then its body as its client sends it.

use super::head;
use crate::transport::Transport;
use bytes::{Buf, Bytes};
use http::header::{CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING};
use http::{HeaderMap, Request};
use http_body::Body;
use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Data up to this size is copied behind the head: cheaper than a vectored write.
const SMALL: usize = 2048;

/// Once so much waits, it is written before more is asked for.
const ENOUGH: usize = 16 * 1024;

/// What is to be written, and where the rest of it comes from.
#[derive(Debug)]
pub(crate) struct Outgoing<B> {
    /// Heads, chunk lines and small data; written up to `start`.
    text: Vec<u8>,
    start: usize,
    /// Data behind the text, not copied.
    piece: Bytes,
    /// Whether the line of the chunk in `piece` is still to be ended.
    owes_line_end: bool,
    body: Option<Upload<B>>,
    unflushed: bool,
    /// Whether the target takes no more.
    deaf: bool,
    sent: u64,
    /// Whether a body was taken out of the request.
    took_body: bool,
}

#[derive(Debug)]
struct Upload<B> {
    body: B,
    /// What is left of the announced length. None: it goes in chunks.
    left: Option<u64>,
}

/// Why the rest of a request cannot be sent.
#[derive(Debug)]
pub(crate) enum Stuck {
    /// Its body failed, or is not as long as was said.
    Body,
    /// The connection failed.
    Io(io::Error),
}

impl<B> Outgoing<B> {
    pub(crate) fn new() -> Self {
        Self {
            text: Vec::new(),
            start: 0,
            piece: Bytes::new(),
            owes_line_end: false,
            body: None,
            unflushed: false,
            deaf: false,
            sent: 0,
            took_body: false,
        }
    }

    /// Whether all of the request was taken.
    pub(crate) fn is_done(&self) -> bool {
        self.body.is_none() && !self.has_bytes() && !self.unflushed && !self.deaf
    }

    /// Whether the target will take nothing of a request that is whole still.
    pub(crate) fn is_unsent(&self) -> bool {
        self.deaf && self.sent == 0 && !self.took_body
    }

    fn has_bytes(&self) -> bool {
        self.start < self.text.len() || !self.piece.is_empty()
    }

    /// A target may answer and hang up before it has heard all. Its answer is still to be read, so
    /// what it does not hear is forgotten, and reading tells how the exchange ends.
    fn forget(&mut self) {
        self.deaf = true;
        self.text.clear();
        self.start = 0;
        self.piece = Bytes::new();
        self.body = None;
        self.unflushed = false;
    }

    fn wrote(&mut self, count: usize) {
        self.sent += count as u64;
        let of_text = count.min(self.text.len() - self.start);
        self.start += of_text;
        self.piece.advance(count - of_text);
        if self.start == self.text.len() {
            self.text.clear();
            self.start = 0;
        }
    }

    fn poll_write(
        &self,
        cx: &mut Context<'_>,
        transport: &mut Transport,
    ) -> Poll<io::Result<usize>> {
        let text = self.text.get(self.start..).unwrap_or_default();
        let transport = Pin::new(transport);
        match (text.is_empty(), self.piece.is_empty()) {
            (_, true) => transport.poll_write(cx, text),
            (true, false) => transport.poll_write(cx, &self.piece),
            (false, false) => {
                let pieces = [IoSlice::new(text), IoSlice::new(&self.piece)];
                transport.poll_write_vectored(cx, &pieces)
            }
        }
    }
}

impl<B: Body<Data = Bytes> + Default + Unpin> Outgoing<B> {
    /// Takes the head of `request`, and its body out of it.
    pub(crate) fn begin(&mut self, request: &mut Request<B>) {
        head::write_request(request, &mut self.text);
        self.sent = 0;
        self.took_body = false;
        if request.body().is_end_stream() {
            return;
        }
        self.took_body = true;
        let chunked = request.headers().contains_key(TRANSFER_ENCODING);
        let announced = || {
            let length = request.headers().get(CONTENT_LENGTH)?;
            length.to_str().ok()?.parse().ok()
        };
        self.body = Some(Upload {
            left: if chunked {
                None
            } else {
                announced().or(Some(0))
            },
            body: std::mem::take(request.body_mut()),
        });
    }

    /// Writes what there is. Ready when all of the request is out.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut Transport,
    ) -> Poll<Result<(), Stuck>> {
        loop {
            if self.body.is_some() || self.owes_line_end {
                self.gather(cx)?;
            }
            if !self.has_bytes() {
                if self.unflushed {
                    ready!(Pin::new(&mut *transport).poll_flush(cx)).map_err(Stuck::Io)?;
                    self.unflushed = false;
                }
                return if self.body.is_some() {
                    Poll::Pending
                } else {
                    Poll::Ready(Ok(()))
                };
            }
            match ready!(self.poll_write(cx, transport)) {
                Ok(0) => return Poll::Ready(Err(Stuck::Io(io::ErrorKind::WriteZero.into()))),
                Ok(count) => self.wrote(count),
                Err(error) if is_hang_up(&error) => {
                    self.forget();
                    return Poll::Ready(Ok(()));
                }
                Err(error) => return Poll::Ready(Err(Stuck::Io(error))),
            }
            self.unflushed = true;
        }
    }

    /// Takes from the body what is there, up to [`ENOUGH`].
    fn gather(&mut self, cx: &mut Context<'_>) -> Result<(), Stuck> {
        if self.owes_line_end && self.piece.is_empty() {
            self.text.extend_from_slice(b"\r\n");
            self.owes_line_end = false;
        }
        while self.piece.is_empty()
            && self.text.len() < ENOUGH
            && let Some(upload) = &mut self.body
            && let Poll::Ready(frame) = Pin::new(&mut upload.body).poll_frame(cx)
        {
            let Some(frame) = frame else {
                self.end(None)?;
                break;
            };
            match frame.map_err(|_| Stuck::Body)?.into_data() {
                Ok(data) => self.take(data)?,
                Err(frame) => self.end(frame.into_trailers().ok())?,
            }
        }
        Ok(())
    }

    fn take(&mut self, data: Bytes) -> Result<(), Stuck> {
        let Some(Upload { body, left }) = &mut self.body else {
            return Ok(());
        };
        let is_last = body.is_end_stream();
        match left {
            Some(left) => {
                let rest = left.checked_sub(data.len() as u64);
                *left = rest.ok_or(Stuck::Body)?;
            }
            None if data.is_empty() => {}
            None => {
                write!(self.text, "{:x}\r\n", data.len()).map_err(Stuck::Io)?;
                self.owes_line_end = true;
            }
        }
        if data.len() <= SMALL {
            self.text.extend_from_slice(&data);
            if std::mem::take(&mut self.owes_line_end) {
                self.text.extend_from_slice(b"\r\n");
            }
        } else {
            self.piece = data;
        }
        if is_last && !self.owes_line_end {
            return self.end(None);
        }
        Ok(())
    }

    /// Ends the body. Trailers go with chunks only. [RFC 9110 §6.5.1]
    fn end(&mut self, trailers: Option<HeaderMap>) -> Result<(), Stuck> {
        match self.body.take().and_then(|upload| upload.left) {
            Some(0) => Ok(()),
            Some(_) => Err(Stuck::Body),
            None => {
                self.text.extend_from_slice(b"0\r\n");
                if let Some(mut trailers) = trailers {
                    for name in [CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING] {
                        trailers.remove(name);
                    }
                    head::write_fields(&trailers, &mut self.text);
                }
                self.text.extend_from_slice(b"\r\n");
                Ok(())
            }
        }
    }
}

fn is_hang_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}
