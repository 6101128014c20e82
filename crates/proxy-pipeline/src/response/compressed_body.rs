//! A body that is compressed while it is sent.

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use proxy_coding::{Coding, CompressionLevels, Encoder};
use proxy_limits::ResponseReservation;
use std::io;
use std::task::{Context, Poll};

/// The compression of one body. Flushes whenever the body pauses, so that a slow stream is not
/// delayed.
#[derive(Debug)]
pub(crate) struct Compression {
    state: CompressionState,
    /// Sent after the last bytes.
    trailers: Option<HeaderMap>,
}

/// The state of the encoder. Its memory is counted from the head of the response on, because the
/// head already names the coding.
#[derive(Debug)]
enum CompressionState {
    /// No bytes were requested yet.
    New(Coding, CompressionLevels, ResponseReservation),
    Encoding(
        Box<Encoder>,
        #[expect(dead_code, reason = "held to be dropped")] ResponseReservation,
    ),
    /// The last bytes were returned.
    Over,
}

impl Compression {
    pub(crate) fn new(
        coding: Coding,
        levels: CompressionLevels,
        memory: ResponseReservation,
    ) -> Self {
        Self {
            state: CompressionState::New(coding, levels, memory),
            trailers: None,
        }
    }

    /// Returns true if everything was returned.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, CompressionState::Over) && self.trailers.is_none()
    }

    /// Returns true until the first bytes are wanted.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self.state, CompressionState::New(..))
    }

    /// The next compressed frame of the body that `poll_plain` returns frame by frame.
    pub(crate) fn poll<E>(
        &mut self,
        cx: &mut Context<'_>,
        mut poll_plain: impl FnMut(&mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, E>>>,
        broken: impl Fn(io::Error) -> E,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        if let Err(error) = self.begin() {
            return Poll::Ready(Some(Err(broken(error))));
        }
        loop {
            let CompressionState::Encoding(encoder, _) = &mut self.state else {
                let trailers = self.trailers.take();
                return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
            };
            let compressed = match poll_plain(cx) {
                Poll::Pending if encoder.is_unflushed() => encoder.flush(),
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(piece) => encoder.push(&piece),
                    Err(frame) => {
                        self.trailers = frame.into_trailers().ok();
                        self.finish()
                    }
                },
                Poll::Ready(None) => self.finish(),
                Poll::Ready(Some(Err(fault))) => return Poll::Ready(Some(Err(fault))),
            };
            match compressed {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Err(error) => return Poll::Ready(Some(Err(broken(error)))),
            }
        }
    }

    /// Creates the encoder before the first bytes.
    fn begin(&mut self) -> io::Result<()> {
        if !self.is_new() {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.state, CompressionState::Over);
        if let CompressionState::New(coding, levels, memory) = before {
            self.state =
                CompressionState::Encoding(Box::new(Encoder::new(coding, levels)?), memory);
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<Bytes> {
        match std::mem::replace(&mut self.state, CompressionState::Over) {
            CompressionState::Encoding(encoder, _) => encoder.finish(),
            CompressionState::New(..) | CompressionState::Over => Ok(Bytes::new()),
        }
    }
}
