//! Decides on the next step of a rollout, for the scheduler.

use crate::access::Access;
use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::rollout::command::{Batch, BatchState, Rollout, RolloutChange};
use crate::rollout::condition::MetricAnswer;
use crate::rollout::figures::Comparison;
use crate::rollout::gate::{GateFailure, GateVerdict};
use crate::rollout::reason::{REJECTED, REVOKED, TOO_LITTLE_DATA};
use crate::rollout::state::{RolloutEvent, RolloutState};
use crate::rollout::strategy::OnFailure;
use jiff::{SignedDuration, Timestamp};
use std::fmt::Write as _;

/// State of an active rollout, as read from the database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// True if the bundle was revoked.
    pub is_revoked: bool,
    /// True during a freeze of the project's policy.
    pub is_frozen: bool,
    /// True shortly after an outage of the control plane, in which nodes could not report: no batch is
    /// late.
    pub is_after_outage: bool,
    /// Counts of the current batch's nodes; `None` without a batch.
    pub batch: Option<BatchCounts>,
    /// A node of the batch that rejected the bundle.
    pub rejection: Option<Rejection>,
    /// Figures for the gate; `None` if the rollout has no gate, or no node has switched.
    pub compared: Option<Comparison>,
    /// Latest answer of the metrics server; `None` without a condition, or without a recent answer.
    pub metric: Option<MetricAnswer>,
    /// Progress of a rollback; `None` outside one.
    pub reverting: Option<RevertProgress>,
}

/// Progress of a batch, by its nodes' reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchCounts {
    /// Number of nodes that still exist.
    pub nodes: i64,
    /// Number of nodes without an order.
    pub unordered: i64,
    /// Number of online nodes that run the bundle by their newest order.
    pub ready: i64,
    /// Number of ready nodes with a report since [`Rollout::reports_since`].
    pub reported: i64,
    /// Number of offline nodes.
    pub offline: i64,
}

/// Rejection of the bundle by a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Name of the node.
    pub node: String,
    /// First diagnostic of the rejection; `None` if there was none.
    pub diagnostic: Option<String>,
}

/// Progress of a rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevertProgress {
    /// A switched node has no order to revert yet.
    Unordered,
    /// All nodes have orders to revert, and an online node has not accepted its order.
    Waiting,
    /// The rollback can end; counts of nodes that have not reverted.
    Rest(RevertCounts),
}

/// Number of nodes that have not reverted, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RevertCounts {
    /// Online nodes that do not run the ordered bundle.
    pub waiting: i64,
    /// Offline nodes; they revert by their order when they return.
    pub offline: i64,
    /// Nodes without a bundle to revert to.
    pub without_way: i64,
}

/// Decision on the batch under way.
enum BatchStep {
    Change(Box<Result<RolloutChange, Refusal>>),
    /// With the reason, as a noun.
    Wait(String),
}

impl BatchStep {
    fn change(change: Result<RolloutChange, Refusal>) -> Self {
        Self::Change(Box::new(change))
    }
}

impl Rollout {
    /// Returns the next step; `None` to wait.
    ///
    /// # Errors
    ///
    /// [`Refusal`] unless the actor is the control plane itself.
    pub fn advance(
        &self,
        actor: &Actor,
        seen: &Observation,
        now: Timestamp,
    ) -> Result<Option<RolloutChange>, Refusal> {
        actor.require(Access::System, self.tenant)?;
        match self.state {
            RolloutState::Running | RolloutState::Paused if seen.is_revoked => {
                let reason = REVOKED.to_owned();
                self.end_batch(RolloutEvent::Fail, reason, now).map(Some)
            }
            RolloutState::Running => self.run(seen, now).transpose(),
            RolloutState::Failed => self.after(RolloutEvent::RollBack, now).map(Some),
            RolloutState::RollingBack => self.revert(seen, now).transpose(),
            RolloutState::Planned
            | RolloutState::AwaitingApproval
            | RolloutState::Paused
            | RolloutState::Completed
            | RolloutState::RolledBack
            | RolloutState::Cancelled => Ok(None),
        }
    }

    fn run(&self, seen: &Observation, now: Timestamp) -> Option<Result<RolloutChange, Refusal>> {
        if self.not_before.is_some_and(|time| now < time) {
            return None;
        }
        let Some(batch) = self.batch_under_way() else {
            let is_held = seen.is_frozen && self.opens_batch(now);
            return (!is_held).then(|| self.open_next(now));
        };
        let counts = seen.batch.unwrap_or_default();
        if counts.unordered > 0 {
            return Some(self.after(RolloutEvent::OrderNodes, now));
        }
        if let Some(Rejection { node, diagnostic }) = &seen.rejection {
            let why = diagnostic.as_deref().unwrap_or("without a diagnostic");
            return Some(self.fail(format!("node {node}{REJECTED}{why}"), now));
        }
        match self.judge_batch(batch, counts, seen, now) {
            BatchStep::Change(change) => Some(*change),
            BatchStep::Wait(_) => None,
        }
    }

