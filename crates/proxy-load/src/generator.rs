//! The load generator: clients and upstream in one thread that polls for work.

pub(crate) mod progress;

use crate::backend::Backend;
use crate::backend::capture::capture;
use crate::backend::request_reader::LastRequest;
use crate::clients::Clients;
use crate::clock::Stopwatch;
use crate::command::{LoadProfile, Sample, Span};
use crate::generator::progress::{Progress, SteadyOutcome};
use crate::meter;
use crate::poller::{Owner, Poller, Ready};
use crate::script::USER_AGENT_VALUE;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maximum size of a read, in bytes.
const SCRATCH_BYTES: usize = 256 << 10;
/// Maximum time of a load beyond its own times.
const IDLE_TIMEOUT: Duration = Duration::from_mins(2);

/// An upstream, and clients while a load runs.
pub struct LoadGenerator {
    clock: Stopwatch,
    poller: Poller,
    backend: Backend,
    ready: Vec<Ready>,
    scratch: Vec<u8>,
    /// Number of captured loads.
    captures: u32,
}

impl fmt::Debug for LoadGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadGenerator").finish_non_exhaustive()
    }
}

impl LoadGenerator {
    /// With an upstream on this port of loopback; with 0 the kernel picks one.
    ///
    /// # Errors
    /// The port is in use, or no socket can be created.
    pub fn new(backend_port: u16) -> io::Result<Self> {
        let poller = Poller::new()?;
        Ok(Self {
            clock: Stopwatch::start(),
            backend: Backend::listen(backend_port, &poller)?,
            poller,
            ready: Vec::new(),
            scratch: vec![0; SCRATCH_BYTES],
            captures: 0,
        })
    }

    /// The upstream's address.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn backend_address(&self) -> io::Result<SocketAddr> {
        self.backend.address()
    }

    /// Runs the upstream for this time.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn respond(&mut self, time: Duration) -> io::Result<()> {
        let until = self.clock.elapsed() + time;
        while self.clock.elapsed() < until {
            self.step(None, true)?;
        }
        Ok(())
    }

    /// `User-Agent` of a load, unique to each capture: it distinguishes the captured request from
    /// health checks and earlier loads at the upstream.
    fn user_agent(&mut self, is_captured: bool) -> String {
        if !is_captured {
            return USER_AGENT_VALUE.to_owned();
        }
        self.captures += 1;
        format!("{USER_AGENT_VALUE} capture/{}", self.captures)
    }

    /// Runs a load.
    ///
    /// # Errors
    /// The proxy accepts no connections, or does not answer requests.
    pub fn run(&mut self, profile: &LoadProfile) -> io::Result<Sample> {
        let memory_before_bytes = meter::memory_bytes(&profile.watch);
        let user_agent = self.user_agent(profile.capture);
        self.backend.seen = profile.capture.then(|| LastRequest::new(&user_agent));
        let mut clients = Clients::new(profile, &user_agent)?;
        let warm = self.clock.elapsed() + profile.warm;
        self.run_until(&mut clients, profile, |clients, now| {
            clients.is_complete() && now >= warm
        })?;
        let (since, cpu) = (self.clock.elapsed(), meter::cpu(&profile.watch));
        clients.measure(since);
        let over = |clients: &mut Clients<'_>, now| clients.is_over(now);
        let idle = self.run_until(&mut clients, profile, over)?;
        let time = self.clock.elapsed().saturating_sub(since);
        let cpu = meter::cpu(&profile.watch).saturating_sub(cpu);
        let captured = clients.captured.take();
        let seen = self.backend.seen.take();
        let recorder = &mut clients.recorder;
        let [p50, p99, p999] = recorder.quantiles([500, 990, 999]);
        Ok(Sample {
            answered: recorder.answered(),
            failed: recorder.failed,
            failure: recorder.failure.as_ref().map(ToString::to_string),
            time,
            cpu,
            idle,
            p50,
            p99,
            p999,
            memory_before_bytes,
            memory_after_bytes: meter::memory_bytes(&profile.watch),
            capture: captured.map(|read| capture(&read, profile.protocol, seen)),
        })
    }

    /// Sends requests until it is stopped or every client was refused.
    pub(crate) fn run_until_stopped(
        &mut self,
        profile: &LoadProfile,
        progress: &Progress,
    ) -> io::Result<SteadyOutcome> {
        let mut clients = Clients::new(profile, USER_AGENT_VALUE)?;
        let started = self.clock.elapsed();
        let span = longest(profile).saturating_sub(IDLE_TIMEOUT);
        self.run_until(&mut clients, profile, |clients, now| {
            let answered = clients.recorder.answered();
            progress.answered.store(answered, Ordering::Relaxed);
            let stop = progress.stop.load(Ordering::Relaxed) || now.saturating_sub(started) > span;
            clients.set_paused(stop);
            clients.all_refused() || (stop && clients.is_settled())
        })?;
        Ok(SteadyOutcome {
            answered: clients.recorder.answered(),
            refused: clients.refused,
            failed: clients.recorder.failed,
            failure: clients.recorder.failure.as_ref().map(ToString::to_string),
        })
    }

    /// Runs the clients until `over` holds or continuing is pointless. Returns the idle time.
    fn run_until(
        &mut self,
        clients: &mut Clients<'_>,
        profile: &LoadProfile,
        over: impl Fn(&mut Clients<'_>, Duration) -> bool,
    ) -> io::Result<Duration> {
        let start = self.clock.elapsed();
        let (mut idle, mut rested_since) = (Duration::ZERO, None);
        loop {
            let now = self.clock.elapsed();
            idle += rested_since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
            clients.send_requests(&self.poller, now)?;
            if over(clients, now) || clients.is_done() || clients.recorder.should_abort() {
                return Ok(idle);
            }
            if now.saturating_sub(start) > longest(profile) {
                return Err(io::Error::other("the proxy leaves requests unanswered"));
            }
            let found = self.step(Some(clients), profile.spin)?;
            rested_since = (!found).then_some(now);
        }
    }

    /// Polls once and serves each ready connection. False if there was none.
    fn step(&mut self, mut clients: Option<&mut Clients<'_>>, spin: bool) -> io::Result<bool> {
        let Self {
            clock,
            poller,
            backend,
            ready,
            scratch,
            captures: _,
        } = self;
        poller.poll(ready, spin)?;
        for Ready { owner, readable } in ready.iter().copied() {
            match owner {
                Owner::Listener => backend.accept(poller)?,
                Owner::Backend(index) => backend.serve(index, readable, poller, scratch)?,
                Owner::Client(index) => {
                    if let Some(clients) = clients.as_deref_mut() {
                        clients.handle_ready(index, readable, poller, scratch, *clock)?;
                    }
                }
            }
        }
        Ok(!ready.is_empty())
    }
}

