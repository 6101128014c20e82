//! All clients of a load: opened, kept busy, and replaced when lost.

pub(crate) mod latency;

use crate::clients::latency::LatencyRecorder;
use crate::clock::Stopwatch;
use crate::command::{LoadProfile, Pacing, ResponseSize, Span};
use crate::connection::Connection;
use crate::connection::stream::Connector;
use crate::poller::{Owner, Poller};
use crate::request_error::RequestError;
use crate::script::Script;
use slab::Slab;
use std::io;
use std::ops::Range;
use std::time::Duration;

/// Maximum number of connections without a first response, so that no accept queue overflows.
const MAX_UNANSWERED: u32 = 32;
/// Maximum size of a captured response, in bytes.
const CAPTURE_BYTES: usize = 2 << 20;

/// The clients.
pub(crate) struct Clients<'a> {
    /// Recorded responses and failures.
    pub(crate) recorder: LatencyRecorder,
    /// Bytes of the responses, if the profile requests a capture.
    pub(crate) captured: Option<Vec<u8>>,
    profile: &'a LoadProfile,
    connector: Connector,
    script: Script,
    connections: Slab<Connection>,
    /// Idle connections, if requests are sent at a fixed rate.
    idle: Vec<usize>,
    /// Number of connections still to be opened.
    unopened: u32,
    /// Number of connections without a first response.
    unanswered: u32,
    /// Connections refused, or closed before a byte of their first response.
    pub(crate) refused: u32,
    /// Clients that ended because their connection was refused.
    ended: u32,
    paused: bool,
    started: u64,
    /// Time at which the next request is due.
    due: Option<Duration>,
    /// The measured time range, once it has begun, if the profile sets its length.
    measured: Option<Range<Duration>>,
    answered: Vec<Duration>,
}

impl<'a> Clients<'a> {
    /// Without connections.
    pub(crate) fn new(profile: &'a LoadProfile, user_agent: &str) -> io::Result<Self> {
        Ok(Self {
            recorder: LatencyRecorder::default(),
            captured: profile.capture.then(Vec::new),
            profile,
            connector: Connector::new(profile.port, profile.protocol)?,
            script: Script::new(profile, user_agent),
            connections: Slab::new(),
            idle: Vec::new(),
            unopened: profile.connections,
            unanswered: 0,
            refused: 0,
            ended: 0,
            paused: false,
            started: 0,
            due: None,
            measured: None,
            answered: Vec::new(),
        })
    }

    /// Returns true if every connection is open and has had a response.
    pub(crate) fn is_complete(&self) -> bool {
        self.profile.pacing == Pacing::Fresh || (self.unopened == 0 && self.unanswered == 0)
    }

