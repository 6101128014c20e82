//! The state of one client connection that its socket, its HTTP parser and its deadlines share.

use crate::patience::Patience;
use crate::settings::ConnectionSettings;
use bytes::Bytes;
use proxy_clock::{Clock, Deadline, Timer};
use proxy_framing::RequestGuard;
use proxy_pipeline::Client;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// How long a connection may keep its buffers while nothing happens on it.
pub(crate) const RESTLESS: Duration = Duration::from_secs(2);

/// One client connection.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) client: Rc<Client>,
    pub(crate) deadline: Rc<Deadline>,
    pub(crate) clock: Rc<Clock>,
    pub(crate) guard: RefCell<RequestGuard>,
    /// Bytes behind a request that may switch protocols: HTTP or not, nobody knows yet.
    pub(crate) held: RefCell<Bytes>,
    pub(crate) undecided: Cell<bool>,
    pub(crate) eof: Cell<bool>,
    pub(crate) write_blocked: Cell<bool>,
    pub(crate) write_time: Duration,
    /// Requests that had begun when the timer that waits for the next one was started.
    waited_after: Cell<u64>,
}

impl Conn {
    pub(crate) fn new(
        client: Rc<Client>,
        clock: Rc<Clock>,
        deadline: Rc<Deadline>,
        settings: &ConnectionSettings,
    ) -> Self {
        Self {
            client,
            deadline,
            clock,
            guard: RefCell::new(RequestGuard::new(settings.limits)),
            held: RefCell::default(),
            undecided: Cell::new(false),
            eof: Cell::new(false),
            write_blocked: Cell::new(false),
            write_time: settings.write_time,
            waited_after: Cell::new(0),
        }
    }

    /// Its deadline, to wait by.
    pub(crate) fn patience(&self) -> Patience<'_> {
        Patience {
            clock: &self.clock,
            deadline: &self.deadline,
        }
    }

    /// Whether no request is being served, read or answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.client.in_flight.get() == 0
            && !self.write_blocked.get()
            && !self.undecided.get()
            && self.client.fault.get().is_none()
            && self.guard.borrow().between_messages()
    }

    /// Whether a request has begun since the timer that waits for one was started.
    pub(crate) fn has_moved(&self) -> bool {
        self.waited_after.get() != self.client.requests.get()
    }

    /// Starts the timer for what the connection waits for, unless it runs already.
    pub(crate) fn arm(&self, header_time: Duration, keep_alive_time: Duration) {
        if self.client.in_flight.get() > 0 || self.write_blocked.get() {
            return;
        }
        let (timer, time) = if self.guard.borrow().between_messages() {
            (Timer::KeepAlive, keep_alive_time)
        } else {
            (Timer::RequestHeader, header_time)
        };
        if self.has_moved() || self.deadline.running() != Some(timer) {
            self.waited_after.set(self.client.requests.get());
            self.deadline.start(&self.clock, timer, time);
        }
    }

    /// What tells whether hyper did something: requests begun, requests being served.
    pub(crate) fn progress(&self) -> (u64, u32) {
        (self.client.requests.get(), self.client.in_flight.get())
    }

    /// Whether something is to be decided that must wait until hyper has read all it was given.
    pub(crate) fn has_to_decide(&self) -> bool {
        self.undecided.get()
            || self.client.fault.get().is_some()
            || self.deadline.expired().is_some()
    }

    /// The client takes no bytes just now.
    pub(crate) fn blocked(&self) {
        if !self.write_blocked.replace(true) {
            let time = self.write_time;
            self.deadline.start(&self.clock, Timer::ResponseWrite, time);
        }
    }

    /// The client took bytes.
    pub(crate) fn unblocked(&self) {
        if self.write_blocked.replace(false)
            && self.deadline.running() == Some(Timer::ResponseWrite)
        {
            self.deadline.stop();
        }
    }
}
