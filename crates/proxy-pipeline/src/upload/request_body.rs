//! A request's body, sent upstream: counted, limited, and timed by progress.

use crate::headers::header_limits::{FieldLimits, check_fields};
use crate::headers::trailers;
use crate::upload::body_buffer::BodyBuffer;
use crate::upload::client_body::{BodyAborted, ClientBody, HeldBody, Inspected};
use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use http_body::{Body, Frame, SizeHint};
use proxy_clock::{MinDataRate, RequestTimers, Tick, Timer};
use proxy_errors::{Detail, Reason};
use proxy_health::{BreakerPermit, CircuitBreaker};
use proxy_http1::{Pipe, SpliceFrom};
use std::cell::{Cell, OnceCell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A request's body.
#[derive(Debug, Default)]
pub struct RequestBody(Option<Upload>);

#[derive(Debug)]
struct Upload {
    incoming: ClientBody,
    progress: Rc<Progress>,
}

/// The state of a body, read by the task that waits for the response.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) bytes: Cell<u64>,
    pub(crate) fault: Cell<Option<RequestBodyError>>,
    pub(crate) complete: Cell<bool>,
    /// The time at which the body was complete.
    pub(crate) completed_at: Cell<Tick>,
    /// The probe of a half-open breaker, if the request is one.
    probe: RefCell<Option<Box<UploadedProbe>>>,
    /// Names of the fields that policies and agents have set or removed: trailers must not change
    /// them.
    decided_fields: OnceCell<Box<[HeaderName]>>,
    /// The response has begun: from then on, the timers for reading it apply.
    answered: Cell<bool>,
    limits: BodyLimits,
    timeouts: UploadTimeouts,
    /// The client's data rate; `None` if any progress is enough.
    min_rate: Option<MinDataRate>,
    timers: RequestTimers,
}

/// A half-open breaker's probe while the client still sends its body. Its permit is released while
/// the proxy waits for the client.
#[derive(Debug)]
struct UploadedProbe {
    breaker: CircuitBreaker,
    permit: Option<BreakerPermit>,
}

/// Limits on the size of a body and of its trailers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    pub(crate) max_bytes: u64,
    /// The setting of `max_bytes`.
    pub(crate) setting: &'static str,
    pub(crate) trailers: FieldLimits,
}

/// Timeouts of a request body, for the client and for the upstream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UploadTimeouts {
    /// Time for each [`MinDataRate::MIN_BYTES`] bytes that the client sends.
    pub(crate) body_idle: Duration,
    /// A single byte resets the timer instead.
    pub(crate) any_rate: bool,
    /// Time between two writes that the upstream accepts.
    pub(crate) write: Duration,
    /// Time from the end of the body to the head of the upstream's response.
    pub(crate) response: Duration,
}

/// The reason why a request's body ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestBodyError {
    /// The body exceeds the limit.
    #[error("over {limit} bytes")]
    TooLarge {
        /// Number of bytes received.
        seen: u64,
        /// The limit, in bytes.
        limit: u64,
        /// The setting of the limit.
        setting: &'static str,
    },
    /// The trailers exceed a limit on header fields.
    #[error("trailers of {current} exceed limit {limit}")]
    Trailers {
        /// The reason for the limit.
        reason: Reason,
        /// Size or number in the trailers.
        current: u64,
        /// Configured maximum.
        limit: u64,
    },
    /// The client disconnected, or its body is malformed.
    #[error("cut off by the client")]
    BodyAborted,
    /// The client violated the protocol of its connection.
    #[error("malformed")]
    Malformed(Reason),
}

impl From<BodyAborted> for RequestBodyError {
    fn from(cut: BodyAborted) -> Self {
        match cut {
            BodyAborted::Gone => Self::BodyAborted,
            BodyAborted::Malformed(reason) => Self::Malformed(reason),
        }
    }
}

