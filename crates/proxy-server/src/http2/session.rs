//! What the connection, its socket and its streams share.

use super::refused_streams::RefusedStreams;
use crate::settings::ConnectionSettings;
use proxy_clock::{Clock, Deadline, MinDataRate, Tick, Timer};
use proxy_framing::h2::{Flood, FrameMeter};
use proxy_pipeline::ConnectionInfo;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

/// How long a client that was told to leave may take to hear it.
pub(super) const GOAWAY_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// How long names stay in a client's table, which a new `Date` enters each second. [RFC 7541 §4.4]
const HPACK_ENTRY_LIFETIME: Duration = Duration::from_secs(30);

/// Bytes of all responses of a connection together that may wait for its socket.
const MOST_WAITING: usize = 256 * 1024;

/// One HTTP/2 connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: Rc<ConnectionInfo>,
    pub(super) deadline: Rc<Deadline>,
    pub(super) clock: Rc<Clock>,
    pub(super) meter: RefCell<FrameMeter>,
    /// Streams that `h2` ends by itself.
    pub(super) refused_streams: RefusedStreams,
    /// What the client overdid, if it did.
    pub(super) flood: Cell<Option<Flood>>,
    /// Whether the client is to be given notice: told to take another connection, and not yet that no
    /// more streams are taken here.
    pub(super) notice: Cell<bool>,
    /// Whether the client was told to open no more streams.
    pub(super) leaving: Cell<bool>,
    /// Whether nothing but the end is to come.
    pub(super) ending: Cell<bool>,
    pub(super) write_time: Duration,
    write_blocked: Cell<bool>,
    /// How fast the client takes what it is sent.
    min_rate: MinDataRate,
    /// Bytes of responses since the socket had taken everything.
    unsent_bytes: Cell<usize>,
    /// Streams that hold theirs back meanwhile.
    waiting_streams: RefCell<Vec<Waker>>,
    streams: Cell<u32>,
    /// When the client may have forgotten names that it was told.
    names_expire_at: Cell<Tick>,
}

/// A stream's place in its session.
#[derive(Debug)]
pub(super) struct OpenStream(pub(super) Rc<Session>);

impl Session {
    pub(super) fn new(
        client: Rc<ConnectionInfo>,
        deadline: Rc<Deadline>,
        clock: Rc<Clock>,
        settings: &ConnectionSettings,
    ) -> Self {
        let meter = FrameMeter::new(settings.max_stream_resets, settings.max_section_bytes);
        Self {
            client,
            deadline,
            clock,
            meter: RefCell::new(meter),
            refused_streams: RefusedStreams::default(),
            flood: Cell::new(None),
            notice: Cell::new(false),
            leaving: Cell::new(false),
            ending: Cell::new(false),
            write_time: settings.write_time,
            write_blocked: Cell::new(false),
            min_rate: MinDataRate::default(),
            unsent_bytes: Cell::new(0),
            waiting_streams: RefCell::default(),
            streams: Cell::new(0),
            names_expire_at: Cell::default(),
        }
    }

    /// What `h2` is to see in place of `fresh`, which the client sent, if not just that.
    pub(super) fn passes(&self, fresh: &[u8]) -> Result<Option<Vec<u8>>, Flood> {
        let mut meter = self.meter.borrow_mut();
        match self.client.take_earned_resets() {
            0 => {}
            count => meter.served(count),
        }
        meter.pass(fresh, self.clock.now().0)
    }

    /// A place for one more stream, which has this number.
    pub(super) fn open_stream(self: &Rc<Self>, stream: u32) -> OpenStream {
        self.refused_streams.begin(stream);
        self.streams.set(self.streams.get() + 1);
        OpenStream(Rc::clone(self))
    }

    /// Whether no stream is open.
    pub(super) fn is_idle(&self) -> bool {
        self.streams.get() == 0
    }

    /// Whether names are to be told again, for the client to remember.
    pub(super) fn indexes_names(&self) -> bool {
        let due = self.names_expire_at.get() <= self.clock.now();
        if due {
            self.names_expire_at
                .set(self.clock.after(HPACK_ENTRY_LIFETIME));
        }
        due
    }

    /// Starts the timer for what the connection waits for, unless it runs already.
    pub(super) fn arm(&self, settings: &ConnectionSettings) {
        if self.write_blocked.get() || self.ending.get() {
            return;
        }
        let begun = self.client.requests.get() > 0;
        let in_head = self.meter.borrow().in_head();
        let (timer, time) = if !in_head && !self.is_idle() {
            return self.deadline.stop();
        } else if in_head || !begun && !self.leaving.get() {
            (Timer::RequestHeader, settings.header_time)
        } else if self.leaving.get() {
            (Timer::Linger, GOAWAY_FLUSH_TIMEOUT)
        } else {
            (Timer::KeepAlive, settings.keep_alive_time)
        };
        if self.deadline.running() != Some(timer) {
            self.deadline.start(&self.clock, timer, time);
        }
    }

    /// The client takes no bytes just now.
    pub(super) fn blocked(&self) {
        if !self.write_blocked.replace(true) {
            let time = self.write_time;
            let left = self.min_rate.wait(&self.clock, time);
            self.deadline
                .start_late(&self.clock, Timer::ResponseWrite, (left, time));
        }
    }

    /// The client took `bytes`.
    pub(super) fn wrote(&self, bytes: usize) {
        self.meter.borrow_mut().wrote(bytes);
        if self.unblocked() {
            self.min_rate.moved(&self.clock, bytes);
        }
    }

    /// The client took all that was to be said.
    pub(super) fn flushed(&self) {
        self.unblocked();
        self.min_rate.begin();
        self.unsent_bytes.set(0);
        self.waiting_streams
            .borrow_mut()
            .drain(..)
            .for_each(Waker::wake);
    }

    /// False if it was not blocked.
    fn unblocked(&self) -> bool {
        let was = self.write_blocked.replace(false);
        if was {
            self.deadline.stop();
        }
        was
    }

    /// A stream has `bytes` on their way to the socket.
    #[inline]
    pub(super) fn add_unsent(&self, bytes: usize) {
        self.unsent_bytes
            .set(self.unsent_bytes.get().saturating_add(bytes));
    }

    /// Whether streams must hold back what they have to say until the socket has taken what was said
    /// before. Who asks is woken when that is so.
    #[inline]
    pub(super) fn is_full(&self, cx: &Context<'_>) -> bool {
        let full = self.write_blocked.get() || MOST_WAITING <= self.unsent_bytes.get();
        if full {
            let mut waiting_streams = self.waiting_streams.borrow_mut();
            if !waiting_streams
                .iter()
                .any(|known| known.will_wake(cx.waker()))
            {
                waiting_streams.push(cx.waker().clone());
            }
        }
        full
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let streams = self.0.streams.get().saturating_sub(1);
        self.0.streams.set(streams);
        if streams == 0 {
            // The connection begins to count how long it is idle.
            self.0.deadline.wake();
        }
    }
}
