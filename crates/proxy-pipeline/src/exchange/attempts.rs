//! Attempts of a request on targets: their counts, metrics and passive health checks.

use super::Exchange;
use crate::failure::connect_problem;
use crate::health::{outlier, reachability};
use crate::worker::active_plan::ActiveUpstream;
use proxy_errors::Blame;
use proxy_plan::UpstreamPlan;
use proxy_pool::ConnectError;
use proxy_telemetry::TargetMetrics;

impl Exchange {
    /// Records an attempt on this target.
    pub(crate) fn record_attempt(&mut self, upstream: usize, target: u16) {
        self.completion.leave_target();
        if self.completion.record.parts.upstream.is_none() {
            self.completion.client.earn_reset();
        }
        self.completion.record.parts.upstream = Some((upstream, target));
        self.completion.record.load = self.active.begin_request(upstream, target);
        if let Some((upstream, metrics)) = self.last_attempt() {
            upstream.metrics.attempts.add(1);
            metrics.requests.add(1);
        }
    }

    /// Moves the attempt to another address of the same name that connected first.
    #[cold]
    pub(crate) fn move_attempt(&mut self, target: u16) {
        let Some((upstream, _)) = self.completion.record.parts.upstream else {
            return;
        };
        self.completion.leave_target();
        self.completion.record.parts.upstream = Some((upstream, target));
        self.completion.record.load = self.active.begin_request(upstream, target);
        if let Some((_, metrics)) = self.last_attempt() {
            metrics.requests.add(1);
        }
    }

    /// Records a failed connect to one address of a DNS name when another one is tried.
    #[cold]
    pub(crate) fn address_failed(
        &self,
        upstream: &UpstreamPlan,
        target: u16,
        fault: &ConnectError,
    ) {
        let reason = connect_problem(fault, &upstream.name, "").reason();
        if reason.blame() != Blame::Target {
            return;
        }
        reachability::failed(self.worker(), upstream, target, fault);
        let active = self.active.upstreams.get(upstream.index);
        let metrics = active.and_then(|active| active.targets.get(usize::from(target)));
        if let Some(metrics) = metrics {
            metrics.failures.add(1);
        }
        outlier::record(self.worker(), upstream, target, true);
    }

    /// Records that the last target is connected; until then the request waits.
    pub(crate) fn connected(&mut self) {
        self.completion.enter_target();
    }

    pub(crate) fn last_attempt(&self) -> Option<(&ActiveUpstream, &TargetMetrics)> {
        let (upstream, target) = self.completion.record.parts.upstream?;
        let upstream = self.active.upstreams.get(upstream)?;
        Some((upstream, upstream.targets.get(usize::from(target))?))
    }

    /// Reports the last attempt to passive health checks, and counts it if it failed.
    pub(crate) fn observe_outcome(&self, upstream: &UpstreamPlan, failed: bool) {
        if failed && let Some((_, target)) = self.last_attempt() {
            target.failures.add(1);
        }
        if let Some((_, target)) = self.completion.record.parts.upstream {
            outlier::record(self.worker(), upstream, target, failed);
        }
    }
}
