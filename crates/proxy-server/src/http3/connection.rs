//! A QUIC connection, shared by its endpoint, its driver and its streams.

use super::clock::QuicClock;
use super::contain::contain;
use super::handshake_load::HandshakeSlot;
use crate::connection::ready_connection::ConnectionGuard;
use bytes::Bytes;
use proxy_http3::ErrorCode;
use quinn_proto::crypto::rustls::HandshakeData;
use quinn_proto::{
    ConnectionError, ConnectionHandle, Dir, Event, ReadError, StreamEvent, StreamId, VarInt,
    WriteError,
};
use rustls_pki_types::CertificateDer;
use std::cell::{Cell, RefCell, RefMut};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Maximum size of one read, in bytes. Each stream may hold that much outside of its flow-control
/// window.
pub(crate) const MAX_PIECE_BYTES: usize = 4 * 1024;

/// Connections with datagrams to send, or events to handle; shared with their endpoint.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue {
    handles: RefCell<Vec<ConnectionHandle>>,
    endpoint: RefCell<Option<Waker>>,
}

impl ReadyQueue {
    /// Registers the endpoint's task, to be woken by each connection that is queued.
    pub(super) fn watch(&self, cx: &Context<'_>) {
        let mut endpoint = self.endpoint.borrow_mut();
        if !endpoint
            .as_ref()
            .is_some_and(|known| known.will_wake(cx.waker()))
        {
            *endpoint = Some(cx.waker().clone());
        }
    }

    pub(super) fn take(&self) -> Vec<ConnectionHandle> {
        self.handles.take()
    }

    /// Wakes the endpoint.
    pub(super) fn wake(&self) {
        if let Some(endpoint) = &*self.endpoint.borrow() {
            endpoint.wake_by_ref();
        }
    }
}

pub(super) struct Connection {
    pub(super) handle: ConnectionHandle,
    quic: RefCell<quinn_proto::Connection>,
    queue: Rc<ReadyQueue>,
    is_queued: Cell<bool>,
    clock: Rc<QuicClock>,
    is_established: Cell<bool>,
    is_lost: Cell<bool>,
    has_panicked: Cell<bool>,
    /// The reason why the connection ended, unless this side closed it.
    error: RefCell<Option<ConnectionError>>,
    driver: RefCell<Option<Waker>>,
    /// Tasks that wait for events of a stream.
    streams: Wakers,
    /// Tasks that wait for bytes of a stream; not the stream's own task if an upstream connection's
    /// task sends the request's body.
    readers: Wakers,
    /// Key of the connection's entry in the endpoint's list of timeouts.
    pub(super) timeout: Cell<Option<Instant>>,
    /// Released when the connection is drained, not when its tasks end: its state exists until
    /// then.
    guard: RefCell<ConnectionGuard>,
    /// The connection's place among the endpoint's handshakes. A failed handshake keeps it until
    /// the connection is drained.
    handshake: RefCell<Option<HandshakeSlot>>,
}

type Wakers = RefCell<HashMap<StreamId, Waker>>;

/// The reason why a stream cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamLost {
    /// The client cancelled the stream.
    Cancelled,
    /// The connection ended.
    Gone,
}

impl Connection {
    pub(super) fn new(
        handle: ConnectionHandle,
        quic: quinn_proto::Connection,
        queue: &Rc<ReadyQueue>,
        clock: &Rc<QuicClock>,
        (guard, handshake): (ConnectionGuard, HandshakeSlot),
    ) -> Rc<Self> {
        Rc::new(Self {
            handle,
            quic: RefCell::new(quic),
            queue: Rc::clone(queue),
            is_queued: Cell::new(false),
            clock: Rc::clone(clock),
            is_established: Cell::new(false),
            is_lost: Cell::new(false),
            has_panicked: Cell::new(false),
            error: RefCell::default(),
            driver: RefCell::default(),
            streams: Wakers::default(),
            readers: Wakers::default(),
            timeout: Cell::default(),
            guard: RefCell::new(guard),
            handshake: RefCell::new(Some(handshake)),
        })
    }

