//! All clients of a drive: opened, kept asking, and replaced when they are lost.

use super::connection::Connection;
use super::fault::Fault;
use super::poller::{Owner, Poller};
use super::script::Script;
use super::stream::Connector;
use super::tally::Tally;
use crate::bench::order::{Drive, Rhythm, Span};
use crate::clock::Stopwatch;
use slab::Slab;
use std::io;
use std::ops::Range;
use std::time::Duration;

/// Connections that may be without their first answer at once, so that no backlog overflows.
const UNPROVEN: u32 = 32;
/// Bytes of a captured answer.
const CAPTURE_BYTES: usize = 2 << 20;

/// The clients.
pub(super) struct Crowd<'a> {
    /// What they have seen.
    pub(super) tally: Tally,
    /// The answers' bytes, when the order wants them.
    pub(super) captured: Option<Vec<u8>>,
    drive: &'a Drive,
    connector: Connector,
    script: Script,
    connections: Slab<Connection>,
    /// Connections without a request, when the rhythm is the clock's.
    resting: Vec<usize>,
    /// Connections still to be opened.
    missing: u32,
    /// Connections without their first answer.
    unproven: u32,
    asked: u64,
    /// When the next request is due.
    due: Option<Duration>,
    /// The span that is measured, once it has begun, when the order sets its time.
    measured: Option<Range<Duration>>,
    answered: Vec<Duration>,
}

impl<'a> Crowd<'a> {
    /// Nobody yet.
    pub(super) fn new(drive: &'a Drive) -> io::Result<Self> {
        Ok(Self {
            tally: Tally::default(),
            captured: drive.capture.then(Vec::new),
            drive,
            connector: Connector::new(drive.port, drive.carrier)?,
            script: Script::new(&drive.asking, drive.carrier, drive.rhythm),
            connections: Slab::new(),
            resting: Vec::new(),
            missing: drive.connections,
            unproven: 0,
            asked: 0,
            due: None,
            measured: None,
            answered: Vec::new(),
        })
    }

    /// Whether every connection is open and has had an answer.
    pub(super) fn is_complete(&self) -> bool {
        self.drive.rhythm == Rhythm::Fresh || (self.missing == 0 && self.unproven == 0)
    }

    /// Counts from now on only.
    pub(super) fn measure(&mut self, now: Duration) {
        self.tally.start_afresh();
        if let Span::Time(time) = self.drive.span {
            self.measured = Some(now..now + time);
        }
    }

    /// Whether the measured span is over. At a fixed rate it is once every request that was due
    /// in it has been made and answered: those that come late are the ones that tell.
    pub(super) fn is_over(&self, now: Duration) -> bool {
        let Some(measured) = &self.measured else {
            return false;
        };
        let settled = match self.drive.rhythm {
            Rhythm::PerSecond(_) => {
                self.due.is_some_and(|due| due >= measured.end) && self.all_rest()
            }
            Rhythm::Closed | Rhythm::Fresh | Rhythm::Once => true,
        };
        now >= measured.end && settled
    }

    /// Whether nothing is left to ask.
    pub(super) fn is_done(&self) -> bool {
        match self.drive.span {
            Span::Time(_) => false,
            Span::Requests(most) => self.tally.settled >= most,
        }
    }

    /// Opens connections and makes the requests that are due.
    pub(super) fn turn(&mut self, poller: &Poller, now: Duration) -> io::Result<()> {
        let fresh = self.drive.rhythm == Rhythm::Fresh;
        while self.missing > 0 && (fresh || self.unproven < UNPROVEN) && self.may_ask() {
            self.open(poller, now)?;
        }
        if let Rhythm::PerSecond(rate) = self.drive.rhythm
            && self.is_complete()
        {
            self.ask_due(rate, poller, now)?;
        }
        Ok(())
    }

