//! The response body, with the state that lives as long as it does.

use crate::completion::CompletionGuard;
use crate::compressed_body::Compression;
use crate::failure::exchange_problem;
use crate::file_body::FileBody;
use crate::names;
use crate::request_body::RequestBody;
use crate::trailers;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body as HttpBody, Frame, SizeHint};
use proxy_clock::{RequestTimers, Timer};
use proxy_coding::{Coding, CompressionLevels, Encoder};
use proxy_errors::{Detail, Problem, Reason};
use proxy_http1::{Pipe, SpliceFrom};
use proxy_pool::{ResponseBody, SendError};
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A response body. Its drop ends the exchange: the record is written and permits are released.
#[derive(Debug)]
pub struct Body {
    source: Source,
    completion: Option<Box<CompletionGuard>>,
    /// A failure is reported in trailers.
    errors_in_trailers: bool,
}

/// The response is incomplete; the protocol signals that by ending the connection or resetting the
/// stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the response broke off: {reason}")]
pub struct BodyError {
    /// The reason's name.
    pub reason: &'static str,
}

#[derive(Debug)]
enum Source {
    Bytes(Bytes),
    Upstream(Box<UpstreamBody>),
    File(Box<FileBody>),
    /// Read before it was wanted, and what comes behind that.
    Held(Box<Held>),
    /// Read by agents before, and what they did not see.
    Inspected(Box<InspectedBody>),
    /// Compressed while it is sent.
    Compressed(Box<CompressedBody>),
    /// The body failed; the bytes before are sent first.
    Failed(BodyError),
    /// The body failed; the trailers report it.
    ErrorTrailers(HeaderMap),
}

/// The reason why a body ended early.
#[derive(Debug)]
pub(crate) enum Interruption {
    Upstream(SendError),
    Own(Problem),
}

/// A body that still arrives from the upstream.
#[derive(Debug)]
struct UpstreamBody {
    body: ResponseBody<RequestBody>,
    timers: RequestTimers,
    read_time: Duration,
}

/// A body, and its compression.
#[derive(Debug)]
struct CompressedBody {
    plain: Source,
    compression: Compression,
}

/// What was read of a body before it was wanted.
#[derive(Debug, Default)]
struct Held {
    pieces: VecDeque<Frame<Bytes>>,
    bytes: u64,
    /// What has not been read yet.
    rest: Option<Box<UpstreamBody>>,
}

/// A body of which agents have seen the beginning, or all of it.
#[derive(Debug)]
struct InspectedBody {
    pieces: VecDeque<Frame<Bytes>>,
    rest: Option<Source>,
}

impl Body {
    pub(crate) fn bytes(bytes: Bytes) -> Self {
        Self {
            source: Source::Bytes(bytes),
            completion: None,
            errors_in_trailers: false,
        }
    }

    pub(crate) fn file(file: FileBody) -> Self {
        Self {
            source: Source::File(Box::new(file)),
            completion: None,
            errors_in_trailers: false,
        }
    }

    pub(crate) fn upstream(
        mut body: ResponseBody<RequestBody>,
        timers: RequestTimers,
        read_time: Duration,
    ) -> Self {
        // Usually the whole body has arrived: the connection returns to the pool now.
        let source = if let Some(whole) = body.take_whole() {
            Source::Bytes(whole)
        } else {
            Source::Upstream(Box::new(UpstreamBody {
                body,
                timers,
                read_time,
            }))
        };
        Self {
            source,
            completion: None,
            errors_in_trailers: false,
        }
    }

    /// The body in `coding`.
    pub(crate) fn compress(
        mut self,
        coding: Coding,
        levels: CompressionLevels,
    ) -> io::Result<Self> {
        let mut encoder = Encoder::new(coding, levels)?;
        let plain = self.source.take();
        self.source = if let Source::Bytes(bytes) = plain {
            let mut compressed = encoder.push(&bytes)?.to_vec();
            compressed.extend_from_slice(&encoder.finish()?);
            Source::Bytes(compressed.into())
        } else {
            Source::Compressed(Box::new(CompressedBody {
                plain,
                compression: Compression::new(encoder),
            }))
        };
        Ok(self)
    }

