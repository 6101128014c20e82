//! The timer that wakes a worker at each tick.

use proxy_clock::TICK;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::unix::AsyncFd;

/// A kernel timer. The runtime's own would read the clock several times whenever a worker sleeps or
/// wakes, which under low load it does for every request.
#[derive(Debug)]
pub(crate) struct TickTimer(AsyncFd<OwnedFd>);

impl TickTimer {
    /// A timer that fires once per [`TICK`].
    ///
    /// # Errors
    /// Errors of `timerfd_create(2)`, such as a lack of file descriptors.
    pub(crate) fn start() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let tick = Timespec::try_from(TICK).map_err(io::Error::other)?;
        let times = Itimerspec {
            it_interval: tick,
            it_value: tick,
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe for what could close its descriptor meanwhile; an OwnedFd cannot"
        )]
        AsyncFd::new(timer).map(Self)
    }

    /// Waits for the next tick; missed ticks are merged with it.
    ///
    /// # Errors
    /// Errors of `read(2)`.
    pub(crate) async fn next(&self) -> io::Result<()> {
        let mut count = [0; 8];
        loop {
            let mut ready = self.0.readable().await?;
            let read = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut count)?));
            if let Ok(read) = read {
                return read.map(drop);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::time::{ClockId, clock_gettime};

    #[test]
    fn ticks_are_consecutive() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        let now = || std::time::Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap();
        let began = now();
        runtime.block_on(async {
            let beat = TickTimer::start().unwrap();
            for _ in 0..3 {
                beat.next().await.unwrap();
            }
        });

        assert!(now().saturating_sub(began) >= TICK * 2);
    }
}
