//! Parallel connection attempts to several addresses of a target. [RFC 8305]

use crate::connect::{ConnectSettings, connect_once};
use crate::error::ConnectError;
use crate::limit::ConnectionPermit;
use crate::transport::UpstreamStream;
use proxy_clock::{Clock, RequestTimers, TICK, Tick, Timer};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Time without an answer from an address before a parallel attempt at the next one. [RFC 8305 §5]
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// A possible address of a connection.
#[derive(Debug)]
pub struct Candidate {
    /// The caller's number of the target at this address.
    pub position: u16,
    /// The address; `None` if none is known.
    pub address: Option<SocketAddr>,
    /// Settings of connections to the target.
    pub settings: ConnectSettings,
    /// The connection's permit, if connections are limited.
    pub permit: Option<ConnectionPermit>,
}

/// A connection to the first candidate that answered.
#[derive(Debug)]
pub struct Dialed {
    /// The candidate's number.
    pub position: u16,
    /// Connection to the address that answered first.
    pub transport: UpstreamStream,
    /// Permit of the target's connection limit; `None` if unlimited.
    pub permit: Option<ConnectionPermit>,
}

/// Connects to `first` or, if it fails or does not answer for a quarter of a second, to each of the
/// further candidates in turn; the first answer wins. `candidate` makes the candidate of a position
/// on its turn; a position without one is skipped. `failed` is called for each failed candidate
/// that is followed by another.
///
/// # Errors
/// The [`ConnectError`] of the last candidate, if all failed.
pub async fn connect(
    first: Candidate,
    others: &[u16],
    candidate: impl Fn(u16) -> Option<Candidate>,
    failed: impl Fn(u16, &ConnectError),
    timers: &RequestTimers,
) -> Result<Dialed, ConnectError> {
    let candidates = Candidates {
        first: Some(first),
        others: others.iter(),
        candidate,
    };
    let connected = race(candidates, failed, timers).await;
    timers.stop();
    connected
}

struct Candidates<'o, F> {
    first: Option<Candidate>,
    others: std::slice::Iter<'o, u16>,
    candidate: F,
}

impl<F: Fn(u16) -> Option<Candidate>> Candidates<'_, F> {
    fn next(&mut self) -> Option<Candidate> {
        let candidate = &self.candidate;
        let first = self.first.take();
        first.or_else(|| self.others.find_map(|position| candidate(*position)))
    }

    /// Returns true if no candidate is left. The remaining positions may have none either.
    fn is_over(&self) -> bool {
        self.first.is_none() && self.others.len() == 0
    }
}

async fn dial(candidate: Candidate, clock: &Clock) -> (u16, Result<Dialed, ConnectError>) {
    let Candidate {
        position,
        address,
        settings,
        permit,
    } = candidate;
    let began = clock.now();
    let connected = match address {
        Some(address) => connect_once(address, &settings).await,
        None => Err(ConnectError::NoAddress),
    };
    let connected = connected.map_err(|error| timed_out(error, || ticks(began, clock.now())));
    let dialed = connected.map(|transport| Dialed {
        position,
        transport,
        permit,
    });
    (position, dialed)
}