    /// Ties the end of the exchange to the end of this body.
    pub(crate) fn with_completion(mut self, completion: Box<CompletionGuard>) -> Self {
        self.completion = Some(completion);
        self
    }

    /// Reports a failure of this body in gRPC trailers.
    pub(crate) fn with_errors_in_trailers(mut self) -> Self {
        self.errors_in_trailers = true;
        self
    }

    /// The correlation ID's field, for a response head that does not have it yet.
    #[must_use]
    pub fn correlation_field(&self) -> Option<(HeaderName, &HeaderValue)> {
        let completion = self.completion.as_ref()?;
        Some((names::CORRELATION_ID, &completion.record.correlation_id))
    }

    /// The bytes of a body in memory; empty for one that is still arriving.
    pub(crate) fn into_bytes(mut self) -> Bytes {
        match &mut self.source {
            Source::Bytes(bytes) => std::mem::take(bytes),
            Source::Upstream(_)
            | Source::Held(_)
            | Source::Inspected(_)
            | Source::Compressed(_)
            | Source::File(_)
            | Source::Failed(_)
            | Source::ErrorTrailers(_) => Bytes::new(),
        }
    }

    /// Reads as much of a body from upstream as `max_bytes` allow. It cannot fail once that much is there.
    pub(crate) fn poll_hold(
        &mut self,
        cx: &mut Context<'_>,
        max_bytes: u64,
    ) -> Poll<Result<(), SendError>> {
        if let Source::Upstream(_) = &self.source {
            let Source::Upstream(rest) = self.source.take() else {
                return Poll::Ready(Ok(()));
            };
            self.source = Source::Held(Box::new(Held {
                rest: Some(rest),
                ..Held::default()
            }));
        }
        let Source::Held(held) = &mut self.source else {
            return Poll::Ready(Ok(()));
        };
        held.poll_fill(cx, max_bytes)
    }

    /// Reads the body until it ends or `take`, which sees every piece, wants no more. Ready with whether
    /// it has ended. What was read is sent as if it had not been.
    pub(crate) fn poll_inspect(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnMut(&[u8]) -> bool,
    ) -> Poll<Result<bool, Interruption>> {
        if !matches!(self.source, Source::Inspected(_)) {
            let rest = Some(self.source.take());
            self.source = Source::Inspected(Box::new(InspectedBody {
                pieces: VecDeque::new(),
                rest,
            }));
        }
        let Source::Inspected(inspected) = &mut self.source else {
            return Poll::Ready(Ok(true));
        };
        inspected.poll_inspect(cx, take)
    }

    /// Continues sending the request while the client does not read the response.
    pub fn poll_upload(&mut self, cx: &mut Context<'_>) {
        self.source.poll_upload(cx);
    }

    /// Ends a stream after a reload removed its route or target and its grace period is over.
    #[inline]
    fn end_if_removed(&mut self) {
        let streams = matches!(
            self.source,
            Source::Upstream(_)
                | Source::Held(_)
                | Source::Inspected(_)
                | Source::File(_)
                | Source::Compressed(_)
        );
        let completion = self.completion.as_deref_mut().filter(|_| streams);
        if let Some(problem) = completion.and_then(CompletionGuard::removed) {
            self.source = self.fail(Interruption::Own(problem));
        }
    }

    fn fail(&mut self, interruption: Interruption) -> Source {
        let problem = match (interruption, self.completion.as_deref()) {
            (Interruption::Upstream(fault), Some(completion)) => completion.interrupted(&fault),
            (Interruption::Upstream(fault), None) => exchange_problem(&fault, "", None, None),
            (Interruption::Own(problem), _) => problem,
        };
        let reason = problem.reason().as_str();
        let source = if self.errors_in_trailers {
            let mut trailers = HeaderMap::new();
            problem.write_grpc_headers(&mut trailers);
            trailers.remove(CONTENT_TYPE);
            Source::ErrorTrailers(trailers)
        } else {
            Source::Failed(BodyError { reason })
        };
        if let Some(completion) = &mut self.completion {
            completion.record.problem = Some(Box::new(problem));
        }
        source
    }
}