    /// Reason that the batch under way has not passed yet, as a noun; `None` if there is no such batch, or
    /// its next step is due.
    pub fn waits_for(&self, seen: &Observation, now: Timestamp) -> Option<String> {
        let counts = seen.batch.filter(|counts| counts.unordered == 0)?;
        let is_running = self.state == RolloutState::Running;
        let batch = self.batch_under_way().filter(|_| is_running)?;
        match self.judge_batch(batch, counts, seen, now) {
            BatchStep::Change(_) => None,
            BatchStep::Wait(reason) => Some(reason),
        }
    }

    fn judge_batch(
        &self,
        batch: &Batch,
        counts: BatchCounts,
        seen: &Observation,
        now: Timestamp,
    ) -> BatchStep {
        // If all nodes of the batch were deleted, there is nothing to judge.
        let verdict = match counts.nodes {
            0 => GateVerdict::Passed,
            _ => self.verdict(seen),
        };
        if let GateVerdict::Failed(failure) = &verdict
            && failure.is_certain()
        {
            return BatchStep::change(self.fail(failure.to_string(), now));
        }
        let deadline = batch.opened_at + seconds(self.strategy.deadline_secs);
        let is_late = deadline <= now && !seen.is_after_outage;
        let missing = counts.nodes - counts.ready;
        // A batch in which no node runs the bundle proves nothing, whatever number of missing nodes
        // is tolerated.
        let has_ready = counts.ready > 0 || counts.nodes == 0;
        let is_enough = has_ready && missing <= self.strategy.max_unavailable;
        // Waits for online nodes; offline ones count against `max_unavailable`.
        let is_settled = is_enough && (missing <= counts.offline || is_late);
        if !is_settled {
            let all = counts.nodes;
            if is_late {
                let why = format!("{missing} of {all} nodes did not switch in time");
                return BatchStep::change(self.fail(why, now));
            }
            return BatchStep::Wait(format!("the switch of {missing} of {all} nodes"));
        }
        let Some(switched_at) = batch.switched_at else {
            return BatchStep::change(self.switch(now));
        };
        let soaked_at = switched_at + seconds(self.strategy.soak_secs);
        if now < soaked_at {
            return BatchStep::Wait(format!("the end of its soak at {soaked_at:.0}"));
        }
        // A soak as long as the deadline would leave a suspicion no time.
        let wait_ends_at = deadline.max(soaked_at + seconds(self.strategy.soak_secs / 2));
        let has_waited = wait_ends_at <= now && !seen.is_after_outage;
        let suspicion = self.suspicion(seen).filter(|_| !has_waited);
        match (verdict, suspicion) {
            (GateVerdict::Failed(failure), _) => {
                BatchStep::change(self.fail(failure.to_string(), now))
            }
            (GateVerdict::NoData(why), _) if is_late => {
                let why = format!("{TOO_LITTLE_DATA}{why}");
                BatchStep::change(self.fail(why, now))
            }
            (GateVerdict::NoData(why), _) => BatchStep::Wait(format!("data for its gate: {why}")),
            // Further requests decide; in the end an insignificant difference stops nothing.
            (GateVerdict::Passed, Some(suspicion)) => BatchStep::Wait(format!(
                "more requests, since a difference may be chance: {suspicion}"
            )),
            // Silent nodes report, or are offline and missing after three heartbeat intervals.
            (GateVerdict::Passed, None) if self.awaits_reports(counts) => {
                let silent = counts.nodes - counts.reported;
                let all = counts.nodes;
                BatchStep::Wait(format!(
                    "reports of {silent} of {all} nodes from the end of its soak"
                ))
            }
            (GateVerdict::Passed, None) => BatchStep::change(self.pass(now)),
        }
    }

    /// Returns true if too few nodes have reported at the end of the soak: the rest may have
    /// crashed without being offline yet.
    fn awaits_reports(&self, counts: BatchCounts) -> bool {
        let silent = counts.nodes - counts.reported;
        let is_enough = counts.reported > 0 && silent <= self.strategy.max_unavailable;
        self.strategy.soak_secs > 0 && counts.nodes > 0 && !is_enough
    }