/// Makes the first connection to any of the candidates, within the timeout of the first candidate
/// for all of them.
async fn race(
    mut left: Candidates<'_, impl Fn(u16) -> Option<Candidate>>,
    failed: impl Fn(u16, &ConnectError),
    timers: &RequestTimers,
) -> Result<Dialed, ConnectError> {
    let mut race = Race {
        attempts: Vec::new(),
        last: (None, ConnectError::NoAddress),
    };
    let timeout = left.first.as_ref().map(|first| first.settings.timeout);
    let timeout = timeout.unwrap_or_default();
    let until = timers.clock().after(timeout);
    let mut next_is_due = true;
    poll_fn(|cx| {
        loop {
            if next_is_due && let Some(candidate) = left.next() {
                race.attempts
                    .push(Box::pin(dial(candidate, timers.clock())));
                let rest = time_until(until, timers);
                let delay = if left.is_over() {
                    rest
                } else {
                    ATTEMPT_DELAY.min(rest)
                };
                timers.start(Timer::UpstreamConnect, delay);
            }
            match race.poll(cx, &failed) {
                Polled::Connected(dialed) => return Poll::Ready(Ok(dialed)),
                Polled::Failed if !left.is_over() => {
                    next_is_due = true;
                    continue;
                }
                Polled::Failed | Polled::Waiting => next_is_due = false,
            }
            if race.attempts.is_empty() {
                let (_, last) = std::mem::replace(&mut race.last, (None, ConnectError::NoAddress));
                return Poll::Ready(Err(last));
            }
            match timers.deadline().take_expired() {
                None => return Poll::Pending,
                Some((timer @ Timer::Total, after)) => {
                    return Poll::Ready(Err(ConnectError::TimedOut { timer, after }));
                }
                Some((timer, _)) if left.is_over() || until <= timers.clock().now() => {
                    let after = timeout;
                    return Poll::Ready(Err(ConnectError::TimedOut { timer, after }));
                }
                Some(_) => next_is_due = true,
            }
        }
    })
    .await
}

struct Race<F> {
    attempts: Vec<Pin<Box<F>>>,
    /// The last failed attempt, reported to the caller when another follows.
    last: (Option<u16>, ConnectError),
}

enum Polled {
    Connected(Dialed),
    /// At least one attempt has failed.
    Failed,
    Waiting,
}

impl<F: Future<Output = (u16, Result<Dialed, ConnectError>)>> Race<F> {
    fn poll(&mut self, cx: &mut Context<'_>, failed: &impl Fn(u16, &ConnectError)) -> Polled {
        let mut polled = Polled::Waiting;
        let mut connected = None;
        let last = &mut self.last;
        let mut fail = |position, error| {
            if let (Some(before), error) = std::mem::replace(last, (Some(position), error)) {
                failed(before, &error);
            }
        };
        self.attempts.retain_mut(|attempt| {
            if connected.is_some() {
                return true;
            }
            match attempt.as_mut().poll(cx) {
                Poll::Pending => return true,
                Poll::Ready((_, Ok(dialed))) => connected = Some(dialed),
                Poll::Ready((position, Err(error))) => {
                    fail(position, error);
                    polled = Polled::Failed;
                }
            }
            false
        });
        let Some(dialed) = connected else {
            return polled;
        };
        if let Some(before) = self.last.0.take() {
            failed(before, &self.last.1);
        }
        Polled::Connected(dialed)
    }
}

fn time_until(until: Tick, timers: &RequestTimers) -> Duration {
    ticks(timers.clock().now(), until)
}

fn ticks(from: Tick, until: Tick) -> Duration {
    TICK.saturating_mul(until.0.saturating_sub(from.0))
}