    /// Goes on with the connection at this place, which is ready.
    pub(super) fn serve(
        &mut self,
        place: usize,
        readable: bool,
        poller: &Poller,
        scratch: &mut [u8],
        clock: Stopwatch,
    ) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(place) else {
            return Ok(());
        };
        if readable {
            let first = connection.answered == 0;
            let body_bytes = self.drive.asking.answer.body_bytes();
            let taken = connection.take(scratch, body_bytes, &mut self.answered);
            let opened = connection.opened;
            let now = clock.elapsed();
            let taken = match taken {
                Ok(taken) => taken,
                Err(fault) => {
                    self.lose(place, &fault);
                    return Ok(());
                }
            };
            self.keep(scratch.get(..taken.bytes).unwrap_or_default());
            if first && !self.answered.is_empty() {
                self.unproven -= 1;
            }
            if taken.ended {
                self.end(place, opened, now);
                return Ok(());
            }
            self.go_on(place, now);
        }
        self.send(place, poller)
    }

    fn all_rest(&self) -> bool {
        let drive = self.drive;
        self.resting.len() as u64 == u64::from(drive.connections) * u64::from(drive.streams)
    }

    /// Whether a request that is due then, or was, belongs to what is measured.
    fn counts(&self, due: Duration) -> bool {
        self.measured
            .as_ref()
            .is_none_or(|span| span.contains(&due))
    }

    fn may_ask(&self) -> bool {
        match self.drive.span {
            Span::Time(_) => true,
            Span::Requests(most) => self.asked < most,
        }
    }

    fn open(&mut self, poller: &Poller, now: Duration) -> io::Result<()> {
        let stream = self.connector.connect()?;
        let place = self.connections.vacant_entry();
        let key = place.key();
        poller.watch(&stream, Owner::Client(key))?;
        place.insert(Connection::new(stream, self.drive.carrier, now));
        self.missing -= 1;
        self.unproven += 1;
        for _ in 0..self.drive.streams {
            self.ask(key, now);
        }
        self.send(key, poller)
    }

    fn ask(&mut self, place: usize, since: Duration) {
        if !self.may_ask() {
            return;
        }
        if let Some(connection) = self.connections.get_mut(place) {
            connection.ask(self.script.next(), since);
            self.asked += 1;
        }
    }

    /// Requests that find no resting connection wait for one, and their time runs.
    fn ask_due(&mut self, rate: u32, poller: &Poller, now: Duration) -> io::Result<()> {
        let gap = Duration::from_secs(1) / rate.max(1);
        let mut due = self.due.unwrap_or(now);
        let end = self
            .measured
            .as_ref()
            .map_or(Duration::MAX, |span| span.end);
        while due <= now && due < end {
            let Some(place) = self.resting.pop() else {
                break;
            };
            self.ask(place, due);
            self.send(place, poller)?;
            due += gap;
        }
        self.due = Some(due);
        Ok(())
    }

    /// Counts the answers just taken and follows them up with what the rhythm wants.
    fn go_on(&mut self, place: usize, now: Duration) {
        let answered = std::mem::take(&mut self.answered);
        for since in &answered {
            match self.drive.rhythm {
                Rhythm::Closed => {
                    self.tally.answer(now.saturating_sub(*since));
                    self.ask(place, now);
                }
                Rhythm::PerSecond(_) => {
                    if self.counts(*since) {
                        self.tally.answer(now.saturating_sub(*since));
                    }
                    self.resting.push(place);
                }
                // It counts when the proxy has closed the connection too.
                Rhythm::Fresh => {}
                Rhythm::Once => self.tally.answer(now.saturating_sub(*since)),
            }
        }
        self.answered = answered;
        self.answered.clear();
    }

    fn send(&mut self, place: usize, poller: &Poller) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(place) else {
            return Ok(());
        };
        match connection.send() {
            Ok(interest) if interest == connection.interest => {}
            Ok(interest) => {
                connection.interest = interest;
                poller.change(&connection.stream, Owner::Client(place), interest)?;
            }
            Err(fault) => self.lose(place, &fault),
        }
        Ok(())
    }

    /// The proxy has closed a connection: as it should, or not.
    fn end(&mut self, place: usize, opened: Duration, now: Duration) {
        let answered = self.connections.get(place).is_some_and(|c| c.answered > 0);
        if self.drive.rhythm != Rhythm::Fresh || !answered {
            return self.lose(place, &Fault::Closed);
        }
        self.answered.clear();
        self.connections.remove(place);
        self.missing += 1;
        self.tally.answer(now.saturating_sub(opened));
    }

    /// Gives a connection up; another will take its place.
    fn lose(&mut self, place: usize, fault: &Fault) {
        self.answered.clear();
        let lost = self.connections.remove(place);
        self.resting.retain(|resting| *resting != place);
        if lost.answered == 0 {
            self.unproven -= 1;
        }
        self.missing += 1;
        self.tally.fail(lost.at_stake(), fault);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(captured) = &mut self.captured
            && captured.len() + bytes.len() <= CAPTURE_BYTES
        {
            captured.extend_from_slice(bytes);
        }
    }
}
