//! Attempts of a request on targets: their counts, metrics and passive health checks.

use super::Exchange;
use crate::failure::connect_problem;
use crate::health::{outlier, reachability};
use crate::record::completion::CompletionGuard;
use crate::worker::active_plan::{ActivePlan, ActiveUpstream};
use http::HeaderMap;
use proxy_errors::Blame;
use proxy_plan::UpstreamPlan;
use proxy_pool::ConnectError;
use proxy_telemetry::TargetMetrics;

impl Exchange {
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
        if self.completion.record.trace.is_some() {
            self.begin_attempt_span(upstream, target);
        }
    }

    /// Begins the span of an attempt, if the request has one.
    #[cold]
    fn begin_attempt_span(&mut self, upstream: usize, target: u16) {
        let CompletionGuard { worker, record, .. } = &mut *self.completion;
        let span = record.trace.as_mut().and_then(|trace| trace.span.as_mut());
        let names = target_names(&self.active, upstream, target);
        if let (Some(span), Some((upstream, target))) = (span, names) {
            let now = worker.time.elapsed();
            span.begin_attempt(now, upstream, target, record.retry.cause, &worker.ids);
        }
    }

    /// Makes the attempt's span the parent in the fields for the target, if the request has one.
    #[cold]
    pub(crate) fn write_parent(&mut self, headers: &mut HeaderMap) {
        let trace = self.completion.record.trace.as_mut();
        if let Some(span) = trace.and_then(|trace| trace.span.as_mut()) {
            span.write_parent(headers);
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
        let trace = self.completion.record.trace.as_mut();
        if let Some(span) = trace.and_then(|trace| trace.span.as_mut())
            && let Some((_, target)) = target_names(&self.active, upstream, target)
        {
            span.move_attempt(target);
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

/// The name of an upstream, and the address of one of its targets.
fn target_names(active: &ActivePlan, upstream: usize, target: u16) -> Option<(&str, &str)> {
    let upstream = active.plan.upstreams().get(upstream)?;
    let target = upstream.targets.get(usize::from(target))?;
    Some((&upstream.name, &target.label))
}
