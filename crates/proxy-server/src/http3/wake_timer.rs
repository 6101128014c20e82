//! The kernel timer that wakes an endpoint for the timeouts of QUIC.

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;

/// Minimum time of the timer: an expired deadline fires at once.
const SHORTEST_WAIT: Duration = Duration::from_micros(1);

/// A kernel timer that fires once. The worker's own timers are too coarse for retransmissions of
/// QUIC.
#[derive(Debug)]
pub(super) struct WakeTimer {
    timer: AsyncFd<OwnedFd>,
    set_to: Option<Instant>,
}

impl WakeTimer {
    /// # Errors
    /// Errors of `timerfd_create(2)`, such as a lack of file descriptors.
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe for what could close its descriptor meanwhile; an OwnedFd cannot"
        )]
        let timer = AsyncFd::new(timer)?;
        Ok(Self {
            timer,
            set_to: None,
        })
    }

    /// Sets the timer to fire at `at`; `None` stops it.
    ///
    /// # Errors
    /// Errors of `timerfd_settime(2)`.
    pub(super) fn set(&mut self, at: Option<Instant>, now: Instant) -> io::Result<()> {
        if self.set_to == at {
            return Ok(());
        }
        self.set_to = at;
        let wait = at.map_or(Duration::ZERO, |at| {
            at.saturating_duration_since(now).max(SHORTEST_WAIT)
        });
        let times = Itimerspec {
            it_interval: Timespec::try_from(Duration::ZERO).map_err(io::Error::other)?,
            it_value: Timespec::try_from(wait).map_err(io::Error::other)?,
        };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &times)?;
        Ok(())
    }

    /// Ready when the timer has fired.
    pub(super) fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut count = [0; 8];
        loop {
            let mut ready = ready!(self.timer.poll_read_ready(cx))?;
            let read = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut count)?));
            if let Ok(read) = read {
                self.set_to = None;
                return Poll::Ready(read.map(drop));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test of time")]
    fn the_timer_fires_once_when_it_is_due() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_io().build().unwrap();
        runtime.block_on(async {
            let mut timer = WakeTimer::new().unwrap();
            let now = Instant::now();
            for wait in [Duration::from_millis(20), Duration::ZERO] {
                timer.set(Some(now + wait), now).unwrap();
                poll_fn(|cx| timer.poll_fired(cx)).await.unwrap();
                assert!(Instant::now() >= now + wait);
            }
            timer.set(Some(now), now).unwrap();
            timer.set(None, now).unwrap();
            let fired = poll_fn(|cx| Poll::Ready(timer.poll_fired(cx).is_ready())).await;
            assert!(!fired);
        });
    }
}
