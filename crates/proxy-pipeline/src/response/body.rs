//! The response body, with the state that lives as long as it does.

mod error;
mod filling_body;
mod held_body;
mod interruption;
mod source;
mod upstream_body;

pub use error::BodyError;
pub(crate) use filling_body::FillTarget;
pub(crate) use interruption::Interruption;

use crate::failure::exchange_problem;
use crate::headers::{names, trailers};
use crate::record::completion::CompletionGuard;
use crate::response::compressed_body::Compression;
use crate::response::error_page::PageBody;
use crate::response::file_body::FileBody;
use crate::upload::body_buffer::BodyBuffer;
use crate::upload::request_body::RequestBody;
use crate::worker::state::Worker;
use bytes::Bytes;
use held_body::Held;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName};
use http_body::{Body as HttpBody, Frame, SizeHint};
use proxy_clock::RequestTimers;
use proxy_coding::{Coding, CompressionLevels, Encoder};
use proxy_http1::{Pipe, SpliceFrom, VerbatimFields};
use proxy_limits::ResponseReservation;
use proxy_pool::ResponseBody;
use source::{CompressedBody, CountedBytes, InspectedBody, Source};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use upstream_body::UpstreamBody;

/// Maximum size of a body that is compressed in one step, in bytes.
const MAX_BYTES_AT_ONCE: u64 = 64 << 10;

/// A response body. Its drop ends the exchange: the record is written and permits are released.
#[derive(Debug)]
pub struct Body {
    source: Source,
    completion: Option<Box<CompletionGuard>>,
    /// A failure is reported in gRPC trailers.
    errors_in_trailers: bool,
}

impl Body {
    pub(crate) fn bytes(bytes: Bytes) -> Self {
        Self {
            source: Source::Bytes(bytes),
            completion: None,
            errors_in_trailers: false,
        }
    }

