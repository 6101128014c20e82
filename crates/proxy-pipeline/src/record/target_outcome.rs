//! The outcome at the target of a response with a body that had not arrived with its head.

use crate::health::outlier;
use crate::record::completion::CompletionGuard;
use crate::record::exchange_record::TargetOutcome;
use crate::worker::plan_parts::Origin;
use proxy_errors::{Problem, SentRequest};

impl CompletionGuard {
    /// Records the outcome that was not recorded with the head. A client that leaves, and a target
    /// that a reload has removed, count nothing.
    #[cold]
    pub(super) fn record_target_outcome(&mut self) {
        let Origin::Plan(active) = &self.origin else {
            return;
        };
        let Some((index, position)) = self.record.parts.upstream else {
            return;
        };
        let failure = self.record.problem.as_deref().map(Problem::reason);
        let upload = self.record.upload.as_deref();
        let request = SentRequest {
            is_whole: upload.is_none_or(|upload| upload.complete.get()),
            // A client that reads slowly may have used the time up.
            had_time: false,
        };
        let failed = match failure {
            Some(reason) if reason.blame().is_target(request) => true,
            Some(_) => return,
            None => false,
        };
        if !failed && self.record.target_outcome == TargetOutcome::OnFailure {
            return;
        }
        if let (Some(reason), Some(upstream)) = (failure, active.upstreams.get(index)) {
            let reason = u16::try_from(reason.index()).unwrap_or(u16::MAX);
            upstream.metrics.failed(reason);
            if let Some(target) = upstream.targets.get(usize::from(position)) {
                target.failures.add(1);
            }
        }
        if let Some(upstream) = active.plan.upstreams().get(index) {
            outlier::record(&self.worker, upstream, position, failed);
        }
        if let Some(permit) = self.record.breaker.take() {
            let time = &self.worker.time;
            let now_ns = time.process_ns(time.elapsed());
            if failed {
                permit.failure(now_ns);
            } else {
                permit.success(now_ns);
            }
        }
    }
}
