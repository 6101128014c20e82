//! Regular work of the control loop: memory, workers, rate limits, ejections.

use super::Server;
use crate::observe::memory_watch;
use crate::targets::reconnection::Observers;
use crate::targets::target_health::TargetHealth;
use crate::worker::worker_pool::WorkerHealth;
use crate::worker::{Command, heartbeat};
use std::time::Duration;

impl Server {
    /// Measures the memory in use, and reports when load shedding begins or ends.
    pub(crate) fn check_memory(&mut self) {
        let change = self.memory.check();
        memory_watch::log_change(change, &mut self.logs);
    }

    /// Time until [`Self::check_memory`] is due.
    pub(crate) fn memory_interval(&self) -> Duration {
        self.memory.interval()
    }

    /// Maintains rate limits without requests. Must be called once per
    /// [`SETTLE_INTERVAL`](crate::reload::limit_registry::SETTLE_INTERVAL).
    pub(crate) fn settle_rate_limits(&self) {
        self.route_limits.settle(self.process_ns());
    }

    /// Counts the keys that full rate limits have dropped, and reports changes of breakers.
    pub(crate) fn count_evictions(&mut self) {
        self.route_limits.count_evictions();
        self.gauges.breakers.report(&self.common.registry);
    }

    /// Checks that every worker runs. Returns the number of one that has died.
    pub(crate) fn check_workers(&mut self) -> Option<usize> {
        let WorkerHealth { silent, died } = self.workers.check(heartbeat::now());
        self.common.shared.lifecycle.set_silent_workers(silent);
        died
    }

    /// Returns targets to load balancing after their ejection has ended.
    pub(crate) fn end_ejections(&mut self) {
        if TargetHealth::end_ejections(&self.plan) {
            self.refresh();
        }
        let shared = &self.common.shared;
        let observers = Observers {
            changes: &shared.target_changes,
            wake: &shared.health_changes,
        };
        let loaded_tls = self.certificates.loaded();
        self.reconnections
            .begin(&self.plan, loaded_tls, &self.limits, observers);
    }

    /// Makes every worker recompute its healthy targets, and logs the changes.
    pub(crate) fn refresh(&mut self) {
        for event in self.health.publish() {
            event.log();
            let (level, message, fields) = event.record();
            self.log_event(level, message, &fields);
        }
        self.workers.send_all(|| Command::Refresh);
    }

    /// Frees replaced plans that no request uses.
    pub(crate) fn free_former_plans(&mut self) {
        self.former_plans.free(&self.disk);
    }
}
