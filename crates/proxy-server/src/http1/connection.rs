//! The state of one client connection of HTTP/1.x that its requests, their bodies and its deadlines
//! share.

use crate::client_stream::ClientStream;
use crate::http1::request_reader::RequestReader;
use crate::negotiate::{Line, Place};
use crate::settings::ConnectionSettings;
use crate::timeout::ConnectionDeadline;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use proxy_clock::{MinDataRate, Timer};
use proxy_http1::{Pipe, RequestHead, SpliceTo};
use proxy_pipeline::{BodyAborted, ClientBody, ConnectionInfo, Source};
use std::cell::{Cell, RefCell, RefMut};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Most bytes of a body that are read and thrown away to keep a connection.
const MOST_DISCARDED: usize = 64 * 1024;

/// One client connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) settings: Rc<ConnectionSettings>,
    pub(crate) client: Rc<ConnectionInfo>,
    // Boxed, and none while the connection is idle: it is most of what a connection needs.
    inbox: RefCell<Option<Box<RequestReader>>>,
    transport: RefCell<ClientStream>,
    /// Whether it waits for a request with nothing at hand.
    pub(crate) resting: Cell<bool>,
    /// Whether the client has ended its side.
    pub(crate) eof: Cell<bool>,
    /// Whether the client waits to be told to send its body.
    waits: Cell<bool>,
    /// Whether it is to be told now.
    welcome: Cell<bool>,
    /// Bytes the client had taken when it was last found to take no more.
    blocked_at: Cell<Option<u64>>,
    /// How fast it takes them.
    pace: MinDataRate,
    pub(crate) place: Place,
}

/// A connection's stream, borrowed for each operation.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionIo(pub(crate) Rc<Connection>);

impl Connection {
    pub(crate) fn new(line: Line) -> Self {
        let Line {
            settings,
            client,
            place,
            transport,
            early,
        } = line;
        let begun = !early.is_empty();
        let inbox = begun.then(|| RequestReader::new(settings.limits, early));
        Self {
            client,
            inbox: RefCell::new(inbox.map(Box::new)),
            transport: RefCell::new(transport),
            resting: Cell::new(false),
            eof: Cell::new(false),
            waits: Cell::new(false),
            welcome: Cell::new(false),
            blocked_at: Cell::new(None),
            pace: MinDataRate::default(),
            settings,
            place,
        }
    }

    /// What it reads with.
    pub(crate) fn inbox(&self) -> RefMut<'_, RequestReader> {
        RefMut::map(self.inbox.borrow_mut(), |inbox| {
            &mut **inbox.get_or_insert_with(|| {
                let limits = self.settings.in_force().limits;
                Box::new(RequestReader::new(limits, Bytes::new()))
            })
        })
    }

    /// Whether there is nothing to take of what was read.
    pub(crate) fn has_nothing(&self) -> bool {
        let inbox = self.inbox.borrow();
        inbox.as_ref().is_none_or(|inbox| inbox.is_empty())
    }

    /// Gives back what is needed to read, if nothing is left in it.
    pub(crate) fn rest(&self) {
        let is_new = self.inbox.borrow().as_ref().is_some_and(|it| it.is_new());
        if is_new {
            self.inbox.replace(None);
        }
    }

    /// Its deadline, to wait by.
    pub(crate) fn patience(&self) -> ConnectionDeadline<'_> {
        ConnectionDeadline {
            clock: &self.place.worker.clock,
            deadline: &self.place.deadline,
        }
    }

    /// The body of the request whose head was taken.
    pub(crate) fn body(self: &Rc<Self>, head: &RequestHead) -> ClientBody {
        if self.is_over() {
            return ClientBody::Empty;
        }
        self.waits.set(head.expects);
        ClientBody::Http1(Rc::<Self>::clone(self))
    }

    /// What is to be written before the next response, if anything is.
    pub(crate) fn take_interim(&self) -> Option<Vec<u8>> {
        let welcome = self.welcome.take().then(|| CONTINUE.to_vec());
        match (welcome, self.client.take_interim()) {
            (Some(welcome), Some(heads)) => Some([welcome, heads].concat()),
            (welcome, heads) => welcome.or(heads),
        }
    }

    /// Reads what comes. Gives the number of bytes: 0 at the end of the stream.
    pub(crate) fn poll_fill(&self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut inbox = self.inbox();
        let mut transport = self.transport.borrow_mut();
        let polled = inbox.poll_fill(cx, &mut transport);
        self.client.fault.set(inbox.fault());
        if let Poll::Ready(Ok(0) | Err(_)) = polled {
            self.eof.set(true);
        }
        polled
    }

    /// Ready when the client has gone while it was being served.
    pub(crate) fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        while self.inbox().may_watch() {
            if let Ok(0) | Err(_) = ready!(self.poll_fill(cx)) {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Whether nothing can be read behind the present request: its body is broken, or its client still
    /// waits to be told to send it.
    pub(crate) fn is_to_close(&self) -> bool {
        !self.is_over() && (self.waits.get() || self.client.fault.get().is_some())
    }

    /// Ready when there may be something to read.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport.borrow().poll_readable(cx)
    }

    /// Throws away what is left of the request's body, if it is little and here. Whether nothing is
    /// left.
    pub(crate) fn discard_body(&self, cx: &mut Context<'_>) -> bool {
        let mut discarded = 0;
        while !self.is_over() && !self.waits.get() && discarded < MOST_DISCARDED {
            match Source::poll_frame(self, cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    discarded += frame.data_ref().map_or(0, Bytes::len);
                }
                Poll::Ready(Some(Err(_)) | None) | Poll::Pending => break,
            }
        }
        self.waits.set(false);
        self.is_over()
    }

    /// Has the connection cut off, not ended, once it is dropped.
    pub(crate) fn tear(&self) {
        if let Err(error) = self.transport.borrow_mut().tear() {
            tracing::debug!(%error, "a connection could not be reset");
        }
    }

    /// The client takes no bytes just now; it has taken `sent` of the response so far.
    pub(crate) fn blocked(&self, sent: u64) {
        let before = self.blocked_at.replace(Some(sent));
        if before == Some(sent) {
            return;
        }
        let clock = &self.place.worker.clock;
        let moved = sent.saturating_sub(before.unwrap_or(sent));
        self.pace
            .moved(clock, usize::try_from(moved).unwrap_or(usize::MAX));
        let time = self.settings.in_force().write_time;
        let left = self.pace.wait(clock, time);
        self.place
            .deadline
            .start_late(clock, Timer::ResponseWrite, (left, time));
    }

    /// The client has taken everything.
    pub(crate) fn unblocked(&self) {
        if self.blocked_at.take().is_none() {
            return;
        }
        self.pace.begin();
        if self.place.deadline.running() == Some(Timer::ResponseWrite) {
            self.place.deadline.stop();
        }
    }
}

impl Source for Connection {
    fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        loop {
            if let Some(frame) = self.inbox().take_frame() {
                // Who sends waits for nothing any more.
                self.waits.set(false);
                return Poll::Ready(Some(Ok(frame)));
            }
            if self.is_over() {
                return Poll::Ready(None);
            }
            if self.waits.take() {
                self.welcome.set(true);
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
        self.inbox().is_body_over()
    }

    fn size_hint(&self) -> SizeHint {
        self.inbox().size_hint()
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
