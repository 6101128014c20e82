//! The task of an endpoint: it receives and sends datagrams, and drives the QUIC state machine.

use super::accept::{self, Listening, ServerConfigs};
use super::handle::{Endpoint, OpenSocket};
use crate::http3::clock::QuicClock;
use crate::http3::connection::Connection;
use crate::http3::contain::{contain, panic_problem};
use crate::http3::handshake_load::HandshakeLoad;
use crate::http3::socket::{Datagram, DatagramSocket, ReceiveBuffer};
use crate::http3::steering::{
    DatagramRouter, Http3Secrets, Http3Shared, IdCipher, OwnedIds, Owner, RegisteredEndpoint,
    destination,
};
use crate::http3::wake_timer::WakeTimer;
use proxy_http3::ErrorCode;
use proxy_pipeline::Worker;
use quinn_proto::{
    ConnectionHandle, DatagramEvent, EndpointConfig, EndpointEvent, Incoming, Transmit,
};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Receiver;

/// Batches of datagrams and connections that are handled before other tasks of the worker run.
const MAX_ROUNDS: usize = 8;

/// Messages that one connection sends before the next one has its turn.
const MESSAGES_PER_TURN: usize = 16;

/// Maximum number of datagrams in one message, where the kernel segments messages.
const MAX_SEGMENTS: usize = 10;

/// Interval of pings on connections with open requests: a client that only waits for its response
/// is not taken for lost.
const PING_INTERVAL: Duration = Duration::from_secs(15);

pub(super) struct EndpointTask {
    endpoint: Rc<Endpoint>,
    worker: Rc<Worker>,
    clock: Rc<QuicClock>,
    timer: WakeTimer,
    proto: quinn_proto::Endpoint,
    configs: ServerConfigs,
    owner: Owner,
    cipher: IdCipher,
    router: Arc<DatagramRouter>,
    forwarded: Receiver<Datagram>,
    _registered: RegisteredEndpoint,
    connections: HashMap<ConnectionHandle, Rc<Connection>>,
    /// The next timeout of each connection.
    timeouts: BTreeSet<(Instant, usize)>,
    load: HandshakeLoad,
    buffer: Option<ReceiveBuffer>,
    blocked: Option<BlockedMessage>,
    next_ping: Option<Instant>,
}

/// A message that the socket did not accept.
struct BlockedMessage {
    transmit: Transmit,
    bytes: Vec<u8>,
}

impl EndpointTask {
    /// The task of `endpoint`.
    ///
    /// # Errors
    /// No timer can be created, or the numbers of endpoints are used up.
    pub(super) fn new(
        endpoint: &Rc<Endpoint>,
        worker: Rc<Worker>,
        Http3Shared { secrets, router }: Http3Shared,
    ) -> io::Result<Self> {
        let cipher = IdCipher::new(secrets.id_key());
        let registered = router.register();
        let (registered, forwarded) = registered.ok_or(io::ErrorKind::QuotaExceeded)?;
        let owner = registered.owner;
        Ok(Self {
            clock: Rc::new(QuicClock::new(&worker)),
            endpoint: Rc::clone(endpoint),
            timer: WakeTimer::new()?,
            proto: state_machine(&secrets, &cipher, owner),
            configs: ServerConfigs::new(&secrets),
            owner,
            cipher,
            router,
            forwarded,
            _registered: registered,
            connections: HashMap::new(),
            timeouts: BTreeSet::new(),
            load: HandshakeLoad::default(),
            buffer: None,
            blocked: None,
            next_ping: None,
            worker,
        })
    }