/// An attempt that the kernel gave up before the proxy did, as after its last retransmission: it
/// has a time, like one that `connect-secs` ends.
fn timed_out(error: ConnectError, after: impl FnOnce() -> Duration) -> ConnectError {
    let is_given_up =
        matches!(&error, ConnectError::Io(error) if error.kind() == ErrorKind::TimedOut);
    if !is_given_up {
        return error;
    }
    ConnectError::TimedOut {
        timer: Timer::UpstreamConnect,
        after: after(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_clock::{Clock, Deadline, TimerRegistry};
    use socket2::{Domain, Socket, Type};
    use std::cell::RefCell;
    use std::net::{Ipv4Addr, TcpListener};
    use std::rc::Rc;

    /// A listener with a full queue: connecting to it neither succeeds nor fails while the sockets
    /// are kept.
    fn silent() -> (SocketAddr, Vec<Socket>) {
        let socket = || Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let listener = socket();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        listener.bind(&any.into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let mut held = vec![listener];
        for _ in 0..4 {
            let client = socket();
            client.set_nonblocking(true).unwrap();
            // In progress: the first ones fill the queue.
            drop(client.connect(&address.into()));
            held.push(client);
        }
        (address, held)
    }

    fn settings() -> ConnectSettings {
        ConnectSettings {
            timeout: Duration::from_secs(5),
            tls: None,
            limit: None,
            proxy_header: None,
        }
    }

    /// Races while the worker's time advances to `time`, and no further.
    fn race_for(
        time: Duration,
        addresses: &[SocketAddr],
    ) -> (Result<Dialed, ConnectError>, Vec<u16>) {
        let (clock, sweep) = (Rc::<Clock>::default(), Rc::<TimerRegistry>::default());
        let deadline = Rc::<Deadline>::default();
        let _entry = sweep.register(Rc::clone(&deadline));
        let timers = RequestTimers::new(Rc::clone(&clock), deadline, None);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(async {
            let candidate = |position: u16| {
                Some(Candidate {
                    position,
                    address: addresses.get(usize::from(position)).copied(),
                    settings: settings(),
                    permit: None,
                })
            };
            let others: Vec<u16> = (1..3)
                .filter(|at| usize::from(*at) < addresses.len())
                .collect();
            let failed = RefCell::<Vec<u16>>::default();
            let fail = |position, _: &ConnectError| failed.borrow_mut().push(position);
            let first = candidate(0).unwrap();
            let passing = async {
                let mut elapsed = Duration::ZERO;
                loop {
                    elapsed = time.min(elapsed + TICK);
                    clock.advance_to(elapsed);
                    sweep.run(clock.now());
                    tokio::task::yield_now().await;
                }
            };
            let connected = tokio::select! {
                connected = connect(first, &others, candidate, fail, &timers) => connected,
                never = passing => never,
            };
            (connected, failed.into_inner())
        })
    }

    #[test]
    fn a_silent_first_address_does_not_keep_the_next_one_waiting() {
        let (silent, _held) = silent();
        let answering = TcpListener::bind("127.0.0.1:0").unwrap();
        let addresses = [silent, answering.local_addr().unwrap()];

        let (connected, failed) = race_for(Duration::from_secs(1), &addresses);

        assert_eq!(connected.unwrap().position, 1);
        assert!(failed.is_empty(), "it may only be slow");
    }

    #[test]
    fn silent_addresses_time_out_together() {
        let (silent, _held) = silent();

        let (connected, _) = race_for(Duration::from_secs(9), &[silent, silent]);

        let Err(ConnectError::TimedOut { timer, after }) = connected else {
            panic!("{connected:?}");
        };
        assert_eq!((timer, after), (Timer::UpstreamConnect, settings().timeout));
    }

    #[test]
    fn a_connect_that_the_kernel_gives_up_has_its_time() {
        let after = || Duration::from_secs(2);
        let kernel = std::io::Error::from_raw_os_error(rustix::io::Errno::TIMEDOUT.raw_os_error());

        let error = timed_out(ConnectError::Io(kernel), after);

        assert_eq!(error.to_string(), "no connection within 2s");
        let refused = ConnectError::Io(ErrorKind::ConnectionRefused.into());
        assert!(matches!(timed_out(refused, after), ConnectError::Io(_)));
    }

    #[test]
    fn a_refusal_leads_to_the_next_address_at_once() {
        // Bound without listening: no other process gets the port, and connections are refused.
        let bound = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        bound
            .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
            .unwrap();
        let closed = bound.local_addr().unwrap().as_socket().unwrap();
        let answering = TcpListener::bind("127.0.0.1:0").unwrap();
        let addresses = [closed, closed, answering.local_addr().unwrap()];

        let (connected, failed) = race_for(Duration::ZERO, &addresses);
        assert_eq!((connected.unwrap().position, failed), (2, vec![0, 1]));
        let (refused, failed) = race_for(Duration::ZERO, &[closed, closed]);
        assert!(refused.is_err());
        assert_eq!(failed, [0], "the last one is the caller's error");
        assert!(matches!(
            race_for(Duration::ZERO, &[]).0,
            Err(ConnectError::NoAddress)
        ));
    }
}
