//! Accepting of connections from listening sockets.

use crate::connection::client_socket::ClientSocket;
use crate::connection::limit_problem::limit_problem;
use crate::connection::overload::{self, Rejected, Rejections};
use crate::connection::ready_connection::ConnectionGuard;
use crate::connection::settings::ConnectionSettings;
use crate::connection::timeout::ConnectionDeadline;
use crate::worker::essential_tasks::EssentialTasks;
use crate::worker::negotiate::{Accepted, start};
use proxy_clock::{Deadline, Tick, Timer};
use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::{ClientKey, ClientPermit, Permit};
use proxy_pipeline::{Peer, Worker};
use rustix::io::Errno;
use socket2::Socket;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Notify;

/// Delay before the next accept when the process has no file descriptor left.
const DESCRIPTOR_RETRY_DELAY: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct WorkerListener {
    pub(crate) name: String,
    /// Index of the listener in the active plan.
    pub(crate) index: Rc<Cell<usize>>,
    /// Settings of connections accepted from now on.
    pub(crate) settings: RefCell<Rc<ConnectionSettings>>,
    rejections: Rc<Rejections>,
    /// Accept loops by the index of their socket.
    accept_loops: RefCell<BTreeMap<usize, Rc<AcceptLoop>>>,
}

/// The accept loop of one socket.
#[derive(Debug, Default)]
struct AcceptLoop {
    /// Notified when the loop is to end.
    ended: Notify,
    /// Another worker or process accepts from the socket, and gets the connections that wait in it.
    replaced: Cell<bool>,
}

impl WorkerListener {
    pub(crate) fn new(name: &str, settings: &Rc<ConnectionSettings>) -> Self {
        Self {
            name: name.to_owned(),
            index: Rc::new(Cell::new(0)),
            settings: RefCell::new(Rc::clone(settings)),
            rejections: Rc::default(),
            accept_loops: RefCell::default(),
        }
    }

    /// Applies `settings` to connections accepted from now on, and retires connections accepted
    /// under incompatible ones: idle HTTP/1.x ones close at `close_idle_at`. Returns whether any
    /// may have been retired.
    pub(crate) fn update_settings(
        &self,
        settings: &Rc<ConnectionSettings>,
        close_idle_at: Tick,
    ) -> bool {
        let mut held = self.settings.borrow_mut();
        if settings.suit_connections_of(&held) {
            return false;
        }
        held.retire(settings, close_idle_at);
        *held = Rc::clone(settings);
        true
    }

    /// Starts an accept loop for `socket`.
    pub(crate) fn open(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        tasks: &mut EssentialTasks,
        place: usize,
        socket: Socket,
    ) {
        let socket = match ListeningSocket::new(socket) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::error!(%error, "cannot use a listening socket");
                return;
            }
        };
        let accept_loop = Rc::<AcceptLoop>::default();
        self.accept_loops
            .borrow_mut()
            .insert(place, Rc::clone(&accept_loop));
        let accepting = run(Rc::clone(worker), Rc::clone(self), socket, accept_loop);
        tasks.spawn(accepting);
    }

    /// Ends all accept loops; the sockets are closed.
    pub(crate) fn close(&self) {
        for accept_loop in std::mem::take(&mut *self.accept_loops.borrow_mut()).into_values() {
            accept_loop.ended.notify_one();
        }
    }

    /// Stops accepting on every socket not in `places`; another worker or process accepts from
    /// them.
    pub(crate) fn keep_only(&self, places: &[usize]) {
        self.accept_loops.borrow_mut().retain(|place, accept_loop| {
            let stays = places.contains(place);
            if !stays {
                accept_loop.replaced.set(true);
                accept_loop.ended.notify_one();
            }
            stays
        });
    }
}

/// A [`Socket`] registered with the runtime.
#[derive(Debug)]
enum ListeningSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl ListeningSocket {
    fn new(socket: Socket) -> io::Result<Self> {
        if socket.local_addr()?.is_unix() {
            return UnixListener::from_std(socket.into()).map(Self::Unix);
        }
        TcpListener::from_std(socket.into()).map(Self::Tcp)
    }

    /// The next connection, with the address of its client; `None` for one at a Unix socket.
    async fn accept(&self) -> io::Result<(ClientSocket, Option<SocketAddr>)> {
        match self {
            Self::Tcp(socket) => {
                let (stream, peer) = socket.accept().await?;
                Ok((ClientSocket::Tcp(stream), Some(peer)))
            }
            Self::Unix(socket) => {
                let (stream, _) = socket.accept().await?;
                Ok((ClientSocket::Unix(stream), None))
            }
        }
    }
}

