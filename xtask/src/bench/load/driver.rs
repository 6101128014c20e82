//! The loop of the load process: clients and upstream in one thread, always looking for work.

use super::backend::Backend;
use super::capture::capture;
use super::crowd::Crowd;
use super::intake::Seen;
use super::poller::{Owner, Poller, Ready};
use crate::bench::meter;
use crate::bench::order::{Drive, Sample, Span};
use crate::clock::Stopwatch;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Bytes read at once, at most.
const SCRATCH_BYTES: usize = 256 << 10;
/// Longest that a drive may take beyond its own times.
const PATIENCE: Duration = Duration::from_mins(2);

/// What drives are made with.
pub(super) struct Driver {
    clock: Stopwatch,
    poller: Poller,
    backend: Backend,
    ready: Vec<Ready>,
    scratch: Vec<u8>,
}

impl Driver {
    /// With an upstream on this port of loopback; 0 lets the system choose.
    pub(super) fn new(backend_port: u16) -> io::Result<Self> {
        let poller = Poller::new()?;
        Ok(Self {
            clock: Stopwatch::start(),
            backend: Backend::listen(backend_port, &poller)?,
            poller,
            ready: Vec::new(),
            scratch: vec![0; SCRATCH_BYTES],
        })
    }

    /// Where the upstream listens.
    pub(super) fn backend_address(&self) -> io::Result<SocketAddr> {
        self.backend.address()
    }

    /// Answers requests for this long.
    pub(super) fn respond(&mut self, time: Duration) -> io::Result<()> {
        let until = self.clock.elapsed() + time;
        while self.clock.elapsed() < until {
            self.step(None, true)?;
        }
        Ok(())
    }

    /// Drives a proxy as the order says.
    pub(super) fn drive(&mut self, drive: &Drive) -> io::Result<Sample> {
        let memory_before_bytes = meter::memory_bytes(&drive.watch);
        self.backend.seen = drive.capture.then(Seen::default);
        let mut crowd = Crowd::new(drive)?;
        let warm = self.clock.elapsed() + drive.warm;
        self.go_on_until(&mut crowd, drive, |crowd, now| {
            crowd.is_complete() && now >= warm
        })?;
        let (since, cpu) = (self.clock.elapsed(), meter::cpu(&drive.watch));
        crowd.measure(since);
        let over = |crowd: &Crowd<'_>, now| crowd.is_over(now);
        let idle = self.go_on_until(&mut crowd, drive, over)?;
        let time = self.clock.elapsed().saturating_sub(since);
        let cpu = meter::cpu(&drive.watch).saturating_sub(cpu);
        let captured = crowd.captured.take();
        let seen = self.backend.seen.take();
        let tally = &mut crowd.tally;
        let [p50, p99, p999] = tally.quantiles([500, 990, 999]);
        Ok(Sample {
            answered: tally.answered(),
            failed: tally.failed,
            failure: tally.failure.as_ref().map(ToString::to_string),
            time,
            cpu,
            idle,
            p50,
            p99,
            p999,
            memory_before_bytes,
            memory_after_bytes: meter::memory_bytes(&drive.watch),
            capture: captured.map(|read| capture(&read, drive.carrier, seen)),
        })
    }

