//! A body that is compressed while it is sent.

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use proxy_coding::Encoder;
use std::io;
use std::task::{Context, Poll};

/// The compression of one body. Flushes whenever the body pauses, so that a slow stream is not delayed.
#[derive(Debug)]
pub(crate) struct Compression {
    /// `None` once the last bytes were returned.
    encoder: Option<Encoder>,
    /// Sent after the last bytes.
    trailers: Option<HeaderMap>,
}

impl Compression {
    pub(crate) fn new(encoder: Encoder) -> Self {
        Self {
            encoder: Some(encoder),
            trailers: None,
        }
    }

    /// Returns true if everything was returned.
    pub(crate) fn is_over(&self) -> bool {
        self.encoder.is_none() && self.trailers.is_none()
    }

    /// The next compressed frame of the body that `poll_plain` returns frame by frame.
    pub(crate) fn poll<E>(
        &mut self,
        cx: &mut Context<'_>,
        mut poll_plain: impl FnMut(&mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, E>>>,
        broken: impl Fn(io::Error) -> E,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        loop {
            let Some(encoder) = &mut self.encoder else {
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

    fn finish(&mut self) -> io::Result<Bytes> {
        self.encoder
            .take()
            .map_or(Ok(Bytes::new()), Encoder::finish)
    }
}
