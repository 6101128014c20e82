//! The client's half of a request stream: its head, then the body for the pipeline.

use super::connection::StreamLost;
use super::session::Session;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use proxy_errors::Reason;
use proxy_http3::{
    ErrorCode, FieldSection, FloodKind, Http3Error, RequestHead, RequestPart, RequestReader,
    read_trailers,
};
use proxy_pipeline::{BodyAborted, Source};
use quinn_proto::StreamId;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// The client's half of a request stream.
pub(super) struct RequestHalf {
    session: Rc<Session>,
    id: StreamId,
    reader: RefCell<RequestReader>,
    /// Received bytes that are not parsed yet.
    input: RefCell<Bytes>,
    /// Data that was read to find out whether there is a body.
    ahead: RefCell<Option<RequestPart>>,
    /// Trailers, while the end of the stream has not arrived.
    trailers: RefCell<Option<HeaderMap>>,
    /// The client has ended the message.
    is_over: Cell<bool>,
    failure: Cell<Option<ReadFailure>>,
    /// Number of bytes held for an incomplete header section.
    held: Cell<usize>,
    /// Set when the body is polled, so that `100 Continue` is sent.
    continue_wanted: RefCell<Option<Rc<Cell<bool>>>>,
}

/// The reason why the request cannot be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadFailure {
    /// The client cancelled the request, or the connection ended.
    Lost,
    /// The request violates HTTP/3.
    Malformed(Http3Error),
}

impl RequestHalf {
    pub(super) fn new(session: &Rc<Session>, id: StreamId) -> Rc<Self> {
        Rc::new(Self {
            session: Rc::clone(session),
            id,
            reader: RefCell::new(RequestReader::new(session.http3.max_section_bytes)),
            input: RefCell::default(),
            ahead: RefCell::default(),
            trailers: RefCell::default(),
            is_over: Cell::new(false),
            failure: Cell::new(None),
            held: Cell::new(0),
            continue_wanted: RefCell::default(),
        })
    }

    pub(super) fn poll_head(&self, cx: &Context<'_>) -> Poll<Result<RequestHead, ReadFailure>> {
        let part = match ready!(self.poll_part(cx))? {
            Some(RequestPart::Head(section)) => section,
            Some(RequestPart::Data(_) | RequestPart::Trailers(_)) | None => {
                return Poll::Ready(Err(ReadFailure::Lost));
            }
        };
        let section = FieldSection::decode(&part, self.session.http3.sections);
        let head = section.and_then(|section| RequestHead::read(&section));
        match head {
            Ok(head) => {
                self.reader.borrow_mut().expect(head.length);
                Poll::Ready(Ok(head))
            }
            Err(error) => Poll::Ready(Err(self.refuse(error))),
        }
    }

    /// Checks whether a body follows, without waiting for it. Called once, after the head.
    pub(super) fn look_ahead(&self, cx: &Context<'_>) -> Result<(), ReadFailure> {
        match self.poll_part(cx) {
            Poll::Ready(part) => *self.ahead.borrow_mut() = part?,
            Poll::Pending => {}
        }
        Ok(())
    }

    /// Sets `wanted` when the body is polled for the first time.
    pub(super) fn announce(&self, wanted: Rc<Cell<bool>>) {
        *self.continue_wanted.borrow_mut() = Some(wanted);
    }

    /// Returns true if the client has ended the message, and all of it was read.
    pub(super) fn has_ended(&self) -> bool {
        self.is_over.get() && self.ahead.borrow().is_none() && self.trailers.borrow().is_none()
    }

    /// Returns true if the client gave up the request while its body was not read.
    pub(super) fn is_cancelled(&self) -> bool {
        if !self.is_over.get()
            && self.failure.get().is_none()
            && self.session.connection.is_reset(self.id)
        {
            self.failure.set(Some(ReadFailure::Lost));
        }
        self.failure.get() == Some(ReadFailure::Lost)
    }

    /// The violation that ended the request.
    pub(super) fn violation(&self) -> Option<Http3Error> {
        match self.failure.get() {
            Some(ReadFailure::Malformed(error)) => Some(error),
            Some(ReadFailure::Lost) | None => None,
        }
    }

