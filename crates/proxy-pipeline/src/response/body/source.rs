//! Sources of a response body.

use super::error::BodyError;
use super::filling_body::FillingBody;
use super::held_body::{Held, size_of};
use super::interruption::Interruption;
use super::upstream_body::UpstreamBody;
use crate::response::compressed_body::Compression;
use crate::response::error_page::PageBody;
use crate::response::file_body::FileBody;
use crate::upload::body_buffer::{BodyBuffer, memory_problem};
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::ResponseReservation;
use std::io;
use std::task::{Context, Poll, ready};

/// Length of the pieces in which a body in memory is compressed, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// The source of a response body.
#[derive(Debug)]
pub(super) enum Source {
    Bytes(Bytes),
    /// A page of a route or a listener.
    Page(Box<PageBody>),
    /// A document that counts towards the memory limit.
    Counted(Box<CountedBytes>),
    Upstream(Box<UpstreamBody>),
    File(Box<FileBody>),
    /// Read in advance up to a limit, then the rest.
    Held(Box<Held>),
    /// Read into the store at the same time.
    Filling(Box<FillingBody>),
    /// Inspected by agents, followed by the uninspected remainder.
    Inspected(Box<InspectedBody>),
    /// A body that is compressed while it is sent.
    Compressed(Box<CompressedBody>),
    /// The body failed; the bytes before are sent first.
    Failed(BodyError),
    /// The body failed; the trailers report it.
    ErrorTrailers(HeaderMap),
}

/// The bytes of a document. Counted until the response ends: the connection holds them while the
/// client does not read.
#[derive(Debug)]
pub(super) struct CountedBytes {
    pub(super) bytes: Bytes,
    #[expect(dead_code, reason = "held to be dropped")]
    pub(super) memory: ResponseReservation,
}

/// A body with its compression.
#[derive(Debug)]
pub(super) struct CompressedBody {
    pub(super) plain: Source,
    pub(super) compression: Compression,
}

/// A body that agents have seen in whole, or from its beginning.
#[derive(Debug)]
pub(super) struct InspectedBody {
    read: BodyBuffer,
    trailers: Option<HeaderMap>,
    rest: Option<Source>,
}

impl Source {
    pub(super) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Bytes(Bytes::new()))
    }

    pub(super) fn poll_upload(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Upstream(upstream) => upstream.body.poll_upload(cx),
            Self::Compressed(compressed) => compressed.plain.poll_upload(cx),
            Self::Inspected(inspected) => {
                if let Some(rest) = &mut inspected.rest {
                    rest.poll_upload(cx);
                }
            }
            Self::Bytes(_)
            | Self::Page(_)
            | Self::Counted(_)
            | Self::Held(_)
            | Self::Filling(_)
            | Self::File(_)
            | Self::Failed(_)
            | Self::ErrorTrailers(_) => {}
        }
    }

    /// Returns true if the target may still read the request's body.
    pub(super) fn may_upload(&self) -> bool {
        match self {
            Self::Upstream(_) | Self::Held(_) => true,
            Self::Compressed(compressed) => compressed.plain.may_upload(),
            Self::Inspected(inspected) => inspected.rest.as_ref().is_some_and(Self::may_upload),
            Self::Bytes(_)
            | Self::Page(_)
            | Self::Counted(_)
            | Self::Filling(_)
            | Self::File(_)
            | Self::Failed(_)
            | Self::ErrorTrailers(_) => false,
        }
    }

    /// Returns true if the whole body is in memory.
    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self, Self::Bytes(_) | Self::Page(_) | Self::Counted(_))
    }

    /// Takes the next piece of a body in memory.
    pub(super) fn pop(&mut self) -> Option<Bytes> {
        match self {
            Self::Bytes(bytes) => Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty()),
            Self::Page(page) => page.pop(),
            Self::Counted(counted) => {
                Some(std::mem::take(&mut counted.bytes)).filter(|bytes| !bytes.is_empty())
            }
            Self::Upstream(_)
            | Self::File(_)
            | Self::Held(_)
            | Self::Filling(_)
            | Self::Inspected(_)
            | Self::Compressed(_)
            | Self::Failed(_)
            | Self::ErrorTrailers(_) => None,
        }
    }

    /// Like [`Self::poll`], but returns only a short piece of a long body in memory.
    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Interruption>>> {
        if let Self::Bytes(bytes) = self
            && bytes.len() > PIECE_BYTES
        {
            return Poll::Ready(Some(Ok(Frame::data(bytes.split_to(PIECE_BYTES)))));
        }
        self.poll(cx)
    }

    /// The next frame of a body that has not failed.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Interruption>>> {
        match self {
            Self::Bytes(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Bytes(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Page(_) | Self::Counted(_) => {
                Poll::Ready(self.pop().map(|piece| Ok(Frame::data(piece))))
            }
            Self::Upstream(upstream) => upstream.poll(cx).map_err(Interruption::Upstream),
            Self::Held(held) => held.poll(cx).map_err(Interruption::Upstream),
            Self::Filling(filling) => filling.poll(cx),
            Self::Inspected(inspected) => inspected.poll(cx),
            Self::Compressed(compressed) => compressed.poll(cx),
            Self::File(file) => file.poll(cx).map_err(Interruption::Own),
            Self::Failed(_) | Self::ErrorTrailers(_) => Poll::Ready(None),
        }
    }
}

