//! Deadlines: setting one is a store, testing one is a load.

use crate::clock::{Clock, Tick};
use std::cell::Cell;
use std::fmt;
use std::task::Waker;
use std::time::Duration;

/// The operation that a deadline bounds. Answers and logs contain it: "Timeout: {operation} after
/// …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// TLS handshake with a client.
    Handshake,
    /// Reading the rest of a request's head.
    RequestHeader,
    /// Reading further bytes of a request's body from the client.
    RequestBody,
    /// An idle connection before its next request.
    KeepAlive,
    /// Writing the response to the client.
    ResponseWrite,
    /// Connecting to a target.
    UpstreamConnect,
    /// Writing the request to the target.
    UpstreamWrite,
    /// Waiting for the head of the target's response.
    ResponseHeader,
    /// Reading further bytes of the target's response body.
    ResponseBody,
    /// A tunnel (WebSocket) without traffic.
    TunnelIdle,
    /// Waiting for an agent's decision.
    Agent,
    /// Opening a file, or reading its next chunk.
    FileRead,
    /// Reading and discarding the client's remaining bytes after an early response.
    Linger,
    /// From the start of the request to the end of the response.
    Total,
}

impl Timer {
    /// Description of the operation, for clients and operators.
    #[must_use]
    pub const fn operation(self) -> &'static str {
        match self {
            Self::Handshake => "tls handshake",
            Self::RequestHeader => "request header",
            Self::RequestBody => "request body",
            Self::KeepAlive => "keep-alive",
            Self::ResponseWrite => "response write",
            Self::UpstreamConnect => "upstream connect",
            Self::UpstreamWrite => "upstream write",
            Self::ResponseHeader => "response header",
            Self::ResponseBody => "response body",
            Self::TunnelIdle => "tunnel idle",
            Self::Agent => "agent",
            Self::FileRead => "file read",
            Self::Linger => "linger",
            Self::Total => "request",
        }
    }
}

/// The current timer of a connection or a stream, and the separate end of the whole exchange.
pub struct Deadline {
    state: Cell<DeadlineState>,
    /// [`Timer::Total`], if the exchange has one.
    total: Cell<DeadlineState>,
    /// The tick at which the watcher is woken for any timer; [`Tick::MAX`] for none.
    alarm: Cell<Tick>,
    waker: Cell<Option<Waker>>,
}

#[derive(Clone, Copy, Debug, Default)]
enum DeadlineState {
    #[default]
    Stopped,
    Running {
        at: Tick,
        timer: Timer,
        wait: Duration,
    },
    /// The timer has expired and the expiry is not yet taken.
    Expired { timer: Timer, wait: Duration },
}

impl Default for Deadline {
    fn default() -> Self {
        Self {
            state: Cell::default(),
            total: Cell::default(),
            alarm: Cell::new(Tick::MAX),
            waker: Cell::default(),
        }
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.get().fmt(out)
    }
}

impl Deadline {
    /// Starts `timer`, replacing a running or expired one.
    #[inline]
    pub fn start(&self, clock: &Clock, timer: Timer, wait: Duration) {
        self.start_at(clock.after(wait), timer, wait);
    }

    /// Starts `timer` with `left` of its full length `wait`, replacing any other.
    #[inline]
    pub fn start_late(&self, clock: &Clock, timer: Timer, left: Duration, wait: Duration) {
        self.start_at(clock.after(left), timer, wait);
    }

    /// Starts `timer` with the full length `wait`, to expire at `at`.
    #[inline]
    fn start_at(&self, at: Tick, timer: Timer, wait: Duration) {
        self.state.set(DeadlineState::Running { at, timer, wait });
    }

    /// Stops the running timer and drops an untaken expiry. [`Timer::Total`] keeps running.
    #[inline]
    pub fn stop(&self) {
        self.state.set(DeadlineState::Stopped);
    }

    /// Starts [`Timer::Total`] with length `wait`; starting or stopping other timers does not
    /// affect it. `None` stops it.
    #[inline]
    pub fn start_total(&self, clock: &Clock, wait: Option<Duration>) {
        self.total.set(
            wait.map_or(DeadlineState::Stopped, |wait| DeadlineState::Running {
                at: clock.after(wait),
                timer: Timer::Total,
                wait,
            }),
        );
    }

    /// Stops every timer, [`Timer::Total`] too, at the end of the exchange.
    #[inline]
    pub fn clear(&self) {
        self.stop();
        self.total.set(DeadlineState::Stopped);
    }

    /// The running timer, other than [`Timer::Total`].
    #[inline]
    pub fn running(&self) -> Option<Timer> {
        match self.state.get() {
            DeadlineState::Running { timer, .. } => Some(timer),
            DeadlineState::Stopped | DeadlineState::Expired { .. } => None,
        }
    }