impl Source {
    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Bytes(Bytes::new()))
    }

    fn poll_upload(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Upstream(upstream) => upstream.body.poll_upload(cx),
            Self::Compressed(compressed) => compressed.plain.poll_upload(cx),
            Self::Inspected(inspected) => {
                if let Some(rest) = &mut inspected.rest {
                    rest.poll_upload(cx);
                }
            }
            Self::Bytes(_)
            | Self::Held(_)
            | Self::File(_)
            | Self::Failed(_)
            | Self::ErrorTrailers(_) => {}
        }
    }

    /// The next frame of a body that has not failed.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Interruption>>> {
        match self {
            Self::Bytes(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Bytes(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Upstream(upstream) => upstream.poll(cx).map_err(Interruption::Upstream),
            Self::Held(held) => held.poll(cx).map_err(Interruption::Upstream),
            Self::Inspected(inspected) => inspected.poll(cx),
            Self::Compressed(compressed) => compressed.poll(cx),
            Self::File(file) => file.poll(cx).map_err(Interruption::Own),
            Self::Failed(_) | Self::ErrorTrailers(_) => Poll::Ready(None),
        }
    }
}

impl Source {
    fn is_end_stream(&self) -> bool {
        match self {
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Upstream(upstream) => upstream.body.is_end_stream(),
            Self::Held(held) => held.pieces.is_empty() && held.rest.is_none(),
            Self::Inspected(inspected) => inspected.pieces.is_empty() && inspected.rest.is_none(),
            Self::Compressed(compressed) => compressed.compression.is_over(),
            Self::File(file) => file.left() == 0,
            Self::Failed(_) | Self::ErrorTrailers(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Upstream(upstream) => upstream.body.size_hint(),
            Self::Held(held) => held.size_hint(),
            Self::Inspected(inspected) => {
                let rest = inspected.rest.as_ref().map(Self::size_hint);
                size_of(&inspected.pieces, rest)
            }
            Self::File(file) => SizeHint::with_exact(file.left()),
            Self::Compressed(_) | Self::Failed(_) | Self::ErrorTrailers(_) => SizeHint::default(),
        }
    }
}

/// The length of pieces that were read and of the rest, if both are known.
fn size_of(pieces: &VecDeque<Frame<Bytes>>, rest: Option<SizeHint>) -> SizeHint {
    let read = pieces.iter().filter_map(Frame::data_ref).map(Bytes::len);
    let read = read.sum::<usize>() as u64;
    match rest.map_or(Some(0), |rest| rest.exact()) {
        Some(rest) if !pieces.iter().any(Frame::is_trailers) => SizeHint::with_exact(read + rest),
        Some(_) | None => SizeHint::default(),
    }
}

impl InspectedBody {
    fn poll_inspect(
        &mut self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Poll<Result<bool, Interruption>> {
        while let Some(rest) = &mut self.rest {
            match ready!(rest.poll(cx)) {
                Some(Ok(frame)) => {
                    let goes_on = frame.data_ref().is_none_or(|data| take(data));
                    self.pieces.push_back(frame);
                    if !goes_on {
                        return Poll::Ready(Ok(false));
                    }
                }
                Some(Err(interruption)) => return Poll::Ready(Err(interruption)),
                None => self.rest = None,
            }
        }
        Poll::Ready(Ok(true))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Interruption>>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(Ok(piece)));
        }
        match &mut self.rest {
            Some(rest) => rest.poll(cx),
            None => Poll::Ready(None),
        }
    }
}

impl Interruption {
    /// The problem of a response that is not sent yet.
    pub(crate) fn into_problem(self, completion: &CompletionGuard) -> Problem {
        match self {
            Self::Upstream(fault) => completion.interrupted(&fault),
            Self::Own(problem) => problem,
        }
    }
}

impl CompressedBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Interruption>>> {
        let Self { plain, compression } = self;
        let broken = |error: io::Error| {
            let detail = Detail::text(error.to_string());
            Interruption::Own(Problem::new(Reason::InternalError, detail))
        };
        compression.poll(cx, |cx| plain.poll(cx), broken)
    }
}

