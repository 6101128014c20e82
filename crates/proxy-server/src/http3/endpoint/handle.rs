//! The worker's handle of an endpoint: its sockets and settings, and its end.

use crate::connection::settings::ConnectionSettings;
use crate::http3::connection::ReadyQueue;
use crate::http3::settings::Http3Settings;
use crate::http3::socket::DatagramSocket;
use proxy_pipeline::REMOVED_LISTENER;
use socket2::Socket;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::sync::Notify;

/// The worker's handle of an endpoint.
pub(crate) struct Endpoint {
    /// Index of the listener in the active plan.
    pub(crate) index: Rc<Cell<usize>>,
    pub(super) settings: RefCell<Rc<ConnectionSettings>>,
    pub(super) http3: RefCell<Rc<Http3Settings>>,
    pub(super) sockets: RefCell<BTreeMap<usize, OpenSocket>>,
    pub(super) is_closed: Cell<bool>,
    /// Every connection ends now.
    pub(super) is_cut: Cell<bool>,
    /// Notified at the end of its task.
    pub(super) ended: Notify,
    pub(super) queue: Rc<ReadyQueue>,
}

#[derive(Clone)]
pub(super) struct OpenSocket {
    pub(super) socket: Rc<DatagramSocket>,
    /// The endpoint receives from the socket; otherwise another worker or process does.
    pub(super) is_read: bool,
}

impl Endpoint {
    /// An endpoint without sockets.
    pub(super) fn new(settings: Rc<ConnectionSettings>, http3: Http3Settings) -> Rc<Self> {
        Rc::new(Self {
            index: Rc::default(),
            settings: RefCell::new(settings),
            http3: RefCell::new(Rc::new(http3)),
            sockets: RefCell::default(),
            is_closed: Cell::new(false),
            is_cut: Cell::new(false),
            ended: Notify::new(),
            queue: Rc::default(),
        })
    }

    /// Applies settings to connections accepted from now on.
    pub(crate) fn update(&self, settings: &Rc<ConnectionSettings>, http3: Http3Settings) {
        self.settings.replace(Rc::clone(settings));
        self.http3.replace(Rc::new(http3));
    }

    /// Adds a socket for receiving and sending; `place` is its index in the listener.
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

    /// Stops receiving from every socket not in `places`; another worker or process does. The other
    /// sockets are still used for sending, as long as there are connections.
    pub(crate) fn keep_only(&self, places: &[usize]) {
        for (place, socket) in &mut *self.sockets.borrow_mut() {
            socket.is_read = places.contains(place);
        }
        self.queue.wake();
    }

    /// Replaces this endpoint's sockets with duplicates of the sockets of `other`, if both have the
    /// same address: the kernel would send a share of new clients' datagrams to sockets that stay
    /// open. `other` forwards datagrams of this endpoint's connections.
    pub(crate) fn leave_sockets_to(&self, other: &Self) {
        let address = self.address();
        if address.is_none() || other.address() != address {
            return;
        }
        let others = other.sockets.borrow();
        let duplicates = others.iter().map(|(place, open)| {
            let socket = OpenSocket {
                socket: Rc::new(open.socket.duplicate()?),
                is_read: false,
            };
            Ok((*place, socket))
        });
        match duplicates.collect::<io::Result<_>>() {
            Ok(duplicates) => *self.sockets.borrow_mut() = duplicates,
            Err(error) => {
                tracing::error!(%error, "sockets for datagrams are not shared");
                self.keep_only(&[]);
            }
        }
        self.queue.wake();
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

    /// Ends every connection, with a notice to its client, and the endpoint.
    pub(crate) async fn cut(&self) {
        self.is_cut.set(true);
        self.close();
        self.ended.notified().await;
    }

    /// Detaches a listener that no longer exists, or has no HTTP/3: its connections end after their
    /// current requests.
    pub(crate) fn remove(&self) {
        self.index.set(REMOVED_LISTENER);
        self.close();
    }
}