    /// The expired timer and its length; returns it once.
    #[inline]
    pub fn take_expired(&self) -> Option<(Timer, Duration)> {
        let cell = match self.total.get() {
            DeadlineState::Expired { .. } => &self.total,
            DeadlineState::Stopped | DeadlineState::Running { .. } => &self.state,
        };
        let DeadlineState::Expired { timer, wait } = cell.get() else {
            return None;
        };
        cell.set(DeadlineState::Stopped);
        Some((timer, wait))
    }

    /// The expired timer, without taking it.
    #[inline]
    pub fn expired(&self) -> Option<Timer> {
        let expired = |state| match state {
            DeadlineState::Expired { timer, .. } => Some(timer),
            DeadlineState::Stopped | DeadlineState::Running { .. } => None,
        };
        expired(self.total.get()).or_else(|| expired(self.state.get()))
    }

    /// Wakes the watcher once at `at`, independent of the running timer.
    pub fn set_alarm(&self, at: Tick) {
        self.alarm.set(at);
    }

    /// Stores the waker of the watcher. Called from the polling task; cheap if the waker is
    /// unchanged.
    pub fn watch(&self, waker: &Waker) {
        let held = self.waker.take();
        let same = held.filter(|known| known.will_wake(waker));
        self.waker.set(same.or_else(|| Some(waker.clone())));
    }

    /// Wakes the watcher.
    pub fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake_by_ref();
            self.waker.set(Some(waker));
        }
    }

    /// Marks the deadline as expired and wakes its watcher if `now` is late enough.
    pub(crate) fn check(&self, now: Tick) {
        if self.alarm.get() <= now {
            self.alarm.set(Tick::MAX);
            self.wake();
        }
        for cell in [&self.state, &self.total] {
            if let DeadlineState::Running { at, timer, wait } = cell.get()
                && at <= now
            {
                cell.set(DeadlineState::Expired { timer, wait });
                self.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_deadline_expires_once_and_wakes_its_watcher() {
        let (clock, deadline) = (Clock::default(), Deadline::default());
        let count = Arc::new(Count::default());
        deadline.watch(&Waker::from(Arc::clone(&count)));
        let wait = Duration::from_secs(1);
        deadline.start(&clock, Timer::ResponseHeader, wait);

        clock.advance_to(wait);
        deadline.check(clock.now());
        assert_eq!(deadline.expired(), None);

        clock.advance_to(wait + crate::TICK);
        deadline.check(clock.now());
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!(deadline.take_expired(), Some((Timer::ResponseHeader, wait)));
        assert_eq!(deadline.take_expired(), None);
    }

    #[test]
    fn an_expired_limit_does_not_affect_the_next_input() {
        let (clock, deadline) = (Clock::default(), Deadline::default());
        deadline.start(&clock, Timer::KeepAlive, Duration::ZERO);
        clock.advance_to(Duration::from_secs(1));
        deadline.check(clock.now());

        deadline.start(&clock, Timer::ResponseHeader, Duration::from_secs(9));
        assert_eq!(deadline.take_expired(), None);

        deadline.start(&clock, Timer::KeepAlive, Duration::ZERO);
        clock.advance_to(Duration::from_secs(2));
        deadline.check(clock.now());
        deadline.stop();
        assert_eq!(deadline.take_expired(), None);
    }

    #[test]
    fn no_other_timer_overwrites_the_total() {
        let (clock, deadline) = (Clock::default(), Deadline::default());
        let second = Duration::from_secs(1);
        deadline.start_total(&clock, Some(second));
        deadline.start(&clock, Timer::ResponseWrite, 9 * second);
        assert_eq!(deadline.running(), Some(Timer::ResponseWrite));

        clock.advance_to(2 * second);
        deadline.check(clock.now());
        deadline.start(&clock, Timer::ResponseWrite, 9 * second);
        deadline.stop();
        assert_eq!(deadline.expired(), Some(Timer::Total));
        assert_eq!(deadline.take_expired(), Some((Timer::Total, second)));
        assert_eq!(deadline.take_expired(), None);

        deadline.start_total(&clock, Some(second));
        deadline.clear();
        clock.advance_to(9 * second);
        deadline.check(clock.now());
        assert_eq!(deadline.expired(), None);
    }

    #[test]
    fn an_alarm_wakes_once_and_leaves_the_timer_running() {
        let (clock, deadline) = (Clock::default(), Deadline::default());
        let count = Arc::new(Count::default());
        deadline.watch(&Waker::from(Arc::clone(&count)));
        deadline.start(&clock, Timer::ResponseHeader, Duration::from_secs(9));
        deadline.set_alarm(clock.after(Duration::from_secs(1)));

        for seconds in [1, 2, 3] {
            clock.advance_to(Duration::from_secs(seconds));
            deadline.check(clock.now());
        }

        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!(deadline.running(), Some(Timer::ResponseHeader));
    }

    #[test]
    fn a_stopped_deadline_never_expires() {
        let (clock, deadline) = (Clock::default(), Deadline::default());
        deadline.start(&clock, Timer::KeepAlive, Duration::ZERO);
        deadline.stop();

        clock.advance_to(Duration::from_secs(9));
        deadline.check(clock.now());
        assert_eq!(deadline.expired(), None);
    }
}
