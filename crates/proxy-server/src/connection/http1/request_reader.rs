//! The request reader of an HTTP/1.x connection: validates input as it is read, then parses it.

use crate::connection::client_stream::ClientStream;
use bytes::{Buf, Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use proxy_framing::{FramingError, HeadLimits, Lines, RequestValidator, Scan, SizeMeter, Stop};
use proxy_http1::{
    self as http1, BodyDecoder, BodyLength, Head, ReadStrategy, RequestHead, read_request,
};
use std::io;
use std::task::{Context, Poll, ready};

/// Maximum size of a read, in bytes.
const MAX_READ_BYTES: usize = 512 * 1024;

/// The reading side of one connection.
#[derive(Debug)]
pub(crate) struct RequestReader {
    validator: RequestValidator,
    /// Validated and unconsumed input.
    unread: BytesMut,
    /// Line positions of the head at the beginning of `unread`, as recorded by the validator.
    lines: Lines,
    /// Input after a request with an upgrade; its protocol is not decided yet.
    deferred: BytesMut,
    upgrade_pending: bool,
    fault: Option<FramingError>,
    /// Measures a head that is refused for its size.
    meter: Option<SizeMeter>,
    read_strategy: ReadStrategy,
    heads_taken: u64,
    body: BodyDecoder,
}

impl RequestReader {
    /// A reader for a connection with `early` bytes already read.
    pub(crate) fn new(limits: HeadLimits, early: Bytes) -> Self {
        let mut reader = Self {
            validator: RequestValidator::new(limits),
            unread: BytesMut::from(early),
            lines: Lines::new(),
            deferred: BytesMut::new(),
            upgrade_pending: false,
            fault: None,
            meter: None,
            read_strategy: ReadStrategy::up_to(MAX_READ_BYTES),
            heads_taken: 0,
            body: BodyDecoder::new(BodyLength::Length(0)),
        };
        reader.validate(0);
        reader
    }

    pub(crate) fn fault(&self) -> Option<FramingError> {
        self.fault
    }

    /// Returns true if a head was refused for its size and its rest is still read to measure it.
    pub(crate) fn is_measuring(&self) -> bool {
        self.fault.is_none() && self.meter.is_some()
    }

    /// Stops reading the refused head: the fault reports the size found so far.
    pub(crate) fn end_measuring(&mut self) {
        self.fault = self.fault.or(self.meter.as_ref().map(SizeMeter::fault));
    }

    /// Returns true if the refused head may be larger than measured so far.
    pub(crate) fn is_size_open(&self) -> bool {
        self.meter.as_ref().is_some_and(|meter| !meter.is_exact())
    }

    /// The correlation ID of the refused head, if it could be read.
    pub(crate) fn correlation_id(&self) -> Option<&[u8]> {
        self.validator.correlation_id()
    }

    /// Unconsumed input: the refused head, up to the error.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.unread
    }

    /// Returns true if no byte of a further request arrived.
    pub(crate) fn is_between_requests(&self) -> bool {
        self.validator.between_messages()
    }

    /// Returns true if there is nothing to consume: no part of a request, and no error.
    pub(crate) fn is_empty(&self) -> bool {
        self.heads_taken == self.validator.heads_seen()
            && self.validator.between_messages()
            && self.deferred.is_empty()
            && self.fault.is_none()
            && self.meter.is_none()
    }

    /// Returns true if the reader is equivalent to a new one. Empty lines count, because their
    /// number is limited and must not be reset.
    pub(crate) fn is_new(&self) -> bool {
        self.is_empty() && self.validator.is_untouched()
    }

    /// The bytes after a request that switched protocols.
    pub(crate) fn take_unread(&mut self) -> Vec<u8> {
        [self.unread.split(), self.deferred.split()].concat()
    }

    /// Returns true if the next request's head is complete.
    #[inline]
    pub(crate) fn has_request(&self) -> bool {
        self.heads_taken != self.validator.heads_seen()
    }

    /// The next request's head; `None` with [`Self::fault`] set if it cannot be parsed.
    pub(crate) fn take_request(&mut self) -> Option<RequestHead> {
        self.heads_taken += 1;
        while let Some(b'\r' | b'\n') = self.unread.first() {
            self.unread.advance(1);
        }
        let head = Head::take(&mut self.unread, std::mem::take(&mut self.lines));
        let head = head.and_then(read_request);
        match &head {
            Some(head) => self.body = BodyDecoder::new(head.extent),
            // The validator accepts no input known to be refused by the `http` crate.
            None => self.fault = Some(FramingError::BadTarget),
        }
        head
    }

    /// Continues with HTTP after a declined upgrade.
    pub(crate) fn resume(&mut self) {
        if std::mem::take(&mut self.upgrade_pending) {
            self.validator.resume_http();
            let before = self.unread.len();
            self.unread.unsplit(self.deferred.split());
            self.validate(before);
        }
    }

    pub(crate) fn is_body_over(&self) -> bool {
        self.body.is_over()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    /// Returns true, once, if other tasks should run before more of the body is read.
    pub(crate) fn ends_turn(&mut self) -> bool {
        self.body.ends_turn()
    }

    /// The next available piece of the request's body.
    pub(crate) fn take_frame(&mut self) -> Option<Frame<Bytes>> {
        self.body.take(&mut self.unread)
    }

    /// Returns true if the socket may be polled for a disconnect: the request is complete and
    /// nothing follows it.
    pub(crate) fn may_watch(&self) -> bool {
        self.body.is_over()
            && self.unread.is_empty()
            && !self.upgrade_pending
            && self.fault.is_none()
            && self.meter.is_none()
    }

    /// Reads and validates. Returns the number of bytes read: 0 at the end of the stream.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut ClientStream,
    ) -> Poll<io::Result<usize>> {
        if self.upgrade_pending || self.fault.is_some() {
            return Poll::Pending;
        }
        if self.body.is_over() {
            // Heads are small: a client that pipelines many is read in small pieces.
            self.read_strategy.moderate();
        }
        let before = self.unread.len();
        let count = ready!(
            self.read_strategy
                .poll_read(cx, transport, &mut self.unread)
        )?;
        self.validate(before);
        Poll::Ready(Ok(count))
    }

    /// Validates the buffer from `before` on, and keeps the accepted part.
    fn validate(&mut self, before: usize) {
        let fresh = self.unread.get(before..).unwrap_or_default();
        if let Some(meter) = &mut self.meter {
            meter.push(fresh);
            self.fault = meter.is_over().then(|| meter.fault());
            self.unread.truncate(before);
            return;
        }
        let leads = before == 0 && self.validator.between_messages();
        let lines = leads.then(|| {
            self.lines = http1::lines();
            &mut self.lines
        });
        let Scan { accepted, stop } = self.validator.scan_noting(fresh, lines);
        match stop {
            None => {}
            Some(Stop::FramingError(fault)) => {
                self.refuse(fault, before + accepted);
                self.unread.truncate(before + accepted);
            }
            Some(Stop::Upgrade) => {
                self.deferred = self.unread.split_off(before + accepted);
                self.upgrade_pending = true;
            }
        }
    }

    /// Refuses the input from `position` in the buffer on. The remainder of an oversized head is
    /// read to measure it; trailers are measured only as received, because their request is in
    /// progress.
    fn refuse(&mut self, fault: FramingError, position: usize) {
        let refused = self.unread.get(position..).unwrap_or_default();
        let mut meter = SizeMeter::new(fault);
        if let Some(meter) = &mut meter {
            meter.push(refused);
        }
        let ends = !self.validator.in_head() || meter.as_ref().is_none_or(SizeMeter::is_over);
        self.fault = ends.then(|| meter.as_ref().map_or(fault, SizeMeter::fault));
        self.meter = meter;
    }
}