    /// The state machine, which the endpoint drives.
    pub(super) fn quic(&self) -> RefMut<'_, quinn_proto::Connection> {
        self.quic.borrow_mut()
    }

    pub(super) fn guard(&self) -> RefMut<'_, ConnectionGuard> {
        self.guard.borrow_mut()
    }

    /// Queues the connection for the endpoint and wakes it.
    pub(super) fn enqueue(&self) {
        if !self.is_queued.replace(true) {
            self.queue.handles.borrow_mut().push(self.handle);
            self.queue.wake();
        }
    }

    /// Records that the endpoint has taken the connection from its queue.
    pub(super) fn dequeued(&self) {
        self.is_queued.set(false);
    }

    /// Wakes the tasks that wait for events which have occurred.
    pub(super) fn dispatch(&self) {
        loop {
            let event = self.quic.borrow_mut().poll();
            match event {
                None => return,
                Some(Event::Connected) => {
                    self.is_established.set(true);
                    self.wake_driver();
                }
                Some(Event::ConnectionLost { reason }) => {
                    *self.error.borrow_mut() = Some(reason);
                    self.lose();
                }
                Some(Event::Stream(event)) => self.dispatch_stream(&event),
                Some(
                    Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked,
                ) => {}
            }
        }
    }

    fn dispatch_stream(&self, event: &StreamEvent) {
        match event {
            // A stream that has finished may be the last of a connection that is leaving.
            StreamEvent::Opened { .. }
            | StreamEvent::Available { .. }
            | StreamEvent::Finished { .. } => self.wake_driver(),
            StreamEvent::Readable { id } => {
                wake(&self.readers, *id);
                wake(&self.streams, *id);
            }
            StreamEvent::Writable { id } | StreamEvent::Stopped { id, .. } => {
                wake(&self.streams, *id);
            }
        }
    }

    fn lose(&self) {
        self.is_lost.set(true);
        self.wake_driver();
        for tasks in [&self.streams, &self.readers] {
            for (_, task) in tasks.borrow_mut().drain() {
                task.wake();
            }
        }
    }

    pub(super) fn wake_driver(&self) {
        if let Some(driver) = &*self.driver.borrow() {
            driver.wake_by_ref();
        }
    }

    /// Registers the calling task as the driver.
    pub(super) fn watch(&self, cx: &Context<'_>) {
        let mut driver = self.driver.borrow_mut();
        if !driver
            .as_ref()
            .is_some_and(|known| known.will_wake(cx.waker()))
        {
            *driver = Some(cx.waker().clone());
        }
    }

    /// Registers the calling task, to be woken by events of the stream.
    pub(super) fn watch_stream(&self, id: StreamId, cx: &Context<'_>) {
        watch(&self.streams, id, cx);
    }

    /// Drops the registration of [`Self::watch_stream`].
    pub(super) fn forget_stream(&self, id: StreamId) {
        self.streams.borrow_mut().remove(&id);
        self.readers.borrow_mut().remove(&id);
    }

    /// Gives the connection's place among the endpoint's handshakes back.
    pub(super) fn end_handshake(&self) {
        drop(self.handshake.take());
    }

    pub(super) fn is_established(&self) -> bool {
        self.is_established.get()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.get()
    }

    /// Ends the connection after a panic of the QUIC library, without a notice to the client: the
    /// state is inconsistent.
    pub(super) fn abandon(&self) {
        self.has_panicked.set(true);
        self.lose();
    }

    /// Returns true if a panic of the QUIC library ended the connection.
    pub(super) fn has_panicked(&self) -> bool {
        self.has_panicked.get()
    }

    /// The reason why the connection ended, unless this side closed it; returned once.
    pub(super) fn take_error(&self) -> Option<ConnectionError> {
        self.error.borrow_mut().take()
    }

    /// The client's current address: it changes when the client moves to another network.
    pub(super) fn remote(&self) -> SocketAddr {
        self.quic.borrow().remote_address()
    }

    /// Returns true if the client has acknowledged everything on the streams that have ended, with
    /// `open` streams of this side not ended yet.
    pub(super) fn is_flushed(&self, open: usize) -> bool {
        self.quic.borrow_mut().streams().send_streams() <= open
    }

    pub(super) fn server_name(&self) -> Option<String> {
        let quic = self.quic.borrow();
        let data = quic.crypto_session().handshake_data()?;
        data.downcast::<HandshakeData>().ok()?.server_name
    }

    /// The client's certificate and its intermediates; empty if it sent none.
    pub(super) fn client_chain(&self) -> Vec<CertificateDer<'static>> {
        let quic = self.quic.borrow();
        let chain = quic.crypto_session().peer_identity();
        let chain = chain.and_then(|chain| chain.downcast().ok());
        chain.map(|chain| *chain).unwrap_or_default()
    }

    /// Closes the connection with `code`; its streams end.
    pub(super) fn close(&self, code: ErrorCode, reason: &'static str) {
        if self.is_lost.get() {
            return;
        }
        let (now, reason) = (self.clock.now(), Bytes::from_static(reason.as_bytes()));
        // If closing panics, the endpoint abandons the connection.
        contain(|| {
            self.quic().close(now, code.value().into(), reason);
        });
        self.lose();
        self.enqueue();
    }

    /// A stream that the client has opened.
    pub(super) fn accept(&self, dir: Dir) -> Option<StreamId> {
        self.quic.borrow_mut().streams().accept(dir)
    }

    /// A new stream of this side, if the client allows one.
    pub(super) fn open(&self) -> Option<StreamId> {
        self.quic.borrow_mut().streams().open(Dir::Uni)
    }

    /// The next bytes of a stream; `None` at its end.
    pub(super) fn poll_read(
        &self,
        cx: &Context<'_>,
        id: StreamId,
    ) -> Poll<Result<Option<Bytes>, StreamLost>> {
        if self.is_lost.get() {
            return Poll::Ready(Err(StreamLost::Gone));
        }
        let (result, transmits) = {
            let mut quic = self.quic.borrow_mut();
            let mut stream = quic.recv_stream(id);
            let Ok(mut chunks) = stream.read(true) else {
                return Poll::Ready(Err(StreamLost::Gone));
            };
            let result = chunks.next(MAX_PIECE_BYTES);
            (result, chunks.finalize().should_transmit())
        };
        if transmits {
            self.enqueue();
        }
        match result {
            Ok(chunk) => Poll::Ready(Ok(chunk.map(|chunk| chunk.bytes))),
            Err(ReadError::Blocked) => {
                watch(&self.readers, id, cx);
                Poll::Pending
            }
            Err(ReadError::Reset(_)) => Poll::Ready(Err(StreamLost::Cancelled)),
        }
    }

    /// Returns true if the client has reset its half of the stream. Then reading has no further
    /// result.
    pub(super) fn is_reset(&self, id: StreamId) -> bool {
        let mut quic = self.quic.borrow_mut();
        matches!(quic.recv_stream(id).received_reset(), Ok(Some(_)))
    }

    /// Returns true if the client has refused the rest of the response.
    pub(super) fn is_stopped(&self, id: StreamId) -> bool {
        let mut quic = self.quic.borrow_mut();
        matches!(quic.send_stream(id).stopped(), Ok(Some(_)))
    }

    /// Writes the part of `chunks` that the client's windows allow, and removes it from them.
    pub(super) fn poll_write(
        &self,
        cx: &Context<'_>,
        id: StreamId,
        chunks: &mut [Bytes],
    ) -> Poll<Result<usize, StreamLost>> {
        if self.is_lost.get() {
            return Poll::Ready(Err(StreamLost::Gone));
        }
        let written = self.quic.borrow_mut().send_stream(id).write_chunks(chunks);
        match written {
            Ok(written) => {
                self.enqueue();
                Poll::Ready(Ok(written.bytes))
            }
            Err(WriteError::Blocked) => {
                // The state machine may have to send a frame that reports the exhausted window.
                self.enqueue();
                self.watch_stream(id, cx);
                Poll::Pending
            }
            Err(WriteError::Stopped(_)) => Poll::Ready(Err(StreamLost::Cancelled)),
            Err(WriteError::ClosedStream) => Poll::Ready(Err(StreamLost::Gone)),
        }
    }

    /// Ends our half of a stream.
    pub(super) fn finish(&self, id: StreamId) -> Result<(), StreamLost> {
        let finished = self.quic.borrow_mut().send_stream(id).finish();
        self.enqueue();
        finished.map_err(|_| StreamLost::Cancelled)
    }

    /// Resets our half of a stream.
    pub(super) fn reset(&self, id: StreamId, code: ErrorCode) {
        // Fails if the half has ended, which is the goal.
        drop(
            self.quic
                .borrow_mut()
                .send_stream(id)
                .reset(code.value().into()),
        );
        self.enqueue();
    }

    /// Stops reading the client's half of a stream.
    pub(super) fn stop(&self, id: StreamId, code: ErrorCode) {
        // Fails if the half has ended, which is the goal.
        drop(
            self.quic
                .borrow_mut()
                .recv_stream(id)
                .stop(code.value().into()),
        );
        self.enqueue();
    }

    /// Returns true if a client's request is open.
    pub(super) fn has_requests(&self) -> bool {
        self.quic
            .borrow_mut()
            .streams()
            .remote_open_streams(Dir::Bi)
            > 0
    }

    /// Sends a PING, which a live client acknowledges.
    pub(super) fn ping(&self) {
        self.quic.borrow_mut().ping();
        self.enqueue();
    }
}

fn wake(tasks: &Wakers, id: StreamId) {
    if let Some(task) = tasks.borrow_mut().remove(&id) {
        task.wake();
    }
}

fn watch(tasks: &Wakers, id: StreamId, cx: &Context<'_>) {
    let mut tasks = tasks.borrow_mut();
    let known = tasks.get(&id);
    if !known.is_some_and(|known| known.will_wake(cx.waker())) {
        tasks.insert(id, cx.waker().clone());
    }
}

/// Stream ID on the wire.
pub(super) fn number(id: StreamId) -> u64 {
    VarInt::from(id).into_inner()
}
