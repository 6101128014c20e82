//! What the pipeline shares with the connection that a request came on.

use crate::forwarding::Peer;
use proxy_clock::Deadline;
use proxy_pool::Tunnel;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// One client connection, as its requests see it.
#[derive(Debug)]
pub struct Client {
    /// Index of the listener in the plan under which the connection was accepted.
    pub listener: usize,
    /// Who is at the other end.
    pub peer: Peer,
    /// Whether one request at a time owns the connection: HTTP/1.x, not HTTP/2.
    pub exclusive: bool,
    /// Requests being served.
    pub in_flight: Cell<u32>,
    /// Requests begun so far.
    pub requests: Cell<u64>,
    /// Whether the connection must end with the response under way.
    pub close: Cell<bool>,
    interim: RefCell<Vec<u8>>,
    tunnel: RefCell<Option<Switched>>,
}

/// A connection that has left HTTP: the upstream's side, and what ends with it.
#[derive(Debug)]
pub struct Switched {
    /// The upstream's half.
    pub tunnel: Tunnel,
    /// The longest silence, both ways.
    pub idle: std::time::Duration,
    pub(crate) settle: crate::closing::Closing,
}

/// One request's way to its connection.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The connection.
    pub client: Rc<Client>,
    /// The one deadline that the request has at a time.
    pub deadline: Rc<Deadline>,
}

impl Client {
    /// A connection on which nothing has happened yet.
    #[must_use]
    pub fn new(listener: usize, peer: Peer, exclusive: bool) -> Self {
        Self {
            listener,
            peer,
            exclusive,
            in_flight: Cell::new(0),
            requests: Cell::new(0),
            close: Cell::new(false),
            interim: RefCell::default(),
            tunnel: RefCell::default(),
        }
    }

    /// Bytes to be written before the next response: heads of 1xx responses.
    #[inline]
    pub fn take_interim(&self) -> Option<Vec<u8>> {
        if self.interim.borrow().is_empty() {
            return None;
        }
        Some(self.interim.take())
    }

    /// Whether something waits to be written before the next response.
    #[inline]
    pub fn has_interim(&self) -> bool {
        !self.interim.borrow().is_empty()
    }

    pub(crate) fn announce(&self, heads: &[u8]) {
        self.interim.borrow_mut().extend_from_slice(heads);
    }

    /// The upstream's half, once the answer `101` has been written.
    pub fn take_tunnel(&self) -> Option<Switched> {
        self.tunnel.take()
    }

    pub(crate) fn switch(&self, switched: Switched) {
        self.tunnel.replace(Some(switched));
    }
}
