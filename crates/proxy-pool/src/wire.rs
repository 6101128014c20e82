//! What a connection's two owners, the reader of the socket and the sender of requests, both see.

use proxy_framing::{Fault, HeadLimits, RequestKind, ResponseGuard};
use std::cell::{Cell, RefCell};

/// What the next response answers, and what to remember of its request.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// How the response's framing is to be read.
    pub kind: RequestKind,
    /// Whether to keep the bytes of the request's head, to send them again on another connection
    /// should this one end without a word.
    pub replayable: bool,
}

/// The shared side of one connection.
#[derive(Debug)]
pub struct Wire {
    pub(crate) guard: RefCell<ResponseGuard>,
    pub(crate) fault: Cell<Option<Fault>>,
    pub(crate) sent: Cell<u64>,
    pub(crate) received: Cell<u64>,
    pub(crate) replayable: Cell<bool>,
    pub(crate) head: RefCell<Vec<u8>>,
    pub(crate) informational: RefCell<Vec<u8>>,
    pub(crate) interim: RefCell<Vec<u8>>,
    pub(crate) interim_over: Cell<bool>,
}

impl Wire {
    pub(crate) fn new(limits: HeadLimits) -> Self {
        Self {
            guard: RefCell::new(ResponseGuard::new(limits)),
            fault: Cell::new(None),
            sent: Cell::new(0),
            received: Cell::new(0),
            replayable: Cell::new(false),
            head: RefCell::default(),
            informational: RefCell::default(),
            interim: RefCell::default(),
            interim_over: Cell::new(false),
        }
    }

    /// Starts the next exchange: counters begin again.
    pub(crate) fn begin(&self, exchange: Exchange) {
        let Exchange { kind, replayable } = exchange;
        self.guard.borrow_mut().expect(kind);
        self.sent.set(0);
        self.received.set(0);
        self.replayable.set(replayable);
        self.head.borrow_mut().clear();
        self.interim_over.set(false);
    }

    /// Bytes of the current exchange given to the socket.
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// Bytes of the current exchange read from the socket.
    pub fn received(&self) -> u64 {
        self.received.get()
    }

    /// The heads of 1xx responses that came since the last call, as they came; empty nearly always.
    pub fn take_informational(&self) -> Vec<u8> {
        if self.informational.borrow().is_empty() {
            return Vec::new();
        }
        self.informational.take()
    }

    /// The bytes of the request's head, when it was replayable.
    pub(crate) fn take_head(&self) -> Vec<u8> {
        self.head.take()
    }
}
