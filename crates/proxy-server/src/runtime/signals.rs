//! Signals of the process, as events.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// An event that a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Reload,
    ReopenLogs,
    Upgrade,
    Drain,
    Quit,
}

#[derive(Debug)]
pub(crate) struct Signals {
    hangup: Signal,
    user1: Signal,
    user2: Signal,
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            user1: signal(SignalKind::user_defined1())?,
            user2: signal(SignalKind::user_defined2())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// Waits for a signal that ends the process: [`Event::Drain`] or [`Event::Quit`]. Other signals
    /// remain pending for [`next`](Self::next).
    pub(crate) async fn end(&mut self) -> Event {
        tokio::select! {
            _ = self.terminate.recv() => Event::Drain,
            _ = self.interrupt.recv() => Event::Drain,
            _ = self.quit.recv() => Event::Quit,
        }
    }

    pub(crate) async fn next(&mut self) -> Event {
        tokio::select! {
            _ = self.hangup.recv() => Event::Reload,
            _ = self.user1.recv() => Event::ReopenLogs,
            _ = self.user2.recv() => Event::Upgrade,
            _ = self.terminate.recv() => Event::Drain,
            _ = self.interrupt.recv() => Event::Drain,
            _ = self.quit.recv() => Event::Quit,
        }
    }
}