    /// The next part of the message; `None` at its end.
    fn poll_part(&self, cx: &Context<'_>) -> Poll<Result<Option<RequestPart>, ReadFailure>> {
        if let Some(failure) = self.failure.get() {
            return Poll::Ready(Err(failure));
        }
        if self.is_over.get() {
            return Poll::Ready(Ok(None));
        }
        loop {
            let read = self.reader.borrow_mut().read(&mut self.input.borrow_mut());
            let empty_frames = self.reader.borrow_mut().take_empty_frames();
            self.session.charge(FloodKind::EmptyFrame, empty_frames);
            match read {
                Ok(Some(part)) => return Poll::Ready(Ok(Some(part))),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(self.refuse(error))),
            }
            if !self.count_held(self.reader.borrow().held_bytes()) {
                let rule = "the header sections of a connection are far above the limits";
                let error = Http3Error::stream(ErrorCode::EXCESSIVE_LOAD, rule);
                return Poll::Ready(Err(self.refuse(error)));
            }
            match ready!(self.session.connection.poll_read(cx, self.id)) {
                Ok(Some(bytes)) => *self.input.borrow_mut() = bytes,
                Ok(None) => {
                    let finished = self.reader.borrow().finish();
                    if let Err(error) = finished {
                        return Poll::Ready(Err(self.refuse(error)));
                    }
                    self.is_over.set(true);
                    return Poll::Ready(Ok(None));
                }
                Err(StreamLost::Cancelled | StreamLost::Gone) => {
                    self.failure.set(Some(ReadFailure::Lost));
                    return Poll::Ready(Err(ReadFailure::Lost));
                }
            }
        }
    }

    fn count_held(&self, bytes: usize) -> bool {
        let before = self.held.replace(bytes);
        before == bytes || self.session.hold_section(before, bytes)
    }

    fn refuse(&self, error: Http3Error) -> ReadFailure {
        let failure = ReadFailure::Malformed(error);
        self.failure.set(Some(failure));
        self.session.reject(self.id, error);
        failure
    }

    fn read_trailers(&self, section: &[u8]) -> Result<HeaderMap, BodyAborted> {
        let section = FieldSection::decode(section, self.session.http3.sections);
        let trailers = section.and_then(|section| read_trailers(&section));
        trailers.map_err(|error| BodyAborted::from(self.refuse(error)))
    }
}

impl From<ReadFailure> for BodyAborted {
    fn from(failure: ReadFailure) -> Self {
        match failure {
            ReadFailure::Lost => Self::Gone,
            ReadFailure::Malformed(_) => Self::Malformed(Reason::Http3ProtocolError),
        }
    }
}

impl Source for RequestHalf {
    fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        if let Some(wanted) = self.continue_wanted.take() {
            wanted.set(true);
        }
        loop {
            let ahead = self.ahead.take();
            let part = match ahead {
                Some(part) => Some(part),
                None => match ready!(self.poll_part(cx)) {
                    Ok(part) => part,
                    Err(failure) => return Poll::Ready(Some(Err(failure.into()))),
                },
            };
            match part {
                None => {
                    let trailers = self.trailers.take();
                    return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
                }
                Some(RequestPart::Data(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                // Trailers are delivered at the end of the stream, because more input after them is
                // an error.
                Some(RequestPart::Trailers(section) | RequestPart::Head(section)) => {
                    match self.read_trailers(&section) {
                        Ok(trailers) => *self.trailers.borrow_mut() = Some(trailers),
                        Err(aborted) => return Poll::Ready(Some(Err(aborted))),
                    }
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.has_ended()
    }

    fn size_hint(&self) -> SizeHint {
        if self.has_ended() {
            return SizeHint::with_exact(0);
        }
        SizeHint::default()
    }
}

impl fmt::Debug for RequestHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHalf")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Drop for RequestHalf {
    /// Stops an answered request that the client still sends. [RFC 9114 §4.1]
    fn drop(&mut self) {
        self.count_held(0);
        if !self.is_over.get() && self.failure.get().is_none() {
            self.session.connection.stop(self.id, ErrorCode::NO_ERROR);
        }
    }
}
