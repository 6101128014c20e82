//! The endpoint of one listener on one worker: sockets, QUIC state machine, timer, and all connections.

mod accept;

use super::clock::QuicClock;
use super::connection::{Connection, ReadyQueue};
use super::connection_ids::{IdCipher, OwnedIds, Owner, destination};
use super::datagrams::{DatagramRouter, RegisteredEndpoint};
use super::secrets::Http3Secrets;
use super::settings::Http3Settings;
use super::shared::Http3Shared;
use super::socket::{Datagram, DatagramSocket, ReceiveBuffer};
use super::wake_timer::WakeTimer;
use crate::connection::settings::ConnectionSettings;
use accept::{Listening, ServerConfigs};
use proxy_pipeline::{REMOVED_LISTENER, Worker};
use quinn_proto::{ConnectionHandle, DatagramEvent, EndpointConfig, Incoming, Transmit};
use socket2::Socket;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Receiver;

/// Batches of datagrams and connections that are handled before other tasks of the worker run.
const ROUNDS: usize = 8;

/// Messages that one connection sends before others.
const MESSAGES_PER_TURN: usize = 16;

/// Datagrams of one message at most, where the kernel cuts messages into datagrams.
const MAX_SEGMENTS: usize = 10;

/// Interval of pings on connections with open requests: a silent client with one is not lost.
const PING_INTERVAL: Duration = Duration::from_secs(15);

/// The inputs of [`Endpoint::new`].
pub(crate) struct EndpointParts {
    pub(crate) worker: Rc<Worker>,
    pub(crate) shared: Http3Shared,
    pub(crate) settings: Rc<ConnectionSettings>,
    pub(crate) http3: Http3Settings,
}

/// The worker's handle of an endpoint.
pub(crate) struct Endpoint {
    /// Index of the listener in the active plan.
    pub(crate) index: Rc<Cell<usize>>,
    settings: RefCell<Rc<ConnectionSettings>>,
    http3: RefCell<Rc<Http3Settings>>,
    sockets: RefCell<BTreeMap<usize, OpenSocket>>,
    is_closed: Cell<bool>,
    queue: Rc<ReadyQueue>,
}

/// A socket of an endpoint.
#[derive(Clone)]
struct OpenSocket {
    socket: Rc<DatagramSocket>,
    /// Datagrams are received; another worker or process does so otherwise.
    is_read: bool,
}

impl Endpoint {
    /// An endpoint without sockets, and its task.
    ///
    /// # Errors
    /// There is no timer, or no number for a further endpoint.
    pub(crate) fn new(
        parts: EndpointParts,
    ) -> io::Result<(Rc<Self>, impl Future<Output = ()> + use<>)> {
        let EndpointParts {
            worker,
            shared: Http3Shared { secrets, router },
            settings,
            http3,
        } = parts;
        let endpoint = Rc::new(Self {
            index: Rc::default(),
            settings: RefCell::new(settings),
            http3: RefCell::new(Rc::new(http3)),
            sockets: RefCell::default(),
            is_closed: Cell::new(false),
            queue: Rc::default(),
        });
        let cipher = IdCipher::new(secrets.id_key());
        let registered = router.register();
        let (registered, forwarded) = registered.ok_or(io::ErrorKind::QuotaExceeded)?;
        let owner = registered.owner;
        let mut task = EndpointTask {
            clock: Rc::new(QuicClock::new(&worker)),
            endpoint: Rc::clone(&endpoint),
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
            handshakes: Rc::default(),
            buffer: None,
            blocked: None,
            next_ping: None,
            worker,
        };
        Ok((endpoint, async move { poll_fn(|cx| task.poll(cx)).await }))
    }

    /// Applies settings to connections accepted from now on.
    pub(crate) fn update(&self, settings: &Rc<ConnectionSettings>, http3: Http3Settings) {
        self.settings.replace(Rc::clone(settings));
        self.http3.replace(Rc::new(http3));
    }

