//! The state of one HTTP/1.x client connection, shared by its requests, their bodies and its
//! deadlines.

use crate::connection::client_stream::ClientStream;
use crate::connection::http1::request_reader::RequestReader;
use crate::connection::ready_connection::{ConnectionGuard, ReadyConnection};
use crate::connection::settings::ConnectionSettings;
use crate::connection::timeout::ConnectionDeadline;
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::{Frame, SizeHint};
use proxy_clock::{MinDataRate, Timer};
use proxy_http1::{Pipe, RequestHead, SpliceTo};
use proxy_pipeline::{Body, BodyAborted, ClientBody, ConnectionInfo, Source};
use std::cell::{Cell, RefCell, RefMut};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Maximum number of body bytes that are read and discarded to keep a connection alive.
const MAX_DISCARDED_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) settings: Rc<ConnectionSettings>,
    pub(crate) client: Rc<ConnectionInfo>,
    // Boxed, and `None` while the connection hibernates: it is most of a connection's memory.
    reader: RefCell<Option<Box<RequestReader>>>,
    transport: RefCell<ClientStream>,
    /// Set while only the socket is watched; the connection counts as idle.
    pub(crate) hibernating: Cell<bool>,
    /// Set at the end of the client's stream.
    pub(crate) eof: Cell<bool>,
    /// Set by `Expect: 100-continue`, until the body arrives or is wanted.
    awaits_continue: Cell<bool>,
    /// Set when the pipeline reads the body of a waiting client.
    send_continue: Cell<bool>,
    /// Number of response bytes sent when the client's receive window was last found full.
    blocked_at: Cell<Option<u64>>,
    /// Measures the client's read rate against the configured minimum.
    min_rate: MinDataRate,
    pub(crate) guard: ConnectionGuard,
}

/// A connection's stream, borrowed for each operation.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionIo(pub(crate) Rc<Connection>);

impl Connection {
    pub(crate) fn new(ready: ReadyConnection) -> Self {
        let ReadyConnection {
            settings,
            client,
            guard,
            transport,
            early,
        } = ready;
        let begun = !early.is_empty();
        let reader = begun.then(|| RequestReader::new(settings.in_force().limits, early));
        Self {
            client,
            reader: RefCell::new(reader.map(Box::new)),
            transport: RefCell::new(transport),
            hibernating: Cell::new(false),
            eof: Cell::new(false),
            awaits_continue: Cell::new(false),
            send_continue: Cell::new(false),
            blocked_at: Cell::new(None),
            min_rate: MinDataRate::default(),
            settings,
            guard,
        }
    }

