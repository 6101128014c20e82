//! HTTP/3 on one connection: state shared by its driver and its streams.

use super::connection::Connection;
use super::settings::Http3Settings;
use crate::connection::settings::ConnectionSettings;
use proxy_clock::{Clock, Deadline, Timer};
use proxy_errors::{Detail, Problem, Reason};
use proxy_http3::{ErrorCode, FloodKind, FloodMeter, Http3Error, Scope};
use proxy_pipeline::{ConnectionInfo, Worker, log_connection_problem};
use quinn_proto::StreamId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// Time that a client has to receive the final GOAWAY and the ends of its responses.
const GOAWAY_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// State of one HTTP/3 connection.
pub(super) struct Session {
    pub(super) worker: Rc<Worker>,
    pub(super) connection: Rc<Connection>,
    pub(super) client: Rc<ConnectionInfo>,
    pub(super) deadline: Rc<Deadline>,
    pub(super) clock: Rc<Clock>,
    pub(super) settings: Rc<ConnectionSettings>,
    pub(super) http3: Rc<Http3Settings>,
    meter: RefCell<FloodMeter>,
    /// The final GOAWAY is sent.
    pub(super) leaving: Cell<bool>,
    streams: Cell<u32>,
    /// Number of bytes in incomplete header sections of all streams.
    section_bytes: Cell<usize>,
}

/// A stream's registration in its session, ended on drop.
pub(super) struct OpenStream(pub(super) Rc<Session>);

impl Session {
    pub(super) fn new(
        worker: &Rc<Worker>,
        connection: &Rc<Connection>,
        client: Rc<ConnectionInfo>,
        settings: &Rc<ConnectionSettings>,
        http3: &Rc<Http3Settings>,
    ) -> Self {
        let now = u64::from(worker.clock.now().0);
        Self {
            worker: Rc::clone(worker),
            deadline: Rc::clone(&connection.guard().deadline),
            connection: Rc::clone(connection),
            client,
            clock: Rc::clone(&worker.clock),
            meter: RefCell::new(FloodMeter::new(settings.max_stream_resets, now)),
            settings: Rc::clone(settings),
            http3: Rc::clone(http3),
            leaving: Cell::new(false),
            streams: Cell::new(0),
            section_bytes: Cell::new(0),
        }
    }

    /// Registers a request stream.
    pub(super) fn open_stream(self: &Rc<Self>) -> OpenStream {
        self.streams.set(self.streams.get() + 1);
        OpenStream(Rc::clone(self))
    }

    /// Returns true if no request stream is open.
    pub(super) fn is_idle(&self) -> bool {
        self.streams.get() == 0
    }

    /// Records that a stream holds `now` bytes of an incomplete header section instead of `before`.
    /// Returns false if the connection's streams hold too many in total: QUIC's windows do not
    /// bound data that was read.
    pub(super) fn hold_section(&self, before: usize, now: usize) -> bool {
        let held = self.section_bytes.get().saturating_sub(before) + now;
        self.section_bytes.set(held);
        held <= self.http3.max_held_section_bytes || now == 0
    }

    /// Takes `count` events from the client's allowance. Ends the connection if it is exhausted.
    pub(super) fn charge(&self, kind: FloodKind, count: u32) {
        if count == 0 {
            return;
        }
        let now = u64::from(self.clock.now().0);
        let mut meter = self.meter.borrow_mut();
        meter.earn(self.client.take_earned_resets());
        let taken = meter.take(kind, count, now);
        drop(meter);
        if let Err(flood) = taken {
            let problem = Problem::new(Reason::Http3Flood, Detail::text(flood.to_string()));
            self.fail(
                &problem,
                ErrorCode::EXCESSIVE_LOAD,
                "too many frames or streams",
            );
        }
    }

    /// Ends the stream or the connection for `error`. The caller records the problem of a stream's
    /// request.
    pub(super) fn reject(&self, id: StreamId, error: Http3Error) {
        match error.scope {
            Scope::Connection => self.fail(&protocol_problem(error), error.code, error.rule),
            Scope::Stream => {
                self.connection.stop(id, error.code);
                self.connection.reset(id, error.code);
                self.charge(FloodKind::MalformedRequest, 1);
            }
        }
    }

    /// Logs `problem` and closes the connection, once.
    pub(super) fn fail(&self, problem: &Problem, code: ErrorCode, reason: &'static str) {
        if self.connection.is_lost() {
            return;
        }
        log_connection_problem(&self.worker, &self.client, problem);
        self.connection.close(code, reason);
    }

    /// Starts the timer for the connection's current wait, unless it runs already.
    pub(super) fn arm(&self) {
        let settings = self.settings.in_force();
        let (timer, time) = if self.leaving.get() && self.is_idle() {
            (Timer::Linger, GOAWAY_FLUSH_TIMEOUT)
        } else if !self.is_idle() {
            return self.deadline.stop();
        } else if self.client.requests.get() == 0 {
            (Timer::RequestHeader, settings.header_timeout)
        } else {
            (Timer::KeepAlive, settings.keep_alive_timeout)
        };
        if self.deadline.running() != Some(timer) {
            self.deadline.start(&self.clock, timer, time);
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let streams = self.0.streams.get().saturating_sub(1);
        self.0.streams.set(streams);
        if streams == 0 {
            // The connection's idle timer starts now.
            self.0.connection.wake_driver();
        }
    }
}

/// The problem of a client that violates HTTP/3.
pub(super) fn protocol_problem(error: Http3Error) -> Problem {
    let reason = if error.code == ErrorCode::EXCESSIVE_LOAD && error.scope == Scope::Stream {
        Reason::HeaderSizeLimit
    } else if error.code == ErrorCode::EXCESSIVE_LOAD {
        Reason::Http3Flood
    } else {
        Reason::Http3ProtocolError
    };
    Problem::new(reason, Detail::text(error.rule))
}
