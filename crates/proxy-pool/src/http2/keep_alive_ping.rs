//! Liveness checks of silent connections.

use super::connect_notify::ConnectNotify;
use proxy_clock::{Clock, Tick};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

/// Silence after a request was sent that causes a ping.
const SUSPECT_AFTER: Duration = Duration::from_secs(10);

/// Silence of an idle connection that causes a ping. Some targets allow only one ping every five
/// minutes.
const IDLE_PING_INTERVAL: Duration = Duration::from_mins(5);

/// Maximum time for the reply to a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// State shared by the task that drives a connection and the requests on it.
#[derive(Debug)]
pub(super) struct KeepAlivePing {
    clock: Rc<Clock>,
    received_at: Cell<Tick>,
    /// Beginning of a request's wait without any data from the target.
    waiting: Cell<Option<Tick>>,
    over: Cell<bool>,
    /// Data has arrived, so the target's settings are known: they are its first data.
    begun: Cell<bool>,
    notify: Rc<ConnectNotify>,
    ping: Cell<Ping>,
    driver: RefCell<Option<Waker>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ping {
    None,
    Wanted,
    Sent(Tick),
    Unanswered,
}

impl KeepAlivePing {
    /// `notify` is triggered by the first data.
    pub(super) fn new(clock: Rc<Clock>, notify: Rc<ConnectNotify>) -> Self {
        Self {
            received_at: Cell::new(clock.now()),
            clock,
            waiting: Cell::new(None),
            over: Cell::new(false),
            begun: Cell::new(false),
            notify,
            ping: Cell::new(Ping::None),
            driver: RefCell::default(),
        }
    }

    #[inline]
    pub(super) fn received(&self) {
        self.received_at.set(self.clock.now());
        self.waiting.set(None);
        if !self.begun.replace(true) {
            self.notify.notify_all();
        }
    }

    pub(super) fn clock(&self) -> &Rc<Clock> {
        &self.clock
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun.get()
    }

    /// Waits for the first data, and lets the driver process it before the waiting task continues.
    pub(super) async fn settings_received(&self) {
        while !self.begun.get() {
            self.notify.changed().await;
        }
    }

    #[inline]
    pub(super) fn request_sent(&self) {
        if self.waiting.get().is_none() {
            self.waiting.set(Some(self.clock.now()));
        }
    }

    pub(super) fn end(&self) {
        self.over.set(true);
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.get()
    }

    pub(super) fn watch(&self, waker: &Waker) {
        let mut held = self.driver.borrow_mut();
        if !held.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *held = Some(waker.clone());
        }
    }

    /// Requests a ping if a connection in use has been silent for too long.
    pub(super) fn check(&self) {
        let now = self.clock.now();
        let suspicious = |since: Tick| is_past(since, SUSPECT_AFTER, now);
        let next = match self.ping.get() {
            Ping::None if self.waiting.get().is_some_and(suspicious) => Ping::Wanted,
            Ping::None if is_past(self.received_at.get(), IDLE_PING_INTERVAL, now) => Ping::Wanted,
            Ping::Sent(at) if is_past(at, PING_TIMEOUT, now) => Ping::Unanswered,
            Ping::None | Ping::Wanted | Ping::Sent(_) | Ping::Unanswered => return,
        };
        self.ping.set(next);
        let driver = self.driver.borrow().clone();
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// Returns true if a ping should be sent now.
    pub(super) fn takes_ping(&self) -> bool {
        let wanted = self.ping.get() == Ping::Wanted;
        if wanted {
            self.ping.set(Ping::Sent(self.clock.now()));
        }
        wanted
    }

    pub(super) fn awaits_pong(&self) -> bool {
        matches!(self.ping.get(), Ping::Sent(_))
    }

    pub(super) fn answered(&self) {
        self.ping.set(Ping::None);
        self.received();
    }

    pub(super) fn is_dead(&self) -> bool {
        self.ping.get() == Ping::Unanswered
    }
}

/// Returns true if more than `time` has passed since `since`.
pub(super) fn is_past(since: Tick, time: Duration, now: Tick) -> bool {
    let ticks = time.as_millis() / proxy_clock::TICK.as_millis();
    u128::from(now.0.saturating_sub(since.0)) > ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep_alive() -> (KeepAlivePing, Rc<Clock>) {
        let clock = Rc::<Clock>::default();
        (KeepAlivePing::new(Rc::clone(&clock), Rc::default()), clock)
    }

    #[test]
    fn silence_after_a_request_triggers_a_ping() {
        let (keep_alive, clock) = keep_alive();
        keep_alive.request_sent();
        clock.advance_to(SUSPECT_AFTER);
        keep_alive.check();
        assert!(!keep_alive.takes_ping());

        clock.advance_to(SUSPECT_AFTER * 2);
        keep_alive.check();
        assert!(keep_alive.takes_ping());
        assert!(!keep_alive.takes_ping());
        clock.advance_to(SUSPECT_AFTER * 2 + PING_TIMEOUT * 2);
        keep_alive.check();
        assert!(keep_alive.is_dead());
    }

    #[test]
    fn an_answered_ping_keeps_the_connection() {
        let (keep_alive, clock) = keep_alive();
        keep_alive.request_sent();
        clock.advance_to(SUSPECT_AFTER * 2);
        keep_alive.check();
        assert!(keep_alive.takes_ping() && keep_alive.awaits_pong());
        keep_alive.answered();
        clock.advance_to(SUSPECT_AFTER * 9);
        keep_alive.check();
        assert!(!keep_alive.takes_ping() && !keep_alive.is_dead());
    }

    #[test]
    fn an_idle_connection_is_pinged_only_after_minutes() {
        let (keep_alive, clock) = keep_alive();
        keep_alive.request_sent();
        keep_alive.received();
        clock.advance_to(IDLE_PING_INTERVAL);
        keep_alive.check();
        assert!(!keep_alive.takes_ping());
        clock.advance_to(IDLE_PING_INTERVAL * 2);
        keep_alive.check();
        assert!(keep_alive.takes_ping());
    }
}