    /// The request reader, created if the connection hibernated.
    pub(crate) fn reader(&self) -> RefMut<'_, RequestReader> {
        RefMut::map(self.reader.borrow_mut(), |reader| {
            &mut **reader.get_or_insert_with(|| {
                let limits = self.settings.in_force().limits;
                Box::new(RequestReader::new(limits, Bytes::new()))
            })
        })
    }

    pub(crate) fn has_no_input(&self) -> bool {
        let reader = self.reader.borrow();
        reader.as_ref().is_none_or(|reader| reader.is_empty())
    }

    /// Frees the request reader, if it holds no data.
    pub(crate) fn release_reader(&self) {
        let is_new = self.reader.borrow().as_ref().is_some_and(|it| it.is_new());
        if is_new {
            self.reader.replace(None);
        }
    }

    /// Frees the request reader of a connection that ends, with the data in it.
    pub(crate) fn discard_reader(&self) {
        self.reader.replace(None);
    }

    pub(crate) fn timeout(&self) -> ConnectionDeadline<'_> {
        ConnectionDeadline {
            clock: &self.guard.worker.clock,
            deadline: &self.guard.deadline,
        }
    }

    /// The body of the current request, after its head.
    pub(crate) fn body(self: &Rc<Self>, head: &RequestHead) -> ClientBody {
        if self.is_over() {
            return ClientBody::Empty;
        }
        self.awaits_continue.set(head.expects);
        ClientBody::Http1(Rc::<Self>::clone(self))
    }

    /// Interim responses to be written before the next response.
    #[inline]
    pub(crate) fn take_interim(&self) -> Option<Vec<u8>> {
        let is_any = self.send_continue.get() || self.client.has_interim();
        is_any.then(|| self.gather_interim()).flatten()
    }

    #[cold]
    fn gather_interim(&self) -> Option<Vec<u8>> {
        let send_continue = self.send_continue.take().then(|| CONTINUE.to_vec());
        match (send_continue, self.client.take_interim()) {
            (Some(send_continue), Some(heads)) => Some([send_continue, heads].concat()),
            (send_continue, heads) => send_continue.or(heads),
        }
    }

    /// Reads from the client. Returns the number of bytes: 0 at the end of the stream.
    pub(crate) fn poll_fill(&self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut reader = self.reader();
        let mut transport = self.transport.borrow_mut();
        let polled = reader.poll_fill(cx, &mut transport);
        self.client.fault.set(reader.fault());
        if let Poll::Ready(Ok(0) | Err(_)) = polled {
            self.eof.set(true);
        }
        polled
    }

    /// Ready when the client disconnects while its request is being served.
    pub(crate) fn poll_disconnect(&self, cx: &mut Context<'_>) -> Poll<()> {
        while self.reader().may_watch() {
            if let Ok(0) | Err(_) = ready!(self.poll_fill(cx)) {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Returns true if the connection must close after the current request, which is answered with
    /// `response`: the rest of its body is malformed, did not arrive in time or is not there to be
    /// discarded, or the client still waits for `100 Continue`.
    pub(crate) fn is_to_close(&self, cx: &mut Context<'_>, response: &Response<Body>) -> bool {
        if self.is_over() {
            return false;
        }
        let is_given_up = match response.status() {
            StatusCode::REQUEST_TIMEOUT => true,
            StatusCode::PAYLOAD_TOO_LARGE => self.size_hint().lower() > MAX_DISCARDED_BYTES as u64,
            _ => false,
        };
        is_given_up
            || self.awaits_continue.get()
            || self.client.fault.get().is_some()
            || !response.body().may_upload() && !self.discard_body(cx)
    }

    /// Ready when a read may return data.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport.borrow().poll_readable(cx)
    }

    /// Discards the rest of the request's body, if it is short and has arrived. Returns whether the
    /// body is complete.
    pub(crate) fn discard_body(&self, cx: &mut Context<'_>) -> bool {
        let mut discarded = 0;
        while !self.is_over() && !self.awaits_continue.get() && discarded < MAX_DISCARDED_BYTES {
            match Source::poll_frame(self, cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    discarded += frame.data_ref().map_or(0, Bytes::len);
                }
                Poll::Ready(Some(Err(_)) | None) | Poll::Pending => break,
            }
        }
        self.awaits_continue.set(false);
        self.is_over()
    }

    /// Makes drop reset the connection instead of closing it.
    pub(crate) fn abort(&self) {
        if let Err(error) = self.transport.borrow_mut().abort() {
            tracing::debug!(%error, "a connection could not be reset");
        }
    }

    /// Records that the client accepts no bytes now; `sent` of the response are sent.
    pub(crate) fn write_blocked(&self, sent: u64) {
        let before = self.blocked_at.replace(Some(sent));
        if before == Some(sent) {
            return;
        }
        let clock = &self.guard.worker.clock;
        let moved = sent.saturating_sub(before.unwrap_or(sent));
        self.min_rate
            .moved(clock, usize::try_from(moved).unwrap_or(usize::MAX));
        let time = self.settings.in_force().write_timeout;
        let left = self.min_rate.wait(clock, time);
        self.guard
            .deadline
            .start_late(clock, Timer::ResponseWrite, left, time);
    }

    /// Records that everything was sent.
    pub(crate) fn write_unblocked(&self) {
        if self.blocked_at.take().is_none() {
            return;
        }
        self.min_rate.begin();
        if self.guard.deadline.running() == Some(Timer::ResponseWrite) {
            self.guard.deadline.stop();
        }
    }
}

impl Source for Connection {
    fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        loop {
            if let Some(frame) = self.reader().take_frame() {
                // A client that sends its body no longer waits.
                self.awaits_continue.set(false);
                return Poll::Ready(Some(Ok(frame)));
            }
            if self.is_over() {
                return Poll::Ready(None);
            }
            if self.reader().ends_turn() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.awaits_continue.take() {
                self.send_continue.set(true);
            }
            if self.client.fault.get().is_some() || self.eof.get() {
                return Poll::Ready(Some(Err(BodyAborted::Gone)));
            }
            if let Ok(0) | Err(_) = ready!(self.poll_fill(cx)) {
                return Poll::Ready(Some(Err(BodyAborted::Gone)));
            }
        }
    }

    fn is_over(&self) -> bool {
        self.reader().is_body_over()
    }

    fn size_hint(&self) -> SizeHint {
        self.reader().size_hint()
    }
}

impl AsyncRead for ConnectionIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.transport.borrow_mut()).poll_read(cx, buf)
    }
}

impl AsyncWrite for ConnectionIo {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.transport.borrow_mut()).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.transport.borrow_mut()).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.transport.borrow_mut()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.transport.borrow_mut()).poll_shutdown(cx)
    }
}

impl SpliceTo for ConnectionIo {
    fn can_splice(&self) -> bool {
        self.0.transport.borrow().splices().is_some()
    }

    fn poll_splice(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe) -> Poll<io::Result<usize>> {
        match self.0.transport.borrow().splices() {
            Some(socket) => pipe.poll_drain(cx, socket),
            None => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }
}