impl RequestBody {
    /// Wraps `incoming` with its limits and timers. Returns also the progress, for the task that
    /// waits for the response.
    pub(crate) fn new(
        incoming: ClientBody,
        limits: BodyLimits,
        timeouts: UploadTimeouts,
        timers: RequestTimers,
    ) -> (Self, Rc<Progress>) {
        let progress = Rc::new(Progress {
            bytes: Cell::new(0),
            fault: Cell::new(None),
            complete: Cell::new(false),
            completed_at: Cell::default(),
            probe: RefCell::default(),
            decided_fields: OnceCell::new(),
            answered: Cell::new(false),
            limits,
            timeouts,
            min_rate: (!timeouts.any_rate).then(MinDataRate::default),
            timers,
        });
        let upload = Upload {
            incoming,
            progress: Rc::clone(&progress),
        };
        (Self(Some(upload)), progress)
    }
}

impl RequestBody {
    /// Reads the whole body into `held`.
    ///
    /// # Errors
    /// [`HoldError`]; [`HoldError::TooLarge`] for a body of more than `max_bytes`.
    pub(crate) fn poll_hold(
        &mut self,
        cx: &mut Context<'_>,
        held: &mut HeldRequest,
        max_bytes: u64,
    ) -> Poll<Result<(), HoldError>> {
        let HeldRequest { bytes, trailers } = held;
        let polled = self.poll_read(cx, bytes, trailers, |read, piece| {
            let current = read + piece.len() as u64;
            let fits = current <= max_bytes;
            fits.then_some(true).ok_or(HoldError::TooLarge(current))
        });
        polled.map_ok(|_| ())
    }

    /// Reads the body into `held` until its end, or until `take`, which gets every piece, returns
    /// false.
    pub(crate) fn poll_inspect(
        &mut self,
        cx: &mut Context<'_>,
        held: &mut InspectedBody,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Poll<Result<(), HoldError>> {
        let InspectedBody {
            read,
            trailers,
            is_whole,
        } = held;
        let polled = self.poll_read(cx, read, trailers, |_, piece| Ok(take(piece)));
        polled.map_ok(|is_ended| *is_whole = is_ended)
    }

    /// Reads into `buffer` and `trailers` until the body ends, or until `admit` returns false.
    /// `admit` gets the number of bytes read before, and each piece. Ready with true if the body
    /// has ended.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BodyBuffer,
        trailers: &mut Option<HeaderMap>,
        mut admit: impl FnMut(u64, &[u8]) -> Result<bool, HoldError>,
    ) -> Poll<Result<bool, HoldError>> {
        if buffer.is_evicted() {
            return Poll::Ready(Err(HoldError::MemoryFull));
        }
        loop {
            // While reading is paused, its timers keep running.
            let polled = match buffer.poll_room(cx.waker()) {
                Poll::Ready(()) => Pin::new(&mut *self).poll_frame(cx),
                Poll::Pending => Poll::Pending,
            };
            let frame = match polled {
                Poll::Ready(None) => return Poll::Ready(Ok(true)),
                Poll::Ready(Some(frame)) => frame.map_err(HoldError::Body)?,
                Poll::Pending => return self.poll_deadline(),
            };
            match frame.into_data() {
                Ok(data) => {
                    let continues = admit(buffer.len(), &data)?;
                    if buffer.push(&data, cx.waker()).is_err() {
                        return Poll::Ready(Err(HoldError::MemoryFull));
                    }
                    if !continues {
                        return Poll::Ready(Ok(self.is_end_stream()));
                    }
                }
                Err(frame) => *trailers = frame.into_trailers().ok(),
            }
        }
    }

    /// Ready with an error once a timer of the body has expired.
    fn poll_deadline<T>(&self) -> Poll<Result<T, HoldError>> {
        let progress = self.0.as_ref().map(|upload| &upload.progress);
        match progress.and_then(|it| it.timers.deadline().take_expired()) {
            Some((timer, after)) => Poll::Ready(Err(HoldError::Late(timer, after))),
            None => Poll::Pending,
        }
    }
}