    /// Receives from `socket`, too.
    pub(crate) fn open(&self, (place, socket): (usize, Socket)) {
        match DatagramSocket::new(socket) {
            Ok(socket) => {
                let socket = OpenSocket {
                    socket: Rc::new(socket),
                    is_read: true,
                };
                self.sockets.borrow_mut().insert(place, socket);
                self.queue.wake();
            }
            Err(error) => tracing::error!(%error, "cannot use a socket for datagrams"),
        }
    }

    /// Stops receiving from every socket not in `places`; another worker or process does. They are still used for
    /// sending, as long as there are connections.
    pub(crate) fn keep_only(&self, places: &[usize]) {
        for (place, socket) in &mut *self.sockets.borrow_mut() {
            socket.is_read = places.contains(place);
        }
        self.queue.wake();
    }

    /// Stops receiving if `other` has the same address: it passes datagrams of connections of this endpoint on.
    pub(crate) fn leave_sockets_to(&self, other: &Self) {
        if self
            .address()
            .is_some_and(|address| other.address() == Some(address))
        {
            self.keep_only(&[]);
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        let sockets = self.sockets.borrow();
        sockets.values().next()?.socket.local(None)
    }

    /// Refuses further connections. The endpoint ends with its last connection.
    pub(crate) fn close(&self) {
        self.is_closed.set(true);
        self.queue.wake();
    }

    /// The same for a listener that no longer exists, or has no HTTP/3: its connections end after their current
    /// requests.
    pub(crate) fn remove(&self) {
        self.index.set(REMOVED_LISTENER);
        self.close();
    }
}

fn state_machine(secrets: &Http3Secrets, cipher: &IdCipher, owner: Owner) -> quinn_proto::Endpoint {
    let cipher = cipher.clone();
    let mut config = EndpointConfig::new(secrets.reset_key());
    config.cid_generator(move || Box::new(OwnedIds::new(cipher.clone(), owner)));
    // Every connection has its configuration from its accept; a first one is needed before.
    quinn_proto::Endpoint::new(Arc::new(config), None, true, None)
}

/// A message that the socket did not accept.
struct BlockedMessage {
    transmit: Transmit,
    bytes: Vec<u8>,
}

/// The task of an endpoint.
struct EndpointTask {
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
    /// Number of connections in their handshake.
    handshakes: Rc<Cell<usize>>,
    buffer: Option<ReceiveBuffer>,
    blocked: Option<BlockedMessage>,
    next_ping: Option<Instant>,
}

impl EndpointTask {
    /// Ready when the endpoint is closed and has no connection.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.endpoint.queue.watch(cx);
        for _ in 0..ROUNDS {
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

    /// Sets the timer.
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
                // Errors are those of earlier datagrams, such as an unreachable client.
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
        let event = self
            .proto
            .handle(now, remote, local, ecn, bytes, &mut response);
        match event {
            None => {}
            Some(DatagramEvent::Response(transmit)) => self.send(cx, transmit, response),
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(connection) = self.connections.get(&handle) {
                    connection.quic().handle_event(event);
                    connection.enqueue();
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(incoming, cx),
        }
    }

    fn accept(&mut self, incoming: Incoming, cx: &mut Context<'_>) {
        let now = self.clock.now();
        let listening = self.listening();
        let (message, accepted) = accept::accept(&mut self.proto, &listening, incoming, now);
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

    /// The state by which a new connection is decided on.
    fn listening(&self) -> Listening {
        let endpoint = &self.endpoint;
        Listening {
            worker: Rc::clone(&self.worker),
            index: Rc::clone(&endpoint.index),
            settings: Rc::clone(&endpoint.settings.borrow()),
            http3: Rc::clone(&endpoint.http3.borrow()),
            socket: self.socket(),
            is_closed: endpoint.is_closed.get(),
            handshakes: Rc::clone(&self.handshakes),
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
            if let Some(connection) = self.connections.get(&ConnectionHandle(handle)) {
                connection.timeout.set(None);
                connection.quic().handle_timeout(now);
                connection.enqueue();
            }
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
            self.handle(&connection, cx);
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

    /// A socket to send from: all have the same address.
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

    /// Sends the message that the socket did not accept. False if it still does not.
    fn send_blocked(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(BlockedMessage { transmit, bytes }) = self.blocked.take() {
            self.send(cx, transmit, bytes);
        }
        self.blocked.is_none()
    }
}
