//! Takes connections from one listening socket.

use crate::attend::{Caller, Place, attend};
use crate::patience::Patience;
use crate::settings::ConnectionSettings;
use crate::turn_away;
use proxy_clock::{Deadline, Timer};
use proxy_pipeline::{Peer, Worker};
use std::cell::{Cell, RefCell};
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// How long to wait when the process has no file descriptor left.
const REST: Duration = Duration::from_millis(50);

/// A listener as one worker serves it.
#[derive(Debug)]
pub(crate) struct Door {
    /// The listener's name.
    pub(crate) name: String,
    /// Position of the listener in the plan in force.
    pub(crate) index: Rc<Cell<usize>>,
    /// How its connections are treated from now on.
    pub(crate) settings: RefCell<Rc<ConnectionSettings>>,
    /// Told when no more connections are to be taken.
    pub(crate) closed: Notify,
    /// Connections that are being told that there are too many.
    pub(crate) turned_away: Cell<u32>,
}

/// Accepts until the door is closed, then whatever already waits, so that no client is reset.
pub(crate) async fn run(worker: Rc<Worker>, door: Rc<Door>, listener: TcpListener) {
    loop {
        tokio::select! {
            biased;
            () = door.closed.notified() => break,
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
    while let Some(Ok((stream, peer))) = accept_waiting(&listener).await {
        welcome(&worker, &door, stream, peer);
    }
}

/// Waits for file descriptors to come free.
async fn rest(worker: &Worker) {
    let deadline = Rc::<Deadline>::default();
    let _entry = worker.sweep.register(Rc::clone(&deadline));
    let patience = Patience {
        clock: &worker.clock,
        deadline: &deadline,
    };
    patience.within(Timer::Linger, REST, pending::<()>()).await;
}

/// A connection that waits already, if there is one.
async fn accept_waiting(listener: &TcpListener) -> Option<io::Result<(TcpStream, SocketAddr)>> {
    tokio::select! {
        biased;
        accepted = listener.accept() => Some(accepted),
        () = std::future::ready(()) => None,
    }
}

fn welcome(worker: &Rc<Worker>, door: &Rc<Door>, stream: TcpStream, peer: SocketAddr) {
    worker.cells.connections_accepted.add(1);
    let peer = greet(worker, door, peer);
    let worker = Rc::clone(worker);
    match worker.shared.connections.acquire() {
        Ok(permit) => {
            let settings = Rc::clone(&door.settings.borrow());
            let caller = Caller {
                place: Place::new(&worker, permit),
                listener: Rc::clone(&door.index),
                worker,
                settings,
                peer,
            };
            attend(caller, stream);
        }
        Err(full) => turn_away::start(worker, door, stream, peer, full),
    }
}

fn greet(worker: &Worker, door: &Door, peer: SocketAddr) -> Peer {
    let active = worker.active();
    let listener = active.plan.listeners().get(door.index.get());
    let trusted = listener.map_or(&[][..], |listener| &listener.trusted_proxies);
    let tls = door.settings.borrow().tls.is_some();
    Peer::new(peer.ip(), tls, trusted)
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