/// The beginning of a body that agents inspect, or all of it.
#[derive(Debug)]
pub(crate) struct InspectedBody {
    read: BodyBuffer,
    trailers: Option<HeaderMap>,
    is_whole: bool,
}

impl InspectedBody {
    /// An empty capture, filled by reading into `read`.
    pub(crate) fn new(read: BodyBuffer) -> Self {
        Self {
            read,
            trailers: None,
            is_whole: false,
        }
    }

    /// Returns true if nothing follows.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Replaces all bytes that were read. The new ones are not counted: their reservation has them
    /// already.
    pub(crate) fn replace(&mut self, bytes: &[u8]) {
        while self.read.pop().is_some() {}
        self.read.append(bytes);
    }

    /// The length of a body that is whole and has no trailers.
    pub(crate) fn whole_length(&self) -> Option<u64> {
        (self.is_whole && self.trailers.is_none()).then_some(self.read.len())
    }

    /// The captured body, followed by its remainder `rest`.
    pub(crate) fn into_body(self, rest: RequestBody) -> ClientBody {
        self.read.settle();
        let rest = match (self.is_whole, rest.0) {
            (false, Some(upload)) => upload.incoming,
            (true, _) | (_, None) => ClientBody::Held(HeldBody {
                bytes: BodyBuffer::default(),
                trailers: self.trailers,
            }),
        };
        ClientBody::Inspected(Box::new(Inspected {
            read: self.read,
            rest,
        }))
    }
}

/// A completely buffered body: bytes and trailers read until now.
#[derive(Debug)]
pub(crate) struct HeldRequest {
    bytes: BodyBuffer,
    trailers: Option<HeaderMap>,
}

/// Error of a body that could not be buffered completely.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HoldError {
    /// The body has at least this many bytes, more than the maximum.
    TooLarge(u64),
    /// The memory limit leaves no room for the body.
    MemoryFull,
    /// The body ended early.
    Body(RequestBodyError),
    /// The timer expired, after this time.
    Late(Timer, Duration),
}

impl HeldRequest {
    /// An empty capture, filled by reading into `bytes`.
    pub(crate) fn new(bytes: BodyBuffer) -> Self {
        Self {
            bytes,
            trailers: None,
        }
    }

    pub(crate) fn into_body(self) -> HeldBody {
        self.bytes.settle();
        HeldBody {
            bytes: self.bytes,
            trailers: self.trailers,
        }
    }
}

impl Progress {
    fn count(&self, bytes: usize) -> Result<(), RequestBodyError> {
        let seen = self.bytes.get().saturating_add(bytes as u64);
        self.bytes.set(seen);
        let BodyLimits {
            max_bytes: limit,
            setting,
            ..
        } = self.limits;
        if seen > limit {
            return Err(RequestBodyError::TooLarge {
                seen,
                limit,
                setting,
            });
        }
        if let Some(min_rate) = &self.min_rate {
            min_rate.moved(self.timers.clock(), bytes);
        }
        self.start(Timer::UpstreamWrite, self.timeouts.write);
        self.extend_response_timer();
        Ok(())
    }

    /// Refuses trailers that are larger than a head may be.
    #[cold]
    fn check_trailers(&self, trailers: &HeaderMap) -> Result<(), RequestBodyError> {
        let checked = check_fields(trailers, self.limits.trailers);
        checked.map_err(|problem| match problem.detail() {
            Detail::Limit { current, limit } => RequestBodyError::Trailers {
                reason: problem.reason(),
                current: *current,
                limit: *limit,
            },
            Detail::None
            | Detail::Text(_)
            | Detail::Named { .. }
            | Detail::LimitAtLeast { .. }
            | Detail::After(_) => RequestBodyError::Malformed(problem.reason()),
        })
    }