fn longest(profile: &LoadProfile) -> Duration {
    let span = match profile.span {
        Span::Time(time) => time,
        Span::Requests(_) => Duration::ZERO,
    };
    profile.warm + span + IDLE_TIMEOUT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::pause;
    use crate::command::{Pacing, ResponseSize};

    /// Clients that send requests directly to the upstream.
    fn direct(
        driver: &LoadGenerator,
        answer: ResponseSize,
        pacing: Pacing,
        span: Span,
    ) -> LoadProfile {
        let port = driver.backend_address().unwrap().port();
        LoadProfile {
            connections: 8,
            pacing,
            span,
            spin: false,
            ..LoadProfile::get(port, vec![format!("/{}", answer.letter())], answer)
        }
    }

    #[test]
    fn as_many_requests_are_answered_as_were_ordered() {
        for answer in ResponseSize::ALL {
            let mut driver = LoadGenerator::new(0).unwrap();
            let span = Span::Requests(50);
            let order = direct(&driver, answer, Pacing::Closed, span);
            let sample = driver.run(&order).unwrap();
            assert_eq!((sample.failed, sample.failure), (0, None));
            assert!(sample.p50 > Duration::ZERO && sample.p50 <= sample.p999);
        }
    }

    #[test]
    fn bodies_reach_the_upstream_and_answers_the_client() {
        let mut driver = LoadGenerator::new(0).unwrap();
        let mut order = direct(
            &driver,
            ResponseSize::Medium,
            Pacing::Closed,
            Span::Requests(1),
        );
        order.connections = 1;
        order.request.body_bytes = 300_000;
        order.capture = true;

        let capture = driver.run(&order).unwrap().capture.unwrap();
        assert_eq!(capture.request_body_bytes, 300_000);
        assert!(capture.request_head.starts_with("POST /m HTTP/1.1\r\n"));
        assert_eq!(capture.answer_body_bytes, 10 << 10);
        assert!(capture.answer_body_intact);
        assert!(capture.answer_head.starts_with("HTTP/1.1 200 OK\r\n"));
    }

    fn at_rate(driver: &LoadGenerator) -> LoadProfile {
        let span = Span::Time(Duration::from_millis(200));
        direct(driver, ResponseSize::Small, Pacing::PerSecond(1_000), span)
    }

    #[test]
    fn at_a_fixed_rate_every_request_that_was_due_is_answered() {
        let mut driver = LoadGenerator::new(0).unwrap();
        let order = at_rate(&driver);
        let sample = driver.run(&order).unwrap();
        assert_eq!((sample.failed, sample.answered), (0, 200));
    }

    #[test]
    fn requests_that_were_due_during_a_pause_are_made_late() {
        let mut driver = LoadGenerator::new(0).unwrap();
        let order = at_rate(&driver);
        let mut clients = Clients::new(&order, USER_AGENT_VALUE).unwrap();
        driver
            .run_until(&mut clients, &order, |clients, _| clients.is_complete())
            .unwrap();

        clients.measure(driver.clock.elapsed());
        pause(Duration::from_millis(300));
        let over = |clients: &mut Clients<'_>, now| clients.is_over(now);
        driver.run_until(&mut clients, &order, over).unwrap();

        assert_eq!(
            (clients.recorder.failed, clients.recorder.answered()),
            (0, 200)
        );
        let [least] = clients.recorder.quantiles([0]);
        assert!(least >= Duration::from_millis(100), "{least:?}");
    }

    #[test]
    fn connections_that_ask_once_are_all_answered() {
        let mut driver = LoadGenerator::new(0).unwrap();
        let span = Span::Time(Duration::ZERO);
        let mut order = direct(&driver, ResponseSize::Small, Pacing::Once, span);
        order.connections = 100;
        let sample = driver.run(&order).unwrap();
        assert_eq!(sample.failed, 0);
    }

    #[test]
    fn a_refused_connection_is_an_error() {
        let mut driver = LoadGenerator::new(0).unwrap();
        let mut order = direct(
            &driver,
            ResponseSize::Small,
            Pacing::Closed,
            Span::Requests(1),
        );
        order.port = 1;
        assert!(driver.run(&order).is_err());
    }
}
