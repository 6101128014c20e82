//! Connecting to one of several addresses of a target, in parallel where one is slow. [RFC 8305]

use crate::connect::{ConnectSettings, attempt};
use crate::error::ConnectError;
use crate::upstream_stream::UpstreamStream;
use proxy_clock::{RequestTimers, TICK, Tick, Timer};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Time without an answer from an address after which the next one is tried in parallel. [RFC 8305
/// §5]
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Connects to the first of `addresses` that answers. They are tried in order from index `first`
/// modulo their number; the next one is tried in parallel if one does not answer for a quarter of a
/// second.
///
/// # Errors
/// [`ConnectError`]; that of the last address if all failed.
pub async fn connect(
    addresses: &[SocketAddr],
    first: usize,
    settings: &ConnectSettings,
    timers: &RequestTimers,
) -> Result<UpstreamStream, ConnectError> {
    let connected = race(addresses, first, settings, timers).await;
    timers.stop();
    connected
}

/// The first connection established to any of `addresses`, tried in order from index `first` modulo
/// their number, within `settings.timeout` for all together.
async fn race(
    addresses: &[SocketAddr],
    first: usize,
    settings: &ConnectSettings,
    timers: &RequestTimers,
) -> Result<UpstreamStream, ConnectError> {
    let start = first.checked_rem(addresses.len()).unwrap_or_default();
    let (before, from) = addresses.split_at(start);
    let mut left = from.iter().chain(before).copied().peekable();
    let mut race = Race {
        attempts: Vec::new(),
        last: ConnectError::NoAddress,
    };
    let until = timers.clock().after(settings.timeout);
    let mut next_is_due = true;
    poll_fn(|cx| {
        loop {
            if let Some(address) = left.next_if(|_| next_is_due) {
                race.attempts.push(Box::pin(attempt(address, settings)));
                let rest = time_until(until, timers);
                let delay = left.peek().map_or(rest, |_| ATTEMPT_DELAY.min(rest));
                timers.start(Timer::UpstreamConnect, delay);
            }
            match race.poll(cx) {
                Polled::Connected(transport) => return Poll::Ready(Ok(transport)),
                Polled::Failed if left.peek().is_some() => {
                    next_is_due = true;
                    continue;
                }
                Polled::Failed | Polled::Waiting => next_is_due = false,
            }
            if race.attempts.is_empty() {
                let last = std::mem::replace(&mut race.last, ConnectError::NoAddress);
                return Poll::Ready(Err(last));
            }
            match timers.deadline().take_expired() {
                None => return Poll::Pending,
                Some((timer @ Timer::Total, after)) => {
                    return Poll::Ready(Err(ConnectError::TimedOut { timer, after }));
                }
                Some((timer, _)) if left.peek().is_none() || until <= timers.clock().now() => {
                    let after = settings.timeout;
                    return Poll::Ready(Err(ConnectError::TimedOut { timer, after }));
                }
                Some(_) => next_is_due = true,
            }
        }
    })
    .await
}

/// Attempts in progress.
struct Race<F> {
    attempts: Vec<Pin<Box<F>>>,
    /// The error of the last failed attempt.
    last: ConnectError,
}

enum Polled {
    Connected(UpstreamStream),
    /// At least one attempt has failed.
    Failed,
    Waiting,
}

impl<F: Future<Output = Result<UpstreamStream, ConnectError>>> Race<F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Polled {
        let mut polled = Polled::Waiting;
        let mut connected = None;
        let last = &mut self.last;
        self.attempts.retain_mut(|attempt| {
            if connected.is_some() {
                return true;
            }
            match attempt.as_mut().poll(cx) {
                Poll::Pending => return true,
                Poll::Ready(Ok(transport)) => connected = Some(transport),
                Poll::Ready(Err(fault)) => {
                    *last = fault;
                    polled = Polled::Failed;
                }
            }
            false
        });
        connected.map_or(polled, Polled::Connected)
    }
}

fn time_until(until: Tick, timers: &RequestTimers) -> Duration {
    TICK.saturating_mul(until.0.saturating_sub(timers.clock().now().0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_clock::{Clock, Deadline, TimerRegistry};
    use socket2::{Domain, Socket, Type};
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
        }
    }

    /// Races while the worker's time advances to `time`, and no further.
    fn race_for(
        time: Duration,
        addresses: &[SocketAddr],
        first: usize,
    ) -> Result<UpstreamStream, ConnectError> {
        let (clock, sweep) = (Rc::<Clock>::default(), Rc::<TimerRegistry>::default());
        let deadline = Rc::<Deadline>::default();
        let _entry = sweep.register(Rc::clone(&deadline));
        let timers = RequestTimers::new(Rc::clone(&clock), deadline, None);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(async {
            let settings = settings();
            let passing = async {
                let mut elapsed = Duration::ZERO;
                loop {
                    elapsed = time.min(elapsed + TICK);
                    clock.advance_to(elapsed);
                    sweep.run(clock.now());
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                connected = race(addresses, first, &settings, &timers) => connected,
                never = passing => never,
            }
        })
    }

    #[test]
    fn a_silent_first_address_does_not_keep_the_next_one_waiting() {
        let (silent, _held) = silent();
        let answering = TcpListener::bind("127.0.0.1:0").unwrap();
        let addresses = [silent, answering.local_addr().unwrap()];

        let connected = race_for(Duration::from_secs(1), &addresses, 0);

        assert!(connected.is_ok(), "{connected:?}");
    }

    #[test]
    fn silent_addresses_are_given_up_together() {
        let (silent, _held) = silent();

        let connected = race_for(Duration::from_secs(9), &[silent, silent], 1);

        let Err(ConnectError::TimedOut { timer, after }) = connected else {
            panic!("{connected:?}");
        };
        assert_eq!((timer, after), (Timer::UpstreamConnect, settings().timeout));
    }

    #[test]
    fn each_connection_begins_with_the_address_of_its_turn() {
        let listeners = [0, 1, 2].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = listeners.each_ref().map(|one| one.local_addr().unwrap());

        for turn in 0..6 {
            let connected = race_for(Duration::ZERO, &addresses, turn);
            assert!(connected.is_ok());
            let listener = &listeners[turn % 3];
            listener.set_nonblocking(true).unwrap();
            assert!(listener.accept().is_ok(), "turn {turn}");
        }
    }

    #[test]
    fn a_refusal_leads_to_the_next_address_at_once() {
        let closed = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let answering = TcpListener::bind("127.0.0.1:0").unwrap();
        let addresses = [closed, answering.local_addr().unwrap()];

        assert!(race_for(Duration::ZERO, &addresses, 0).is_ok());
        assert!(race_for(Duration::ZERO, &[closed], 0).is_err());
        assert!(matches!(
            race_for(Duration::ZERO, &[], 3),
            Err(ConnectError::NoAddress)
        ));
    }
}