impl Source {
    pub(super) fn is_end_stream(&self) -> bool {
        match self {
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Page(page) => page.left() == 0,
            Self::Counted(counted) => counted.bytes.is_empty(),
            Self::Upstream(upstream) => upstream.body.is_end_stream(),
            Self::Held(held) => held.is_over(),
            Self::Filling(filling) => filling.is_over(),
            Self::Inspected(inspected) => inspected.is_over(),
            Self::Compressed(compressed) => compressed.compression.is_over(),
            Self::File(file) => file.left() == 0,
            Self::Failed(_) | Self::ErrorTrailers(_) => false,
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match self {
            Self::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Page(page) => SizeHint::with_exact(page.left()),
            Self::Counted(counted) => SizeHint::with_exact(counted.bytes.len() as u64),
            Self::Upstream(upstream) => upstream.body.size_hint(),
            Self::Held(held) => held.size_hint(),
            Self::Filling(filling) => filling.size_hint(),
            Self::Inspected(inspected) => {
                let rest = inspected.rest.as_ref().map(Self::size_hint);
                size_of(inspected.read.len(), inspected.trailers.is_some(), rest)
            }
            Self::File(file) => SizeHint::with_exact(file.left()),
            Self::Compressed(_) | Self::Failed(_) | Self::ErrorTrailers(_) => SizeHint::default(),
        }
    }
}

impl InspectedBody {
    /// Initially empty, filled from `rest` into `read`.
    pub(super) fn new(read: BodyBuffer, rest: Source) -> Self {
        Self {
            read,
            trailers: None,
            rest: Some(rest),
        }
    }

    fn is_over(&self) -> bool {
        self.read.is_empty() && self.trailers.is_none() && self.rest.is_none()
    }

    pub(super) fn poll_inspect(
        &mut self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Poll<Result<bool, Interruption>> {
        if self.read.is_evicted() {
            return Poll::Ready(Err(Interruption::Own(memory_problem())));
        }
        while let Some(rest) = &mut self.rest {
            ready!(self.read.poll_room(cx.waker()));
            match ready!(rest.poll(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        let goes_on = take(&data);
                        if self.read.push(&data, cx.waker()).is_err() {
                            return Poll::Ready(Err(Interruption::Own(memory_problem())));
                        }
                        if !goes_on {
                            self.read.settle();
                            return Poll::Ready(Ok(false));
                        }
                    }
                    Err(frame) => self.trailers = frame.into_trailers().ok(),
                },
                Some(Err(interruption)) => return Poll::Ready(Err(interruption)),
                None => self.rest = None,
            }
        }
        self.read.settle();
        Poll::Ready(Ok(true))
    }

    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Interruption>>> {
        if let Some(block) = self.read.pop() {
            return Poll::Ready(Some(Ok(Frame::data(block))));
        }
        match &mut self.rest {
            Some(rest) => rest.poll(cx),
            None => Poll::Ready(self.trailers.take().map(|it| Ok(Frame::trailers(it)))),
        }
    }
}

impl CompressedBody {
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Interruption>>> {
        let Self { plain, compression } = self;
        let broken = |error: io::Error| {
            let detail = Detail::text(error.to_string());
            Interruption::Own(Problem::new(Reason::InternalError, detail))
        };
        compression.poll(cx, |cx| plain.poll_piece(cx), broken)
    }
}