    /// A page of a route or a listener.
    pub(crate) fn page(page: PageBody) -> Self {
        Self {
            source: Source::Page(Box::new(page)),
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
        read_timeout: Duration,
    ) -> Self {
        // Usually the whole body has arrived: the connection returns to the pool now.
        let source = if let Some(whole) = body.take_whole() {
            Source::Bytes(whole)
        } else {
            Source::Upstream(Box::new(UpstreamBody {
                body,
                timers,
                read_timeout,
            }))
        };
        Self {
            source,
            completion: None,
            errors_in_trailers: false,
        }
    }

    /// A document of the proxy or of an agent that counts towards the memory limit.
    pub(crate) fn counted(bytes: Bytes, memory: ResponseReservation) -> Self {
        Self {
            source: Source::Counted(Box::new(CountedBytes { bytes, memory })),
            completion: None,
            errors_in_trailers: false,
        }
    }

    /// Returns true for a short body that is in memory: it is compressed at once. A longer one
    /// would occupy the worker, and its compressed bytes the memory while the client does not read.
    pub(crate) fn is_compressed_at_once(&self) -> bool {
        self.source.is_in_memory() && self.source.size_hint().lower() <= MAX_BYTES_AT_ONCE
    }

    /// Compresses a body for which [`Self::is_compressed_at_once`] is true.
    pub(crate) fn compress_at_once(
        mut self,
        coding: Coding,
        levels: CompressionLevels,
    ) -> io::Result<Self> {
        let mut encoder = Encoder::new(coding, levels)?;
        let mut compressed = Vec::new();
        while let Some(piece) = self.source.pop() {
            compressed.extend_from_slice(&encoder.push(&piece)?);
        }
        compressed.extend_from_slice(&encoder.finish()?);
        self.source = Source::Bytes(compressed.into());
        Ok(self)
    }

    /// Compresses the body while it is sent. Its encoder is created when the first bytes are
    /// wanted, and counts in `memory`.
    pub(crate) fn compress(
        mut self,
        coding: Coding,
        levels: CompressionLevels,
        memory: ResponseReservation,
    ) -> Self {
        let plain = self.source.take();
        self.source = Source::Compressed(Box::new(CompressedBody {
            plain,
            compression: Compression::new(coding, levels, memory),
        }));
        self
    }

    /// Returns true if the next bytes need an encoder that does not exist yet. A sender with a
    /// window waits until the client has room.
    #[must_use]
    #[inline]
    pub fn makes_encoder(&self) -> bool {
        matches!(&self.source, Source::Compressed(body) if body.compression.is_new())
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
    pub fn correlation_field(&self) -> Option<(HeaderName, &[u8])> {
        let completion = self.completion.as_ref()?;
        let id = completion.record.correlation_id.as_bytes();
        Some((names::CORRELATION_ID, id))
    }

    /// Fields of the response head that are not in its map.
    #[must_use]
    pub fn verbatim_fields(&self) -> Option<&VerbatimFields> {
        self.completion.as_ref()?.record.verbatim.as_ref()
    }

    /// Drops the fields of [`Self::verbatim_fields`] after they were written.
    pub fn drop_verbatim_fields(&mut self) {
        if let Some(completion) = &mut self.completion {
            completion.record.verbatim = None;
        }
    }

    /// The `X-RateLimit-*` fields, for a response head that does not have them yet.
    #[must_use]
    pub fn rate_fields(&self) -> Option<[(HeaderName, u64); 3]> {
        let rate = self.completion.as_ref()?.record.rate.as_ref()?;
        Some(rate.fields())
    }

    /// The bytes of a body that has arrived whole.
    pub(crate) fn whole(&self) -> Option<Bytes> {
        match &self.source {
            Source::Bytes(bytes) => Some(bytes.clone()),
            source @ Source::Upstream(_) => source.is_end_stream().then(Bytes::new),
            Source::Page(_)
            | Source::Counted(_)
            | Source::File(_)
            | Source::Held(_)
            | Source::Filling(_)
            | Source::Inspected(_)
            | Source::Compressed(_)
            | Source::Failed(_)
            | Source::ErrorTrailers(_) => None,
        }
    }

    /// Begins to store a body from upstream while it is sent.
    pub(crate) fn begin_fill(&mut self, worker: &Rc<Worker>, target: FillTarget) {
        if matches!(self.source, Source::Upstream(_))
            && let Source::Upstream(rest) = self.source.take()
        {
            self.source = Source::Filling(Box::new(filling_body::begin(worker, rest, target)));
        }
    }

    /// Begins to read a body from upstream into `buffer`.
    pub(crate) fn begin_hold(&mut self, buffer: BodyBuffer) {
        if matches!(self.source, Source::Upstream(_))
            && let Source::Upstream(rest) = self.source.take()
        {
            self.source = Source::Held(Box::new(Held::new(buffer, rest)));
        }
    }

    /// Reads as much of a body from upstream as `max_bytes` and the memory for bodies permit.
    pub(crate) fn poll_hold(
        &mut self,
        cx: &mut Context<'_>,
        max_bytes: u64,
    ) -> Poll<Result<(), Interruption>> {
        let Source::Held(held) = &mut self.source else {
            return Poll::Ready(Ok(()));
        };
        held.poll_fill(cx, max_bytes)
    }

    /// Begins to read the body into `buffer`.
    pub(crate) fn begin_inspection(&mut self, buffer: BodyBuffer) {
        let rest = self.source.take();
        self.source = Source::Inspected(Box::new(InspectedBody::new(buffer, rest)));
    }

    /// Reads the body until its end, or until `take`, which gets every piece, returns false. Ready
    /// with whether the body has ended. The bytes read are sent later.
    pub(crate) fn poll_inspect(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnMut(&[u8]) -> bool,
    ) -> Poll<Result<bool, Interruption>> {
        let Source::Inspected(inspected) = &mut self.source else {
            return Poll::Ready(Ok(true));
        };
        inspected.poll_inspect(cx, take)
    }

    /// Returns true if a part of the body has not arrived from the target.
    #[must_use]
    pub(crate) fn awaits_target(&self) -> bool {
        match &self.source {
            Source::Upstream(upstream) => !upstream.body.is_end_stream(),
            Source::Held(held) => held.has_rest(),
            Source::Bytes(_)
            | Source::Page(_)
            | Source::Counted(_)
            | Source::Filling(_)
            | Source::Inspected(_)
            | Source::Compressed(_)
            | Source::File(_)
            | Source::Failed(_)
            | Source::ErrorTrailers(_) => false,
        }
    }

    /// Continues sending the request while the client does not read the response.
    pub fn poll_upload(&mut self, cx: &mut Context<'_>) {
        self.source.poll_upload(cx);
    }

    /// Returns true if the request's body may still be sent to its target while this body is sent
    /// to the client.
    #[must_use]
    pub fn may_upload(&self) -> bool {
        self.source.may_upload()
    }

    /// Ends a stream after a reload removed its route or target and its grace period is over.
    #[inline]
    fn end_if_removed(&mut self) {
        let streams = matches!(
            self.source,
            Source::Upstream(_)
                | Source::Held(_)
                | Source::Filling(_)
                | Source::Inspected(_)
                | Source::File(_)
                | Source::Compressed(_)
        );
        let completion = self.completion.as_deref_mut().filter(|_| streams);
        if let Some(problem) = completion.and_then(CompletionGuard::removed) {
            self.source = self.fail(Interruption::Own(problem));
        }
    }

    /// Counts sent bytes. The first bytes of a body that had not arrived whole are timed: a client
    /// of a stream waits for them.
    #[inline]
    fn count_sent(&mut self, bytes: u64) {
        if let Some(completion) = &mut self.completion {
            if completion.record.bytes_out == 0 && bytes > 0 && !self.source.is_in_memory() {
                completion.count_stream();
            }
            completion.record.bytes_out += bytes;
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
            let unnamed = problem.without_name();
            unnamed.write_grpc_headers(&mut trailers);
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
            | Source::Page(_)
            | Source::Counted(_)
            | Source::Upstream(_)
            | Source::Held(_)
            | Source::Filling(_)
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
                    if let Some(completion) = &self.completion {
                        completion.remove_edited(trailers);
                    }
                }
                let sent = frame.data_ref().map_or(0, Bytes::len) as u64;
                self.count_sent(sent);
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
            | Source::Page(_)
            | Source::Counted(_)
            | Source::Held(_)
            | Source::Filling(_)
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
                self.count_sent(moved.unwrap_or_default() as u64);
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