impl Held {
    fn poll_fill(&mut self, cx: &mut Context<'_>, max_bytes: u64) -> Poll<Result<(), SendError>> {
        while self.bytes < max_bytes
            && let Some(rest) = &mut self.rest
        {
            match ready!(rest.poll(cx)) {
                Some(Ok(frame)) => {
                    self.bytes += frame.data_ref().map_or(0, Bytes::len) as u64;
                    self.pieces.push_back(frame);
                }
                Some(Err(fault)) => return Poll::Ready(Err(fault)),
                None => self.rest = None,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(Ok(piece)));
        }
        match &mut self.rest {
            Some(rest) => rest.poll(cx),
            None => Poll::Ready(None),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.as_ref().map(|rest| rest.body.size_hint());
        size_of(&self.pieces, rest)
    }
}

impl UpstreamBody {
    /// Whether the client does not read: then its timer runs, whatever the upstream does.
    #[inline]
    fn is_client_stalled(&self) -> bool {
        self.timers.deadline().running() == Some(Timer::ResponseWrite)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        match self.body.poll_frame(cx) {
            Poll::Pending => self.poll_timeout().map(|fault| Some(Err(fault))),
            frame @ Poll::Ready(_) => {
                self.received();
                frame
            }
        }
    }

    fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        most: u64,
    ) -> Poll<Result<Option<usize>, SendError>> {
        match self.body.poll_splice(cx, pipe, most) {
            Poll::Pending => self.poll_timeout().map(Err),
            moved @ Poll::Ready(_) => {
                self.received();
                moved
            }
        }
    }

    #[inline]
    fn received(&self) {
        if !self.is_client_stalled() {
            self.timers.stop();
        }
    }

    /// Ready with an error if a timer expired while no data arrived.
    fn poll_timeout(&self) -> Poll<SendError> {
        if self.is_client_stalled() {
            return Poll::Pending;
        }
        self.timers.ensure(Timer::ResponseBody, self.read_time);
        match self.timers.deadline().take_expired() {
            Some((timer, after)) => Poll::Ready(SendError::TimedOut { timer, after }),
            None => Poll::Pending,
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.end_if_removed();
        let polled = match &mut self.source {
            Source::Failed(error) => return Poll::Ready(Some(Err(*error))),
            Source::ErrorTrailers(trailers) => {
                let trailers = std::mem::take(trailers);
                self.source = Source::Bytes(Bytes::new());
                return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
            }
            source @ (Source::Bytes(_)
            | Source::Upstream(_)
            | Source::Held(_)
            | Source::Inspected(_)
            | Source::Compressed(_)
            | Source::File(_)) => source.poll(cx),
        };
        match polled {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => {
                self.source = Source::Bytes(Bytes::new());
                Poll::Ready(None)
            }
            Poll::Ready(Some(Ok(mut frame))) => {
                if let Some(trailers) = frame.trailers_mut() {
                    trailers::for_clients(trailers);
                }
                if let Some(completion) = &mut self.completion {
                    completion.record.bytes_out += frame.data_ref().map_or(0, Bytes::len) as u64;
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(fault))) => {
                self.source = self.fail(fault);
                // hyper drops unwritten data when a body fails, and writes it when it has to wait
                // for the body.
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.source.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.source.size_hint()
    }
}

impl SpliceFrom for Body {
    fn can_splice(&self) -> bool {
        match &self.source {
            Source::Upstream(upstream) => upstream.body.can_splice(),
            Source::Bytes(_)
            | Source::Held(_)
            | Source::Inspected(_)
            | Source::Compressed(_)
            | Source::File(_)
            | Source::Failed(_)
            | Source::ErrorTrailers(_) => false,
        }
    }

    fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        most: u64,
    ) -> Poll<Option<usize>> {
        self.end_if_removed();
        let Source::Upstream(upstream) = &mut self.source else {
            return Poll::Ready(None);
        };
        match ready!(upstream.poll_splice(cx, pipe, most)) {
            Ok(moved) => {
                if let Some(completion) = &mut self.completion {
                    completion.record.bytes_out += moved.unwrap_or_default() as u64;
                }
                Poll::Ready(moved)
            }
            Err(fault) => {
                self.source = self.fail(Interruption::Upstream(fault));
                Poll::Ready(None)
            }
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let complete = self.is_end_stream();
        if let Some(completion) = &mut self.completion {
            completion.record.complete = complete;
        }
    }
}
