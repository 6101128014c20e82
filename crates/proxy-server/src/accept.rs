//! Takes connections from listening sockets.

use crate::client_socket::ClientSocket;
use crate::negotiate::{Accepted, Place, negotiate};
use crate::overload;
use crate::settings::ConnectionSettings;
use crate::timeout::ConnectionDeadline;
use proxy_clock::{Deadline, Tick, Timer};
use proxy_pipeline::{Peer, Worker};
use socket2::Socket;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Notify;

/// How long to wait when the process has no file descriptor left.
const DESCRIPTOR_RETRY_DELAY: Duration = Duration::from_millis(50);

/// A listener as one worker serves it.
#[derive(Debug)]
pub(crate) struct WorkerListener {
    /// The listener's name.
    pub(crate) name: String,
    /// Position of the listener in the plan in force.
    pub(crate) index: Rc<Cell<usize>>,
    /// How its connections are treated from now on.
    pub(crate) settings: RefCell<Rc<ConnectionSettings>>,
    /// Connections that are being told that there are too many.
    pub(crate) turned_away: Cell<u32>,
    /// Those that take connections, by the place of their socket.
    takers: RefCell<BTreeMap<usize, Rc<AcceptLoop>>>,
}

/// What takes connections from one socket.
#[derive(Debug, Default)]
struct AcceptLoop {
    /// Told when no more connections are to be taken.
    ended: Notify,
    /// Whether somebody else takes them from now on.
    replaced: Cell<bool>,
}

impl WorkerListener {
    pub(crate) fn new(name: &str, settings: &Rc<ConnectionSettings>) -> Self {
        Self {
            name: name.to_owned(),
            index: Rc::new(Cell::new(0)),
            settings: RefCell::new(Rc::clone(settings)),
            turned_away: Cell::new(0),
            takers: RefCell::default(),
        }
    }

    /// Has connections treated as `settings` say from now on, and retires those that were accepted under
    /// others. Whether any may have been.
    pub(crate) fn settle(&self, settings: &Rc<ConnectionSettings>) -> bool {
        let mut held = self.settings.borrow_mut();
        if settings.suit_connections_of(&held) {
            return false;
        }
        held.retire(settings);
        *held = Rc::clone(settings);
        true
    }

    /// Takes connections from `socket`, too.
    pub(crate) fn open(self: &Rc<Self>, worker: &Rc<Worker>, place: usize, socket: Socket) {
        let listener = match Listener::new(socket) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::error!(%error, "cannot use a listening socket");
                return;
            }
        };
        let taker = Rc::<AcceptLoop>::default();
        self.takers.borrow_mut().insert(place, Rc::clone(&taker));
        let taking = run(Rc::clone(worker), Rc::clone(self), listener, taker);
        tokio::task::spawn_local(taking);
    }

    /// Takes no more connections: nobody does.
    pub(crate) fn close(&self) {
        for taker in std::mem::take(&mut *self.takers.borrow_mut()).into_values() {
            taker.ended.notify_one();
        }
    }

    /// Leaves all sockets but those at `places` to others, who take connections from them already, or
    /// will.
    pub(crate) fn leave_but(&self, places: &[usize]) {
        self.takers.borrow_mut().retain(|place, taker| {
            let stays = places.contains(place);
            if !stays {
                taker.replaced.set(true);
                taker.ended.notify_one();
            }
            stays
        });
    }
}

/// A [`Socket`] that the runtime watches.
#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    fn new(socket: Socket) -> io::Result<Self> {
        if socket.local_addr()?.is_unix() {
            return UnixListener::from_std(socket.into()).map(Self::Unix);
        }
        TcpListener::from_std(socket.into()).map(Self::Tcp)
    }

    async fn accept(&self) -> io::Result<(ClientSocket, IpAddr)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok((ClientSocket::Tcp(stream), peer.ip()))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                // Whoever calls by a file is on this host.
                Ok((ClientSocket::Unix(stream), Ipv4Addr::LOCALHOST.into()))
            }
        }
    }
}

/// Accepts until it is told to end, then whatever already waits, so that no client is reset; unless
/// somebody else does.
async fn run(
    worker: Rc<Worker>,
    door: Rc<WorkerListener>,
    listener: Listener,
    taker: Rc<AcceptLoop>,
) {
    loop {
        tokio::select! {
            biased;
            () = taker.ended.notified() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => welcome(&worker, &door, stream, peer),
                Err(error) if is_passing(&error) => {}
                Err(error) => {
                    tracing::error!(%error, "cannot accept connections");
                    rest(&worker).await;
                }
            },
        }
    }
    if taker.replaced.get() {
        return;
    }
    while let Some(Ok((stream, peer))) = accept_waiting(&listener).await {
        welcome(&worker, &door, stream, peer);
    }
}

/// Waits for file descriptors to come free.
async fn rest(worker: &Worker) {
    let deadline = Rc::<Deadline>::default();
    let _entry = worker.sweep.register(Rc::clone(&deadline));
    let patience = ConnectionDeadline {
        clock: &worker.clock,
        deadline: &deadline,
    };
    patience
        .within(Timer::Linger, DESCRIPTOR_RETRY_DELAY, pending::<()>())
        .await;
}

/// A connection that waits already, if there is one.
async fn accept_waiting(listener: &Listener) -> Option<io::Result<(ClientSocket, IpAddr)>> {
    tokio::select! {
        biased;
        accepted = listener.accept() => Some(accepted),
        () = std::future::ready(()) => None,
    }
}

fn welcome(worker: &Rc<Worker>, door: &Rc<WorkerListener>, stream: ClientSocket, peer: IpAddr) {
    worker.cells.connections_accepted.add(1);
    let peer = greet(worker, door, peer);
    let worker = Rc::clone(worker);
    match worker.shared.connections.acquire() {
        Ok(permit) => {
            let settings = Rc::clone(&door.settings.borrow());
            let max_age = settings.terms.max_age;
            let ends_at = max_age.map_or(Tick::MAX, |age| worker.clock.after(age));
            let caller = Accepted {
                place: Place::new(&worker, permit, ends_at),
                ends_at,
                listener: Rc::clone(&door.index),
                worker,
                settings,
                peer,
            };
            negotiate(caller, stream);
        }
        Err(full) => overload::start(worker, door, stream, peer, full),
    }
}

fn greet(worker: &Worker, door: &WorkerListener, peer: IpAddr) -> Peer {
    let active = worker.active();
    let listener = active.plan.listeners().get(door.index.get());
    let trusted = listener.map_or(&[][..], |listener| &listener.trusted_proxies);
    let tls = door.settings.borrow().tls.is_some();
    Peer::new(peer, tls, trusted)
}

/// Faults of the connection that was to be accepted, not of the listener. See accept(2).
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