    /// Ready when the endpoint is closed and has no connection.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.endpoint.queue.watch(cx);
        if self.endpoint.is_cut.get() {
            self.cut(cx);
            return Poll::Ready(());
        }
        for _ in 0..MAX_ROUNDS {
            self.refresh_config();
            let received = self.receive(cx) | self.receive_forwarded(cx);
            let expired = self.expire(cx);
            let handled = self.handle_ready(cx);
            if self.endpoint.is_closed.get() && self.connections.is_empty() {
                return Poll::Ready(());
            }
            if !received && !expired && !handled {
                return self.rest(cx);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Sends every client a notice that its connection has ended, unless the socket is full.
    fn cut(&mut self, cx: &mut Context<'_>) {
        let connections: Vec<_> = self.connections.values().cloned().collect();
        for connection in connections {
            connection.close(ErrorCode::NO_ERROR, "");
            contain(|| self.transmit(&connection, cx));
        }
    }

    /// Sets the timer to the next timeout or ping. Pending until it fires.
    fn rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.clock.now();
        let first = self.timeouts.first().map(|(at, _)| *at);
        let next = first.into_iter().chain(self.next_ping).min();
        if let Err(error) = self.timer.set(next, now) {
            tracing::error!(%error, "an endpoint has no timer");
        }
        if self.timer.poll_fired(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Receives a batch from each socket. Returns whether there was one.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let sockets: Vec<_> = self.endpoint.sockets.borrow().values().cloned().collect();
        let mut any = false;
        for OpenSocket { socket, is_read } in sockets {
            if !is_read {
                continue;
            }
            let mut buffer = self
                .buffer
                .take()
                .unwrap_or_else(|| socket.receive_buffer());
            let mut datagrams = Vec::new();
            let received =
                socket.poll_receive(cx, &mut buffer, |datagram| datagrams.push(datagram));
            self.buffer = Some(buffer);
            match received {
                Poll::Pending => {}
                // Errors belong to earlier datagrams, such as one to an unreachable client.
                Poll::Ready(Ok(()) | Err(_)) => any = true,
            }
            for datagram in datagrams {
                self.route(datagram, &socket, cx);
            }
        }
        any
    }

    /// Takes datagrams from other workers. Returns whether there was one.
    fn receive_forwarded(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        while let Poll::Ready(Some(datagram)) = self.forwarded.poll_recv(cx) {
            any = true;
            self.take(datagram, cx);
        }
        any
    }

    /// Passes the datagram to the endpoint that owns its connection, or takes it.
    fn route(&mut self, mut datagram: Datagram, socket: &DatagramSocket, cx: &mut Context<'_>) {
        if datagram.local.is_none() {
            datagram.local = socket
                .local(None)
                .map(|local| local.ip())
                .filter(|ip| !ip.is_unspecified());
        }
        let owner = destination(&datagram.bytes).and_then(|id| self.cipher.owner(id));
        let datagram = match owner {
            Some(owner) if owner != self.owner => match self.router.send(owner, datagram) {
                Ok(()) => return,
                Err(datagram) => datagram,
            },
            Some(_) | None => datagram,
        };
        self.take(datagram, cx);
    }

    fn take(&mut self, datagram: Datagram, cx: &mut Context<'_>) {
        let Datagram {
            remote,
            local,
            ecn,
            bytes,
        } = datagram;
        let now = self.clock.now();
        let mut response = Vec::new();
        let handled = contain(|| {
            self.proto
                .handle(now, remote, local, ecn, bytes, &mut response)
        });
        match handled {
            None => self.log_panic(remote, local),
            Some(None) => {}
            Some(Some(DatagramEvent::Response(transmit))) => self.send(cx, transmit, response),
            Some(Some(DatagramEvent::ConnectionEvent(handle, event))) => {
                self.advance(handle, |quic| quic.handle_event(event));
            }
            Some(Some(DatagramEvent::NewConnection(incoming))) => self.accept(incoming, cx),
        }
    }

    /// Runs `step` of a connection, and handles its results later. A panic ends the connection.
    fn advance(
        &mut self,
        handle: ConnectionHandle,
        step: impl FnOnce(&mut quinn_proto::Connection),
    ) {
        let Some(connection) = self.connections.get(&handle).cloned() else {
            return;
        };
        match contain(|| step(&mut connection.quic())) {
            Some(()) => connection.enqueue(),
            None => self.abandon(&connection),
        }
    }

    /// Removes a connection after a panic.
    fn abandon(&mut self, connection: &Connection) {
        connection.abandon();
        self.connections.remove(&connection.handle);
        self.forget_timeout(connection);
        // Frees its entry, unless that panics too.
        contain(|| {
            self.proto
                .handle_event(connection.handle, EndpointEvent::drained())
        });
    }

    /// Logs a panic caused by a datagram from `remote` that belongs to no connection.
    fn log_panic(&self, remote: SocketAddr, local: Option<IpAddr>) {
        let listening = self.listening();
        let peer = accept::peer(&listening, remote, local);
        accept::log(&listening, peer, &panic_problem());
    }

    fn accept(&mut self, incoming: Incoming, cx: &mut Context<'_>) {
        let now = self.clock.now();
        let listening = self.listening();
        let (remote, local) = (incoming.remote_address(), incoming.local_ip());
        let (proto, load) = (&mut self.proto, &mut self.load);
        let decided = contain(|| accept::accept(proto, load, &listening, incoming, now));
        let Some((message, accepted)) = decided else {
            return self.log_panic(remote, local);
        };
        if let Some((transmit, bytes)) = message {
            self.send(cx, transmit, bytes);
        }
        if let Some(connection) = accepted {
            self.connections
                .insert(connection.handle, Rc::clone(&connection));
            self.next_ping.get_or_insert(now + PING_INTERVAL);
            connection.enqueue();
        }
    }

    /// The state on which decisions about new connections depend.
    fn listening(&self) -> Listening {
        let endpoint = &self.endpoint;
        Listening {
            worker: Rc::clone(&self.worker),
            index: Rc::clone(&endpoint.index),
            settings: Rc::clone(&endpoint.settings.borrow()),
            http3: Rc::clone(&endpoint.http3.borrow()),
            socket: self.socket(),
            is_closed: endpoint.is_closed.get(),
            queue: Rc::clone(&endpoint.queue),
            clock: Rc::clone(&self.clock),
        }
    }

    fn refresh_config(&mut self) {
        let endpoint = &self.endpoint;
        if let Some(tls) = &endpoint.settings.borrow().tls {
            let transport = &endpoint.http3.borrow().transport;
            self.configs.refresh(&mut self.proto, tls, transport);
        }
    }

    /// Handles timeouts that have expired. Returns whether there was one.
    fn expire(&mut self, cx: &mut Context<'_>) -> bool {
        let now = self.clock.now();
        let fired = self.timer.poll_fired(cx).is_ready();
        let mut any = fired;
        while let Some((at, handle)) = self.timeouts.first().copied()
            && at <= now
        {
            self.timeouts.remove(&(at, handle));
            let handle = ConnectionHandle(handle);
            if let Some(connection) = self.connections.get(&handle) {
                connection.timeout.set(None);
            }
            self.advance(handle, |quic| quic.handle_timeout(now));
            any = true;
        }
        if self.next_ping.is_some_and(|at| at <= now) {
            self.ping(now);
            any = true;
        }
        any
    }

    fn ping(&mut self, now: Instant) {
        self.next_ping = (!self.connections.is_empty()).then(|| now + PING_INTERVAL);
        for connection in self.connections.values() {
            if connection.has_requests() {
                connection.ping();
            }
        }
    }

    /// Handles the connections with events or data. Returns whether there was one.
    fn handle_ready(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.send_blocked(cx) {
            return false;
        }
        let handles = self.endpoint.queue.take();
        for handle in &handles {
            let Some(connection) = self.connections.get(handle).cloned() else {
                continue;
            };
            connection.dequeued();
            if self.blocked.is_some() {
                // Handled when the socket accepts messages again.
                connection.enqueue();
                continue;
            }
            if contain(|| self.handle(&connection, cx)).is_none() {
                self.abandon(&connection);
            }
        }
        self.blocked.is_none() && !handles.is_empty()
    }

    fn handle(&mut self, connection: &Rc<Connection>, cx: &mut Context<'_>) {
        connection.dispatch();
        loop {
            let event = connection.quic().poll_endpoint_events();
            let Some(event) = event else { break };
            if let Some(event) = self.proto.handle_event(connection.handle, event) {
                connection.quic().handle_event(event);
            }
        }
        self.transmit(connection, cx);
        connection.dispatch();
        self.schedule(connection);
        if connection.quic().is_drained() {
            self.connections.remove(&connection.handle);
            self.forget_timeout(connection);
        }
    }

    fn transmit(&mut self, connection: &Rc<Connection>, cx: &mut Context<'_>) {
        let now = self.clock.now();
        let segments = self.max_segments();
        for _ in 0..MESSAGES_PER_TURN {
            let mut bytes = Vec::new();
            let transmit = connection.quic().poll_transmit(now, segments, &mut bytes);
            let Some(transmit) = transmit else { return };
            self.send(cx, transmit, bytes);
            if self.blocked.is_some() {
                break;
            }
        }
        connection.enqueue();
    }

    fn schedule(&mut self, connection: &Connection) {
        let next = connection.quic().poll_timeout();
        if next == connection.timeout.get() {
            return;
        }
        self.forget_timeout(connection);
        connection.timeout.set(next);
        if let Some(at) = next {
            self.timeouts.insert((at, connection.handle.0));
        }
    }

    fn forget_timeout(&mut self, connection: &Connection) {
        if let Some(at) = connection.timeout.take() {
            self.timeouts.remove(&(at, connection.handle.0));
        }
    }

    /// A socket for sending: all have the same address.
    fn socket(&self) -> Option<Rc<DatagramSocket>> {
        let sockets = self.endpoint.sockets.borrow();
        sockets.values().next().map(|open| Rc::clone(&open.socket))
    }

    fn max_segments(&self) -> usize {
        let max = self.socket().map_or(1, |socket| socket.max_segments());
        max.clamp(1, MAX_SEGMENTS)
    }

    fn send(&mut self, cx: &mut Context<'_>, transmit: Transmit, bytes: Vec<u8>) {
        let Some(socket) = self.socket().filter(|_| self.blocked.is_none()) else {
            return;
        };
        if socket.poll_send(cx, &transmit, &bytes).is_pending() {
            self.blocked = Some(BlockedMessage { transmit, bytes });
        }
    }

    /// Sends the message that the socket did not accept before. Returns false if it is still
    /// blocked.
    fn send_blocked(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(BlockedMessage { transmit, bytes }) = self.blocked.take() {
            self.send(cx, transmit, bytes);
        }
        self.blocked.is_none()
    }
}

impl Drop for EndpointTask {
    fn drop(&mut self) {
        self.endpoint.ended.notify_one();
    }
}

fn state_machine(secrets: &Http3Secrets, cipher: &IdCipher, owner: Owner) -> quinn_proto::Endpoint {
    let cipher = cipher.clone();
    let mut config = EndpointConfig::new(secrets.reset_key());
    config.cid_generator(move || Box::new(OwnedIds::new(cipher.clone(), owner)));
    // Each connection gets its own configuration when it is accepted; the state machine needs a
    // first one.
    quinn_proto::Endpoint::new(Arc::new(config), None, true, None)
}