    /// Lets the clients ask until something is over by now, or there is no use in going on.
    /// Says for how long there was nothing to do.
    fn go_on_until(
        &mut self,
        crowd: &mut Crowd<'_>,
        drive: &Drive,
        over: impl Fn(&Crowd<'_>, Duration) -> bool,
    ) -> io::Result<Duration> {
        let start = self.clock.elapsed();
        let (mut idle, mut rested_since) = (Duration::ZERO, None);
        loop {
            let now = self.clock.elapsed();
            idle += rested_since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
            crowd.turn(&self.poller, now)?;
            if over(crowd, now) || crowd.is_done() || crowd.tally.is_hopeless() {
                return Ok(idle);
            }
            if now.saturating_sub(start) > longest(drive) {
                return Err(io::Error::other("the proxy leaves requests unanswered"));
            }
            let found = self.step(Some(crowd), drive.spin)?;
            rested_since = (!found).then_some(now);
        }
    }

    /// Looks once for ready connections and goes on with each. False when there were none.
    fn step(&mut self, mut crowd: Option<&mut Crowd<'_>>, spin: bool) -> io::Result<bool> {
        let Self {
            clock,
            poller,
            backend,
            ready,
            scratch,
        } = self;
        poller.look(ready, spin)?;
        for Ready { owner, readable } in ready.iter().copied() {
            match owner {
                Owner::Listener => backend.accept(poller)?,
                Owner::Backend(place) => backend.serve(place, readable, poller, scratch)?,
                Owner::Client(place) => {
                    if let Some(crowd) = crowd.as_deref_mut() {
                        crowd.serve(place, readable, poller, scratch, *clock)?;
                    }
                }
            }
        }
        Ok(!ready.is_empty())
    }
}

fn longest(drive: &Drive) -> Duration {
    let span = match drive.span {
        Span::Time(time) => time,
        Span::Requests(_) => Duration::ZERO,
    };
    drive.warm + span + PATIENCE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::order::{Answer, Asking, Carrier, Rhythm};
    use crate::clock::pause;

    /// Clients that ask the upstream itself, with no proxy between.
    fn direct(driver: &Driver, answer: Answer, rhythm: Rhythm, span: Span) -> Drive {
        Drive {
            port: driver.backend_address().unwrap().port(),
            carrier: Carrier::Plain,
            asking: Asking {
                paths: vec![format!("/{}", answer.letter())],
                answer,
                body_bytes: 0,
                browser: false,
            },
            connections: 8,
            streams: 1,
            rhythm,
            warm: Duration::ZERO,
            span,
            spin: false,
            watch: Vec::new(),
            capture: false,
        }
    }

    #[test]
    fn as_many_requests_are_answered_as_were_ordered() {
        for answer in Answer::ALL {
            let mut driver = Driver::new(0).unwrap();
            let span = Span::Requests(50);
            let order = direct(&driver, answer, Rhythm::Closed, span);
            let sample = driver.drive(&order).unwrap();
            assert_eq!((sample.failed, sample.failure), (0, None));
            assert!(sample.p50 > Duration::ZERO && sample.p50 <= sample.p999);
        }
    }

    #[test]
    fn bodies_reach_the_upstream_and_answers_the_client() {
        let mut driver = Driver::new(0).unwrap();
        let mut order = direct(&driver, Answer::Medium, Rhythm::Closed, Span::Requests(1));
        order.connections = 1;
        order.asking.body_bytes = 300_000;
        order.capture = true;

        let capture = driver.drive(&order).unwrap().capture.unwrap();
        assert_eq!(capture.request_body_bytes, 300_000);
        assert!(capture.request_head.starts_with("POST /m HTTP/1.1\r\n"));
        assert_eq!(capture.answer_body_bytes, 10 << 10);
        assert!(capture.answer_body_intact);
        assert!(capture.answer_head.starts_with("HTTP/1.1 200 OK\r\n"));
    }

    fn at_rate(driver: &Driver) -> Drive {
        let span = Span::Time(Duration::from_millis(200));
        direct(driver, Answer::Small, Rhythm::PerSecond(1_000), span)
    }

    #[test]
    fn at_a_fixed_rate_every_request_that_was_due_is_answered() {
        let mut driver = Driver::new(0).unwrap();
        let order = at_rate(&driver);
        let sample = driver.drive(&order).unwrap();
        assert_eq!((sample.failed, sample.answered), (0, 200));
    }

    #[test]
    fn requests_that_were_due_while_the_load_was_away_are_made_late() {
        let mut driver = Driver::new(0).unwrap();
        let order = at_rate(&driver);
        let mut crowd = Crowd::new(&order).unwrap();
        driver
            .go_on_until(&mut crowd, &order, |crowd, _| crowd.is_complete())
            .unwrap();

        crowd.measure(driver.clock.elapsed());
        pause(Duration::from_millis(300));
        let over = |crowd: &Crowd<'_>, now| crowd.is_over(now);
        driver.go_on_until(&mut crowd, &order, over).unwrap();

        assert_eq!((crowd.tally.failed, crowd.tally.answered()), (0, 200));
        let [least] = crowd.tally.quantiles([0]);
        assert!(least >= Duration::from_millis(100), "{least:?}");
    }

    #[test]
    fn connections_that_ask_once_are_all_answered() {
        let mut driver = Driver::new(0).unwrap();
        let span = Span::Time(Duration::ZERO);
        let mut order = direct(&driver, Answer::Small, Rhythm::Once, span);
        order.connections = 100;
        let sample = driver.drive(&order).unwrap();
        assert_eq!(sample.failed, 0);
    }

    #[test]
    fn a_proxy_that_nobody_listens_for_is_an_error() {
        let mut driver = Driver::new(0).unwrap();
        let mut order = direct(&driver, Answer::Small, Rhythm::Closed, Span::Requests(1));
        order.port = 1;
        assert!(driver.drive(&order).is_err());
    }
}