/// Accepts connections until its end is signalled. Connections that already wait are then accepted
/// too, so that no client is reset, unless another process accepts from the socket.
async fn run(
    worker: Rc<Worker>,
    listener: Rc<WorkerListener>,
    socket: ListeningSocket,
    accept_loop: Rc<AcceptLoop>,
) {
    loop {
        tokio::select! {
            biased;
            () = accept_loop.ended.notified() => break,
            accepted = socket.accept() => match accepted {
                Ok((stream, peer)) => admit(&worker, &listener, stream, peer),
                Err(error) if is_transient(&error) => {}
                Err(error) => {
                    tracing::error!(%error, "cannot accept connections");
                    if is_shortage(&error) {
                        worker.free_descriptors();
                    }
                    wait_for_descriptors(&worker).await;
                }
            },
        }
    }
    if accept_loop.replaced.get() {
        return;
    }
    while let Some(Ok((stream, peer))) = accept_waiting(&socket).await {
        admit(&worker, &listener, stream, peer);
    }
}

/// Waits for free file descriptors.
async fn wait_for_descriptors(worker: &Worker) {
    let deadline = Rc::<Deadline>::default();
    let _entry = worker.timers.register(Rc::clone(&deadline));
    let timeout = ConnectionDeadline {
        clock: &worker.clock,
        deadline: &deadline,
    };
    timeout
        .within(Timer::Linger, DESCRIPTOR_RETRY_DELAY, pending::<()>())
        .await;
}

/// A connection that already waits, if there is one.
async fn accept_waiting(
    socket: &ListeningSocket,
) -> Option<io::Result<(ClientSocket, Option<SocketAddr>)>> {
    tokio::select! {
        biased;
        accepted = socket.accept() => Some(accepted),
        () = std::future::ready(()) => None,
    }
}

/// Starts to serve an accepted connection from `peer`, or refuses it if a limit is reached.
pub(crate) fn admit(
    worker: &Rc<Worker>,
    listener: &Rc<WorkerListener>,
    stream: ClientSocket,
    peer: Option<SocketAddr>,
) {
    worker.metrics.connections_accepted.add(1);
    let peer = peer_of(worker, listener, peer).with_local(stream.local_address());
    let worker = Rc::clone(worker);
    let settings = Rc::clone(&listener.settings.borrow());
    match take_permits(&worker, &settings, &peer) {
        Ok((permit, client)) => {
            let max_age = settings.terms.max_age;
            let ends_at = max_age.map_or(Tick::MAX, |age| worker.clock.after(age));
            let accepted = Accepted {
                guard: ConnectionGuard::new(&worker, permit, client, ends_at),
                ends_at,
                listener: Rc::clone(&listener.index),
                worker,
                settings,
                peer,
            };
            start(accepted, stream);
        }
        Err(problem) => {
            let rejected = Rejected {
                settings: Rc::clone(&listener.settings.borrow()),
                listener: Rc::clone(&listener.index),
                peer,
                problem,
            };
            overload::reject(worker, &listener.rejections, rejected, stream);
        }
    }
}

/// Takes the permits of a new connection and of its client. No client permit for a connection from
/// a proxy, which connects for many clients: a trusted peer, or a sender of the PROXY protocol.
fn take_permits(
    worker: &Worker,
    settings: &ConnectionSettings,
    peer: &Peer,
) -> Result<(Permit, Option<ClientPermit>), Problem> {
    if !worker.shared.memory.admit_connection() {
        return Err(Problem::new(Reason::MemoryPressure, Detail::None));
    }
    let permit = worker.shared.connections.acquire();
    let permit = permit.map_err(|full| limit_problem(Reason::ConnectionLimit, full))?;
    if settings.proxy_protocol || peer.trusted.get() {
        return Ok((permit, None));
    }
    let client = worker.shared.clients.acquire(ClientKey::from(peer.ip));
    let client = client.map_err(|full| limit_problem(Reason::ClientConnectionLimit, full))?;
    Ok((permit, Some(client)))
}

fn peer_of(worker: &Worker, listener: &WorkerListener, peer: Option<SocketAddr>) -> Peer {
    let active = worker.active();
    let plan = active.plan.listeners().get(listener.index.get());
    let trusted = plan.map_or(&[][..], |plan| &plan.trusted_proxies);
    let tls = listener.settings.borrow().tls.is_some();
    match peer {
        Some(peer) => Peer::new(peer.ip(), tls, trusted).with_port(peer.port()),
        // A client of a Unix socket is on this host.
        None => Peer::new(Ipv4Addr::LOCALHOST.into(), tls, trusted),
    }
}

/// Returns true if the process, or the system, has no file descriptor left.
fn is_shortage(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE]
        .map(|errno| Some(errno.raw_os_error()))
        .contains(&errno)
}

/// Errors of the connection to be accepted, not of the listener. See accept(2).
fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