    fn verdict(&self, seen: &Observation) -> GateVerdict {
        let compared = match (self.strategy.gate, &seen.compared) {
            (None, _) => GateVerdict::Passed,
            (Some(gate), Some(compared)) => gate.judge(compared),
            (Some(_), None) => GateVerdict::NoData("no node has switched".to_owned()),
        };
        match &self.condition {
            None => compared,
            Some(condition) => compared.and(condition.judge(seen.metric.as_ref())),
        }
    }

    fn suspicion(&self, seen: &Observation) -> Option<GateFailure> {
        let (gate, compared) = self.strategy.gate.zip(seen.compared.as_ref())?;
        gate.suspicion(compared)
    }

    /// Returns true if the next step is to open a batch, which a freeze delays.
    pub fn opens_batch(&self, now: Timestamp) -> bool {
        self.state == RolloutState::Running
            && self.not_before.is_none_or(|time| time <= now)
            && self.batch_under_way().is_none()
            && self.next_batch() <= self.batches()
    }

    /// Number of the next batch to open.
    fn next_batch(&self) -> i64 {
        self.batch.as_ref().map_or(1, |batch| batch.number + 1)
    }

    fn open_next(&self, now: Timestamp) -> Result<RolloutChange, Refusal> {
        let number = self.next_batch();
        if self.batches() < number {
            return self.after(RolloutEvent::Complete, now);
        }
        let mut change = self.after(RolloutEvent::OpenBatch, now)?;
        change.rollout.batch = Some(Batch::open(number, now));
        Ok(change)
    }

    fn switch(&self, now: Timestamp) -> Result<RolloutChange, Refusal> {
        let mut change = self.after(RolloutEvent::SwitchBatch, now)?;
        if let Some(batch) = &mut change.rollout.batch {
            batch.state = BatchState::Switched;
            batch.switched_at = Some(now);
        }
        Ok(change)
    }

    fn pass(&self, now: Timestamp) -> Result<RolloutChange, Refusal> {
        let mut change = self.after(RolloutEvent::PassBatch, now)?;
        change.rollout.close_batch(BatchState::Passed, now);
        Ok(change)
    }

    fn fail(&self, reason: String, now: Timestamp) -> Result<RolloutChange, Refusal> {
        let event = match self.strategy.on_failure {
            OnFailure::Pause => RolloutEvent::Pause,
            OnFailure::RollBack => RolloutEvent::Fail,
        };
        self.end_batch(event, reason, now)
    }

    fn end_batch(
        &self,
        event: RolloutEvent,
        reason: String,
        now: Timestamp,
    ) -> Result<RolloutChange, Refusal> {
        let mut change = self.after(event, now)?;
        change.rollout.reason = Some(reason);
        change.rollout.close_batch(BatchState::Failed, now);
        Ok(change)
    }

    fn revert(&self, seen: &Observation, now: Timestamp) -> Option<Result<RolloutChange, Refusal>> {
        match seen.reverting? {
            RevertProgress::Unordered => Some(self.after(RolloutEvent::RevertNodes, now)),
            RevertProgress::Rest(counts) if counts.waiting == 0 || self.is_revert_late(now) => {
                Some(self.finish_rollback(counts, now))
            }
            RevertProgress::Waiting | RevertProgress::Rest(_) => None,
        }
    }

    /// Returns true if the rollback has taken longer than the maximum time of a batch.
    pub fn is_revert_late(&self, now: Timestamp) -> bool {
        let since = self.reverting_since.unwrap_or(now);
        since + seconds(self.strategy.deadline_secs) <= now
    }

    /// Ends the rollback; the reason names nodes that have not reverted. Offline ones revert by
    /// their order when they return.
    fn finish_rollback(
        &self,
        counts: RevertCounts,
        now: Timestamp,
    ) -> Result<RolloutChange, Refusal> {
        let mut change = self.after(RolloutEvent::FinishRollback, now)?;
        let mut reason = self.reason.clone().unwrap_or_default();
        for (count, one, several) in [
            (
                counts.waiting,
                "node did not revert in time",
                "nodes did not revert in time",
            ),
            (
                counts.offline,
                "offline node will revert when it returns",
                "offline nodes will revert when they return",
            ),
            (
                counts.without_way,
                "node had no former bundle",
                "nodes had no former bundle",
            ),
        ] {
            let what = if count == 1 { one } else { several };
            if count > 0 {
                reason.truncate(reason.trim_end_matches('.').len());
                write!(reason, "; {count} {what}").unwrap_or_default();
            }
        }
        change.rollout.reason = Some(reason);
        Ok(change)
    }
}

fn seconds(secs: i64) -> SignedDuration {
    SignedDuration::from_secs(secs)
}
