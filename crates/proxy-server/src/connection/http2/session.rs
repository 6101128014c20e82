//! State shared by the connection, its socket and its streams.

use super::refused_streams::RefusedStreams;
use proxy_clock::{Clock, Deadline, MinDataRate, Tick, Timer};
use proxy_framing::h2::{Flood, FrameMeter};
use proxy_pipeline::ConnectionInfo;
use proxy_pool::UnsentFrames;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// Time that a client has to receive the final GOAWAY.
pub(super) const GOAWAY_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Lifetime of names in a client's table, in which each second's `Date` adds an entry. [RFC 7541
/// §4.4]
const HPACK_ENTRY_LIFETIME: Duration = Duration::from_secs(30);

/// Number of frames after which a connection reads no further input until other tasks of the worker were
/// polled. A client that sends thousands of tiny frames at once delays no other client by all of them.
pub(super) const MAX_TURN_FRAMES: usize = 64;

/// State of one HTTP/2 connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: Rc<ConnectionInfo>,
    pub(super) deadline: Rc<Deadline>,
    pub(super) clock: Rc<Clock>,
    pub(super) meter: RefCell<FrameMeter>,
    /// Streams ended by `h2` itself.
    pub(super) refused_streams: RefusedStreams,
    /// The flood limit that the client exceeded, if any.
    pub(super) flood: Cell<Option<Flood>>,
    /// A GOAWAY notice is due: the client should open another connection, and streams are still
    /// accepted here.
    pub(super) notice: Cell<bool>,
    /// The final GOAWAY is sent.
    pub(super) leaving: Cell<bool>,
    pub(super) ending: Cell<bool>,
    pub(super) write_timeout: Duration,
    /// Frames that may still be read in this turn of the connection's task.
    frames_left: Cell<usize>,
    /// Responses and tunnels that wait for the socket.
    pub(super) unsent: Rc<UnsentFrames>,
    /// Measures the client's read rate against the configured minimum.
    min_rate: MinDataRate,
    streams: Cell<u32>,
    /// Tick at which the client's table may have dropped names.
    names_expire_at: Cell<Tick>,
}

/// A stream's registration in its session, ended on drop.
#[derive(Debug)]
pub(super) struct OpenStream(pub(super) Rc<Session>);

impl Session {
    pub(super) fn new(
        client: Rc<ConnectionInfo>,
        deadline: Rc<Deadline>,
        clock: Rc<Clock>,
        meter: FrameMeter,
        write_timeout: Duration,
    ) -> Self {
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
            write_timeout,
            frames_left: Cell::new(MAX_TURN_FRAMES),
            unsent: Rc::default(),
            min_rate: MinDataRate::default(),
            streams: Cell::new(0),
            names_expire_at: Cell::default(),
        }
    }

    /// The input for `h2` instead of the client's `fresh` bytes; `None` if it is equal.
    pub(super) fn passes(&self, fresh: &[u8]) -> Result<Option<Vec<u8>>, Flood> {
        let mut meter = self.meter.borrow_mut();
        match self.client.take_earned_resets() {
            0 => {}
            count => meter.served(count),
        }
        meter.pass(fresh, self.clock.now().0)
    }

    /// Starts a turn of the connection's task.
    pub(super) fn begin_turn(&self) {
        self.frames_left.set(MAX_TURN_FRAMES);
    }

    /// Stops reading until the next turn.
    pub(super) fn end_turn(&self) {
        self.frames_left.set(0);
    }

    pub(super) fn is_turn_over(&self) -> bool {
        self.frames_left.get() == 0
    }

    /// Counts the frames read since the last call as part of this turn. Returns their number.
    pub(super) fn count_frames(&self) -> usize {
        let frames = self.meter.borrow_mut().take_count();
        let left = self.frames_left.get().saturating_sub(frames);
        self.frames_left.set(left);
        frames
    }

    /// Registers the stream with this id.
    pub(super) fn open_stream(self: &Rc<Self>, stream: u32) -> OpenStream {
        self.refused_streams.begin(stream);
        self.streams.set(self.streams.get() + 1);
        OpenStream(Rc::clone(self))
    }

    /// Returns true if no stream is open.
    pub(super) fn is_idle(&self) -> bool {
        self.streams.get() == 0
    }

    /// Returns true if names should be sent again, for the client to index.
    pub(super) fn indexes_names(&self) -> bool {
        let due = self.names_expire_at.get() <= self.clock.now();
        if due {
            self.names_expire_at
                .set(self.clock.after(HPACK_ENTRY_LIFETIME));
        }
        due
    }

    /// Starts the timer for the connection's current wait, unless it runs already: `header_timeout`
    /// for the head of a request, `keep_alive_timeout` between requests.
    pub(super) fn arm(&self, header_timeout: Duration, keep_alive_timeout: Duration) {
        if self.unsent.is_blocked() || self.ending.get() {
            return;
        }
        let begun = self.client.requests.get() > 0;
        let in_head = self.meter.borrow().in_head();
        let (timer, time) = if !in_head && !self.is_idle() {
            return self.deadline.stop();
        } else if in_head || !begun && !self.leaving.get() {
            (Timer::RequestHeader, header_timeout)
        } else if self.leaving.get() {
            (Timer::Linger, GOAWAY_FLUSH_TIMEOUT)
        } else {
            (Timer::KeepAlive, keep_alive_timeout)
        };
        if self.deadline.running() != Some(timer) {
            self.deadline.start(&self.clock, timer, time);
        }
    }

    /// Records that the socket accepts no bytes.
    pub(super) fn blocked(&self) {
        if self.unsent.block() {
            let time = self.write_timeout;
            let left = self.min_rate.wait(&self.clock, time);
            self.deadline
                .start_late(&self.clock, Timer::ResponseWrite, left, time);
        }
    }

    /// Records that the socket accepted `bytes`.
    pub(super) fn wrote(&self, bytes: usize) {
        self.meter.borrow_mut().wrote(bytes);
        if self.unblocked() {
            self.min_rate.moved(&self.clock, bytes);
        }
    }

    /// Records that the socket accepted everything.
    pub(super) fn flushed(&self) {
        self.unblocked();
        self.min_rate.begin();
        self.unsent.clear();
    }

    /// Returns false if the socket was not blocked.
    fn unblocked(&self) -> bool {
        let was = self.unsent.unblock();
        if was {
            self.deadline.stop();
        }
        was
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let streams = self.0.streams.get().saturating_sub(1);
        self.0.streams.set(streams);
        if streams == 0 {
            // The connection's idle timer starts now.
            self.0.deadline.wake();
        }
    }
}