    /// Stops or resumes sending requests.
    pub(crate) fn set_paused(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Returns true if every open connection is idle.
    pub(crate) fn is_settled(&self) -> bool {
        self.idle.len() as u64 == self.connections.len() as u64 * u64::from(self.profile.streams)
    }

    /// Begins measuring.
    pub(crate) fn measure(&mut self, now: Duration) {
        self.recorder.reset();
        if let Span::Time(time) = self.profile.span {
            self.measured = Some(now..now + time);
        }
    }

    /// Returns true if the measured range has ended. At a fixed rate it ends when every request due
    /// in it is answered, because late ones matter most.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        let Some(measured) = &self.measured else {
            return false;
        };
        let settled = match self.profile.pacing {
            Pacing::PerSecond(_) => {
                self.due.is_some_and(|due| due >= measured.end) && self.all_idle()
            }
            Pacing::Closed | Pacing::Fresh | Pacing::Once => true,
        };
        now >= measured.end && settled
    }

    /// Returns true if no request remains to be sent.
    pub(crate) fn is_done(&self) -> bool {
        match self.profile.span {
            Span::Time(_) => false,
            Span::Requests(most) => self.recorder.settled >= most,
        }
    }

    /// Opens missing connections, and sends the requests that are due.
    pub(crate) fn send_requests(&mut self, poller: &Poller, now: Duration) -> io::Result<()> {
        let fresh = self.profile.pacing == Pacing::Fresh;
        while self.unopened > 0 && (fresh || self.unanswered < MAX_UNANSWERED) && self.may_start() {
            self.open(poller, now)?;
        }
        if let Pacing::PerSecond(rate) = self.profile.pacing
            && self.is_complete()
        {
            self.start_due(rate, poller, now)?;
        }
        Ok(())
    }

    /// Reads from and writes to the connection with this index, which is ready.
    pub(crate) fn handle_ready(
        &mut self,
        index: usize,
        readable: bool,
        poller: &Poller,
        scratch: &mut [u8],
        clock: Stopwatch,
    ) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(index) else {
            return Ok(());
        };
        if readable {
            let first = connection.answered == 0;
            let answer = self.profile.request.answer;
            let body_bytes = (answer != ResponseSize::Any).then(|| answer.body_bytes());
            let taken = connection.read(scratch, body_bytes, &mut self.answered);
            let opened = connection.opened;
            let now = clock.elapsed();
            let taken = match taken {
                Ok(taken) => taken,
                Err(fault) => {
                    self.replace_failed(index, &fault);
                    return Ok(());
                }
            };
            self.capture(scratch.get(..taken.bytes).unwrap_or_default());
            if first && !self.answered.is_empty() {
                self.unanswered -= 1;
            }
            if taken.ended {
                self.handle_close(index, opened, now);
                return Ok(());
            }
            self.record_responses(index, now);
        }
        self.send(index, poller)
    }

    /// Returns true if every request has its response.
    fn all_idle(&self) -> bool {
        let profile = self.profile;
        self.idle.len() as u64 == u64::from(profile.connections) * u64::from(profile.streams)
    }

    /// Returns true if every client has ended because its connection was refused.
    pub(crate) fn all_refused(&self) -> bool {
        self.ended == self.profile.connections
    }

    /// Returns true if a request due at this time belongs to the measured span.
    fn counts(&self, due: Duration) -> bool {
        self.measured
            .as_ref()
            .is_none_or(|span| span.contains(&due))
    }

    fn may_start(&self) -> bool {
        if self.paused {
            return false;
        }
        match self.profile.span {
            Span::Time(_) => true,
            Span::Requests(most) => self.started < most,
        }
    }

    fn open(&mut self, poller: &Poller, now: Duration) -> io::Result<()> {
        let stream = match self.connector.connect() {
            Ok(stream) => stream,
            Err(cause)
                if self.profile.may_close && cause.kind() == io::ErrorKind::ConnectionRefused =>
            {
                self.unopened -= 1;
                self.refused += 1;
                self.ended += 1;
                return Ok(());
            }
            Err(cause) => return Err(cause),
        };
        let entry = self.connections.vacant_entry();
        let key = entry.key();
        poller.watch(&stream, Owner::Client(key))?;
        entry.insert(Connection::new(stream, self.profile.protocol, now));
        self.unopened -= 1;
        self.unanswered += 1;
        for _ in 0..self.profile.streams {
            self.start_request(key, now);
        }
        self.send(key, poller)
    }

    fn start_request(&mut self, index: usize, since: Duration) {
        if !self.may_start() {
            return;
        }
        if let Some(connection) = self.connections.get_mut(index) {
            connection.queue_request(self.script.next(), since);
            self.started += 1;
        }
    }

    /// Sends due requests on idle connections. A request without one waits, and its time runs from when it was due.
    fn start_due(&mut self, rate: u32, poller: &Poller, now: Duration) -> io::Result<()> {
        let gap = Duration::from_secs(1) / rate.max(1);
        let mut due = self.due.unwrap_or(now);
        let end = self
            .measured
            .as_ref()
            .map_or(Duration::MAX, |span| span.end);
        while due <= now && due < end && !self.paused {
            let Some(index) = self.idle.pop() else {
                break;
            };
            self.start_request(index, due);
            self.send(index, poller)?;
            due += gap;
        }
        self.due = Some(due);
        Ok(())
    }

    /// Counts the responses just read and sends the requests that the pacing requires.
    fn record_responses(&mut self, index: usize, now: Duration) {
        let answered = std::mem::take(&mut self.answered);
        for since in &answered {
            match self.profile.pacing {
                Pacing::Closed => {
                    self.recorder.record(now.saturating_sub(*since));
                    self.start_request(index, now);
                }
                Pacing::PerSecond(_) => {
                    if self.counts(*since) {
                        self.recorder.record(now.saturating_sub(*since));
                    }
                    self.idle.push(index);
                }
                // Counted when the proxy has also closed the connection.
                Pacing::Fresh => {}
                Pacing::Once => self.recorder.record(now.saturating_sub(*since)),
            }
        }
        self.answered = answered;
        self.answered.clear();
    }

    fn send(&mut self, index: usize, poller: &Poller) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(index) else {
            return Ok(());
        };
        match connection.send() {
            Ok(interest) if interest == connection.interest => {}
            Ok(interest) => {
                connection.interest = interest;
                poller.change(&connection.stream, Owner::Client(index), interest)?;
            }
            Err(fault) => self.replace_failed(index, &fault),
        }
        Ok(())
    }

    /// Handles a connection closed by the proxy, expectedly or not.
    fn handle_close(&mut self, index: usize, opened: Duration, now: Duration) {
        if self.replace_closed(index) {
            return;
        }
        let answered = self.connections.get(index).is_some_and(|c| c.answered > 0);
        if self.profile.pacing != Pacing::Fresh || !answered {
            return self.replace_failed(index, &RequestError::Closed);
        }
        self.answered.clear();
        self.connections.remove(index);
        self.unopened += 1;
        self.recorder.record(now.saturating_sub(opened));
    }

    /// Replaces a connection that the server closed between two responses, if that is allowed. A
    /// request in flight on it is sent again on the next one.
    fn replace_closed(&mut self, index: usize) -> bool {
        let connection = self.connections.get(index);
        if !self.profile.may_close || !connection.is_some_and(Connection::is_between_responses) {
            return false;
        }
        if connection.is_some_and(|connection| connection.answered == 0) {
            self.unanswered -= 1;
            self.refused += 1;
        }
        self.answered.clear();
        self.connections.remove(index);
        self.idle.retain(|idle| *idle != index);
        self.unopened += 1;
        true
    }

    /// Drops a failed connection, which will be replaced.
    fn replace_failed(&mut self, index: usize, fault: &RequestError) {
        if matches!(fault, RequestError::Broken(_)) && self.replace_closed(index) {
            return;
        }
        self.answered.clear();
        let lost = self.connections.remove(index);
        self.idle.retain(|idle| *idle != index);
        if lost.answered == 0 {
            self.unanswered -= 1;
        }
        self.unopened += 1;
        self.recorder.fail(lost.lost_requests(), fault);
    }

    fn capture(&mut self, bytes: &[u8]) {
        if let Some(captured) = &mut self.captured
            && captured.len() + bytes.len() <= CAPTURE_BYTES
        {
            captured.extend_from_slice(bytes);
        }
    }
}