    /// Names the fields that policies and agents have decided: they are removed from the trailers.
    pub(crate) fn decide_fields(&self, names: Box<[HeaderName]>) {
        self.decided_fields.get_or_init(|| names);
    }

    /// Holds the permit of a probe while the proxy waits for the target, not for the client.
    #[cold]
    pub(crate) fn hold_probe(&self, breaker: &CircuitBreaker, permit: BreakerPermit) {
        let probe = UploadedProbe {
            breaker: breaker.clone(),
            permit: Some(permit),
        };
        self.probe.replace(Some(Box::new(probe)));
    }

    /// Takes the permit of the breaker's probe, if the body got one.
    pub(crate) fn take_probe(&self) -> Option<BreakerPermit> {
        self.probe.take()?.permit
    }

    fn end_body(&self) {
        if !self.complete.replace(true) {
            self.completed_at.set(self.timers.clock().now());
            if let Some(probe) = &mut *self.probe.borrow_mut()
                && probe.permit.is_none()
            {
                probe.permit = probe.breaker.readmit();
            }
            self.start(Timer::ResponseHeader, self.timeouts.response);
        }
    }

    /// Records that the response has begun.
    pub(crate) fn response_began(&self) {
        self.answered.set(true);
    }

    fn start(&self, timer: Timer, wait: Duration) {
        if !self.answered.get() {
            self.timers.start(timer, wait);
        }
    }

    /// Restarts the response's timer when the upstream accepts more of the request.
    fn extend_response_timer(&self) {
        let waits = self.timers.deadline().running() == Some(Timer::ResponseBody);
        if waits && self.answered.get() {
            self.timers.start(Timer::ResponseBody, self.timeouts.write);
        }
    }

    fn wait_for_client(&self) {
        if let Some(probe) = &mut *self.probe.borrow_mut() {
            probe.permit = None;
        }
        if self.answered.get() {
            return;
        }
        let time = self.timeouts.body_idle;
        match &self.min_rate {
            Some(min_rate) => self.timers.ensure_pace(min_rate, Timer::RequestBody, time),
            None => self.timers.ensure(Timer::RequestBody, time),
        }
    }

    fn record_fault(&self, fault: RequestBodyError) -> RequestBodyError {
        self.fault.set(Some(fault));
        fault
    }
}

/// Never spliced, because each piece is counted.
impl SpliceFrom for RequestBody {
    fn can_splice(&self) -> bool {
        false
    }

    fn poll_splice(&mut self, _: &mut Context<'_>, _: &mut Pipe, _: u64) -> Poll<Option<usize>> {
        Poll::Ready(None)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = RequestBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        let Some(Upload { incoming, progress }) = &mut self.0 else {
            return Poll::Ready(None);
        };
        match Pin::new(&mut *incoming).poll_frame(cx) {
            Poll::Pending => {
                progress.wait_for_client();
                Poll::Pending
            }
            Poll::Ready(None) => {
                progress.end_body();
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(cut))) => {
                Poll::Ready(Some(Err(progress.record_fault(cut.into()))))
            }
            Poll::Ready(Some(Ok(mut frame))) => {
                if let Some(trailers) = frame.trailers_mut() {
                    if let Err(fault) = progress.check_trailers(trailers) {
                        return Poll::Ready(Some(Err(progress.record_fault(fault))));
                    }
                    trailers::for_targets(trailers);
                    if let Some(names) = progress.decided_fields.get() {
                        trailers::remove_decided(trailers, names);
                    }
                }
                if let Err(fault) = progress.count(frame.data_ref().map_or(0, Bytes::len)) {
                    return Poll::Ready(Some(Err(progress.record_fault(fault))));
                }
                if incoming.is_end_stream() {
                    progress.end_body();
                }
                Poll::Ready(Some(Ok(frame)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0
            .as_ref()
            .is_none_or(|upload| upload.incoming.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(
            || SizeHint::with_exact(0),
            |upload| upload.incoming.size_hint(),
        )
    }
}
