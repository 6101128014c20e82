//! The state of one target, shared by all workers.

use crate::latency::LatencyEwma;
use crate::target_load::TargetLoad;
use arc_swap::ArcSwap;
use proxy_health::{
    CauseChange, ConnectBackoff, HealthCause, HealthCauses, HealthFlags, OutlierState,
    RecentResults,
};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::SystemTime;

/// The state of one target, shared by all workers and kept across reloads while upstream, address
/// and settings stay the same. Written by the control thread, read by workers.
#[derive(Debug)]
pub struct TargetState {
    address: Option<SocketAddr>,
    flags: HealthFlags,
    /// One for each active cause, except draining.
    failures: ArcSwap<Vec<(HealthCause, Unhealthy)>>,
    /// Time when it last started to accept requests again; 0 if it always did.
    serving_since_ns: AtomicU64,
    overridden_weight: AtomicU32,
    load: TargetLoad,
    latency: LatencyEwma,
    outlier: OutlierState,
    connect_backoff: ConnectBackoff,
    results: RecentResults,
}

/// The reason why a target is unhealthy, with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unhealthy {
    /// The last failure, for operators.
    pub last_error: String,
    /// Time when the target became unhealthy.
    pub since: SystemTime,
}

/// Represents a weight without an override.
const NO_OVERRIDE: u32 = u32::MAX;

impl Default for TargetState {
    /// A target without an address: its name is not resolved.
    fn default() -> Self {
        Self::new(None)
    }
}

impl TargetState {
    /// A healthy target at `address`.
    #[must_use]
    pub fn at(address: SocketAddr) -> Self {
        Self::new(Some(address))
    }

    fn new(address: Option<SocketAddr>) -> Self {
        Self {
            address,
            flags: HealthFlags::default(),
            failures: ArcSwap::default(),
            serving_since_ns: AtomicU64::default(),
            overridden_weight: AtomicU32::new(NO_OVERRIDE),
            load: TargetLoad::default(),
            latency: LatencyEwma::default(),
            outlier: OutlierState::default(),
            connect_backoff: ConnectBackoff::default(),
            results: RecentResults::default(),
        }
    }

    /// Returns the causes for which the target is unhealthy; empty if it is healthy.
    #[inline]
    pub fn causes(&self) -> HealthCauses {
        self.flags.causes()
    }

    /// Its address; `None` while its name has none. It never changes: another address is another
    /// target.
    #[inline]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Sets `cause`, which the caller owns, with its failure. The time of the cause's first
    /// failure is kept.
    pub fn fail(&self, cause: HealthCause, last_error: &str, now: SystemTime) -> CauseChange {
        self.failures.rcu(|failures| {
            let mut next = Vec::clone(failures);
            let known = next.iter().position(|(of, _)| *of == cause);
            let since = known.map_or(now, |at| next.remove(at).1.since);
            // The newest failure is last.
            let last_error = last_error.to_owned();
            next.push((cause, Unhealthy { last_error, since }));
            next
        });
        self.flags.set(cause)
    }

    /// Clears `cause`, which the caller owns, and no other.
    pub fn clear(&self, cause: HealthCause) -> CauseChange {
        let change = self.flags.clear(cause);
        if change.before.contains(cause) {
            self.failures.rcu(|failures| {
                let left = failures.iter().filter(|(of, _)| *of != cause);
                left.cloned().collect::<Vec<_>>()
            });
        }
        change
    }

    /// Sets or clears [`HealthCause::Draining`].
    pub fn drain(&self, draining: bool) -> CauseChange {
        if draining {
            self.flags.set(HealthCause::Draining)
        } else {
            self.flags.clear(HealthCause::Draining)
        }
    }

    /// The latest failure, and the start of the unhealthy state, if the target is unhealthy.
    pub fn unhealthy_reason(&self) -> Option<Unhealthy> {
        let failures = self.failures.load();
        let (_, newest) = failures.last()?;
        let since = failures.iter().map(|(_, failure)| failure.since).min();
        Some(Unhealthy {
            last_error: newest.last_error.clone(),
            since: since.unwrap_or(newest.since),
        })
    }

    /// The weight that overrides the configured one until the next reload.
    #[inline]
    pub fn overridden_weight(&self) -> Option<u32> {
        let weight = self.overridden_weight.load(Ordering::Relaxed);
        (weight != NO_OVERRIDE).then_some(weight)
    }

    /// Overrides the configured weight, or ends that.
    pub fn override_weight(&self, weight: Option<u32>) {
        let weight = weight.unwrap_or(NO_OVERRIDE);
        self.overridden_weight.store(weight, Ordering::Relaxed);
    }

    /// Notes that it takes requests again since `now_ns` of the process clock: its slow start begins.
    pub fn serves_since(&self, now_ns: u64) {
        self.serving_since_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Time when it last started to accept requests again, in nanoseconds of the process clock; 0
    /// if it always did.
    #[inline]
    pub fn serving_since_ns(&self) -> u64 {
        self.serving_since_ns.load(Ordering::Relaxed)
    }

    /// Active requests of all workers.
    #[inline]
    pub fn load(&self) -> &TargetLoad {
        &self.load
    }

    /// Latency of its responses.
    #[inline]
    pub fn latency(&self) -> &LatencyEwma {
        &self.latency
    }

    /// State of its passive health check.
    #[inline]
    pub fn outlier(&self) -> &OutlierState {
        &self.outlier
    }

    /// Backoff after failed connects.
    #[inline]
    pub fn connect_backoff(&self) -> &ConnectBackoff {
        &self.connect_backoff
    }

    /// The last results of its health checks.
    pub fn results(&self) -> &RecentResults {
        &self.results
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_failing_target_keeps_the_time_of_its_first_failure() {
        let target = TargetState::default();
        let (first, later) = (SystemTime::UNIX_EPOCH, Duration::from_secs(5));
        target.fail(HealthCause::Dns, "refused", first);
        target.fail(HealthCause::Dns, "timed out", first + later);

        let reason = target.unhealthy_reason().unwrap();
        assert_eq!(
            (reason.last_error.as_str(), reason.since),
            ("timed out", first)
        );
        assert!(!target.causes().is_healthy());

        target.clear(HealthCause::Dns);
        assert!(target.causes().is_healthy() && target.unhealthy_reason().is_none());
    }

    #[test]
    fn a_cause_stays_when_another_is_cleared() {
        let target = TargetState::default();
        let (first, later) = (SystemTime::UNIX_EPOCH, Duration::from_secs(5));
        target.fail(HealthCause::ActiveCheck, "status 500", first);
        target.fail(HealthCause::Ejection, "5 failures", first + later);
        let last_error = || target.unhealthy_reason().unwrap().last_error;
        assert_eq!(last_error(), "5 failures");

        let change = target.clear(HealthCause::Ejection);

        assert!(!change.became_healthy());
        assert_eq!(last_error(), "status 500");
        assert!(target.clear(HealthCause::ActiveCheck).became_healthy());
    }

    #[test]
    fn a_draining_target_is_not_unhealthy() {
        let target = TargetState::default();
        target.drain(true);

        assert!(target.causes().is_healthy() && !target.causes().takes_requests());
        assert!(target.unhealthy_reason().is_none());
        target.drain(false);
        assert!(target.causes().takes_requests());
    }
}
