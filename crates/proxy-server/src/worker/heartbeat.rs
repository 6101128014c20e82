//! Heartbeats of workers: each counts its ticks, and the control thread checks that the count
//! moves.

use proxy_telemetry::{Gauge, Registry, names};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Maximum silence of a worker before the process is not ready.
pub(crate) const SILENCE_LIMIT: Duration = Duration::from_secs(3);

/// The tick count of one worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heartbeat(Arc<AtomicU64>);

/// The control thread's record of a heartbeat.
#[derive(Debug)]
pub(crate) struct HeartbeatMonitor {
    worker: usize,
    heartbeat: Heartbeat,
    last_count: u64,
    /// Time when the count was found changed.
    changed_at: Duration,
    is_silent: bool,
    age_seconds: Arc<Gauge>,
}

impl Heartbeat {
    /// Counts a tick.
    pub(crate) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl HeartbeatMonitor {
    pub(crate) fn new(
        worker: usize,
        heartbeat: Heartbeat,
        registry: &Registry,
        now: Duration,
    ) -> Self {
        let label = worker.to_string();
        Self {
            worker,
            heartbeat,
            last_count: 0,
            changed_at: now,
            is_silent: false,
            age_seconds: registry.gauge(&names::WORKER_HEARTBEAT_AGE_SECONDS, [&label]),
        }
    }

    /// Returns true if the worker has been silent for too long at `now`, by the monotonic clock.
    /// Updates the metric, and logs a change.
    pub(crate) fn is_silent(&mut self, now: Duration) -> bool {
        let count = self.heartbeat.0.load(Ordering::Relaxed);
        if self.last_count != count {
            (self.last_count, self.changed_at) = (count, now);
        }
        let age = now.saturating_sub(self.changed_at);
        self.age_seconds.set(age.as_secs());
        let silent = SILENCE_LIMIT <= age;
        if silent && !self.is_silent {
            let seconds = age.as_secs();
            tracing::error!(worker = self.worker, seconds, "a worker does not respond");
        }
        if !silent && self.is_silent {
            tracing::info!(worker = self.worker, "the worker responds again");
        }
        self.is_silent = silent;
        silent
    }
}

/// The monotonic clock, by which the control thread measures silence.
pub(crate) fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
}

/// The monotonic clock in nanoseconds: the clock of all state shared by threads.
pub(crate) fn now_ns() -> u64 {
    u64::try_from(now().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_telemetry::RegistrySettings;

    #[test]
    fn a_worker_without_ticks_is_reported_as_silent() {
        const SECOND: Duration = Duration::from_secs(1);
        let heartbeat = Heartbeat::default();
        let registry = Registry::new(RegistrySettings {
            reasons: &[],
            max_series: 10,
        });
        let age = registry.gauge(&names::WORKER_HEARTBEAT_AGE_SECONDS, ["7"]);
        let mut monitor = HeartbeatMonitor::new(7, heartbeat.clone(), &registry, SECOND);

        heartbeat.beat();
        assert!(!monitor.is_silent(3 * SECOND));
        assert!(!monitor.is_silent(5 * SECOND));
        assert_eq!(age.get(), 2);
        assert!(monitor.is_silent(7 * SECOND));
        assert_eq!(age.get(), 4);
        heartbeat.beat();
        assert!(!monitor.is_silent(8 * SECOND));
        assert_eq!(age.get(), 0);
    }
}
