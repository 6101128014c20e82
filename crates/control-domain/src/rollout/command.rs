//! Rollouts and operators' commands on them.

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::refusal::faults::Faults;
use crate::access::{Access, Tenant};
use crate::labels::Labels;
use crate::machine::next_state;
use crate::named::named;
use crate::rollout::condition::MetricCondition;
use crate::rollout::route_names::RouteNames;
use crate::rollout::state::{ROLLOUT_TRANSITIONS, RolloutEvent, RolloutState};
use crate::rollout::strategy::Strategy;
use control_wire::{BundleId, RolloutId, UserId};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Reasons that operators' commands give.
const PAUSED: &str = "paused by hand";
const CANCELLED: &str = "cancelled by hand";
const ROLLED_BACK: &str = "rolled back by hand";

/// A rollout, without its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// UUID of version 7, which sorts by creation.
    pub id: RolloutId,
    /// Project of the nodes.
    pub tenant: Tenant,
    /// Bundle to deploy.
    pub bundle: BundleId,
    /// Current state; changes only by the events in the state table.
    pub state: RolloutState,
    /// Batch size, times and gate.
    pub strategy: Strategy,
    /// Condition on an external metric, evaluated for each batch.
    pub condition: Option<MetricCondition>,
    /// Renamed routes that the gate counts as one; empty before the start.
    pub route_names: RouteNames,
    /// Label selector at planning; empty if nodes were listed by identifier, or all were selected.
    pub labels: BTreeMap<String, String>,
    /// Number of nodes when the rollout was planned.
    pub nodes: i64,
    /// Number of nodes per batch.
    pub batch_size: i64,
    /// The batch opened last; `None` before the first.
    pub batch: Option<Batch>,
    /// Reason for a stop, or a note on the end.
    pub reason: Option<String>,
    /// Earliest time at which a batch may be opened.
    pub not_before: Option<Timestamp>,
    /// Actor that created the rollout.
    pub created_by: Uuid,
    /// Actor that requested approval.
    pub submitted_by: Option<Uuid>,
    /// User that this actor is or acts for; another user must approve.
    pub submitted_person: Option<UserId>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the start; `None` before.
    pub started_at: Option<Timestamp>,
    /// Start of the rollback; `None` without one.
    pub reverting_since: Option<Timestamp>,
    /// Time of the end; `None` before.
    pub ended_at: Option<Timestamp>,
}

named! {
    /// State of a batch.
    #[schema(as = BatchStateName)]
    BatchState {
        /// Its nodes are ordered to run the bundle.
        Open = "open",
        /// Its nodes run the bundle; the gate compares them.
        Switched = "switched",
        /// The gate accepted the batch.
        Passed = "passed",
        /// The batch did not pass.
        Failed = "failed",
    }
}

/// A group of nodes that switch together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Number of the batch, from 1.
    pub number: i64,
    /// State of the batch.
    pub state: BatchState,
    /// Time of the first orders; reset when a paused rollout is resumed.
    pub opened_at: Timestamp,
    /// Time when its nodes ran the bundle; `None` before.
    pub switched_at: Option<Timestamp>,
    /// Time when the batch passed or failed; `None` before.
    pub ended_at: Option<Timestamp>,
}

/// Request for a new rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRollout {
    /// Signed bundle to deploy.
    pub bundle: BundleId,
    /// Batch size, times and gate.
    pub strategy: Strategy,
    /// Condition on an external metric, evaluated for each batch.
    pub condition: Option<MetricCondition>,
    /// Labels that select the nodes.
    pub labels: BTreeMap<String, String>,
    /// Earliest time at which a batch may be opened.
    pub not_before: Option<Timestamp>,
}

named! {
    /// Commands of an operator to a rollout.
    RolloutCommand {
        /// Starts it, or requests approval.
        Start = "start",
        /// Agrees to it.
        Approve = "approve",
        /// Stops it for a while.
        Pause = "pause",
        /// Continues it.
        Resume = "resume",
        /// Ends it; nodes keep their bundles.
        Cancel = "cancel",
        /// Brings its nodes back.
        RollBack = "rollback",
    }
}

/// A step of a rollout; its event's effects are stored in the same transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutChange {
    /// The rollout after the event.
    pub rollout: Rollout,
    /// Event that caused the step.
    pub event: RolloutEvent,
}

impl Rollout {
    /// Checks that the actor may delete it.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or unless it is planned or has ended.
    pub fn check_delete(&self, actor: &Actor) -> Result<(), Refusal> {
        actor.require(Access::WRITE_ROLLOUTS, self.tenant)?;
        let may = self.state.is_final() || self.state == RolloutState::Planned;
        may.then_some(()).ok_or(Refusal::WrongState {
            noun: "a rollout",
            state: self.state.name(),
            event: "be deleted",
        })
    }

    /// Creates a rollout; [`Rollout::plan`] adds the number of its nodes.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad field.
    pub fn create(
        actor: &Actor,
        tenant: Tenant,
        id: RolloutId,
        new: NewRollout,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_ROLLOUTS, tenant)?;
        let NewRollout {
            bundle,
            strategy,
            condition,
            labels,
            not_before,
        } = new;
        strategy.check()?;
        let mut faults = Faults::default();
        if let Some(condition) = &condition {
            condition.check(&mut faults);
        }
        faults.finish(Some(()))?;
        let labels = Labels::parse(labels)?.pairs().clone();
        Ok(Self {
            id,
            tenant,
            bundle,
            state: RolloutState::Planned,
            strategy,
            condition,
            route_names: RouteNames::default(),
            labels,
            nodes: 0,
            batch_size: 1,
            batch: None,
            reason: None,
            not_before,
            created_by: actor.id(),
            submitted_by: None,
            submitted_person: None,
            created_at: now,
            started_at: None,
            reverting_since: None,
            ended_at: None,
        })
    }

    /// Sets the number of nodes.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] for no nodes, or for too many batches.
    pub fn plan(self, nodes: i64) -> Result<Self, Refusal> {
        if nodes < 1 {
            return Err(Refusal::invalid("nodes", "match no node of the project"));
        }
        let batch_size = self.strategy.batch_size(nodes)?;
        Ok(Self {
            nodes,
            batch_size,
            ..self
        })
    }

    /// Applies an operator's command.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or in the wrong state.
    pub fn decide(
        &self,
        actor: &Actor,
        command: RolloutCommand,
        now: Timestamp,
    ) -> Result<RolloutChange, Refusal> {
        actor.require(Access::WRITE_ROLLOUTS, self.tenant)?;
        match command {
            RolloutCommand::Start if self.strategy.needs_approval => self.submit(actor, now),
            RolloutCommand::Start => self.after(RolloutEvent::Start, now),
            RolloutCommand::Approve => self.approve(actor, now),
            RolloutCommand::Pause => self.stop(RolloutEvent::Pause, PAUSED, now),
            RolloutCommand::Resume => self.resume(now),
            RolloutCommand::Cancel => self.stop(RolloutEvent::Cancel, CANCELLED, now),
            RolloutCommand::RollBack => self.stop(RolloutEvent::RollBack, ROLLED_BACK, now),
        }
    }

    /// Adds the approval that the project's policy requires.
    #[must_use]
    pub fn bound_by_policy(mut self, needs_approval: bool) -> Self {
        self.strategy.needs_approval |= needs_approval;
        self
    }

    /// Sets the renamed routes that the gate counts as one.
    #[must_use]
    pub fn counting_as_one(mut self, route_names: RouteNames) -> Self {
        self.route_names = route_names;
        self
    }

    /// Returns true if an operator, and not the gate, paused or ended the rollout.
    pub fn is_stopped_by_hand(&self) -> bool {
        let reason = self.reason.as_deref().unwrap_or_default();
        [PAUSED, CANCELLED, ROLLED_BACK]
            .iter()
            .any(|by_hand| reason.starts_with(by_hand))
    }

    /// Number of batches.
    pub fn batches(&self) -> i64 {
        let size = self.batch_size.max(1);
        self.nodes.saturating_add(size - 1) / size
    }

    /// The current batch, unless it has passed.
    pub fn batch_under_way(&self) -> Option<&Batch> {
        let batch = self.batch.as_ref();
        batch.filter(|batch| batch.state != BatchState::Passed)
    }

    /// Time after which the nodes of the batch must have reported before it passes: after the
    /// switch, and within the last heartbeat `interval` of the soak. `None` before the switch.
    pub fn reports_since(&self, interval: SignedDuration) -> Option<Timestamp> {
        let switched_at = self.batch.as_ref()?.switched_at?;
        let soaked_at = switched_at + SignedDuration::from_secs(self.strategy.soak_secs);
        Some(switched_at.max(soaked_at - interval))
    }

    fn submit(&self, actor: &Actor, now: Timestamp) -> Result<RolloutChange, Refusal> {
        let mut change = self.after(RolloutEvent::Submit, now)?;
        let person = actor.user().ok_or(Refusal::UnknownPerson)?;
        change.rollout.submitted_by = Some(actor.id());
        change.rollout.submitted_person = Some(person);
        Ok(change)
    }

    /// Approves the rollout. Compares persons and not actors: a second key or session of the same
    /// person is not a second person.
    fn approve(&self, actor: &Actor, now: Timestamp) -> Result<RolloutChange, Refusal> {
        let change = self.after(RolloutEvent::Approve, now)?;
        let person = actor.user().ok_or(Refusal::UnknownPerson)?;
        let submitter = self.submitted_person.ok_or(Refusal::UnknownPerson)?;
        (person != submitter)
            .then_some(change)
            .ok_or(Refusal::OwnApproval)
    }

    /// Resumes the rollout with its interrupted batch.
    fn resume(&self, now: Timestamp) -> Result<RolloutChange, Refusal> {
        let mut change = self.after(RolloutEvent::Resume, now)?;
        change.rollout.reason = None;
        if let Some(batch) = &mut change.rollout.batch
            && batch.state != BatchState::Passed
        {
            *batch = Batch::open(batch.number, now);
        }
        Ok(change)
    }

    /// Stops the rollout by a command. The reason of an earlier stop by the gate is kept.
    fn stop(
        &self,
        event: RolloutEvent,
        by_hand: &str,
        now: Timestamp,
    ) -> Result<RolloutChange, Refusal> {
        let mut change = self.after(event, now)?;
        let earlier = self.reason.as_ref().filter(|_| !self.is_stopped_by_hand());
        change.rollout.reason = Some(match earlier {
            Some(earlier) => format!("{by_hand}; stopped before: {earlier}"),
            None => by_hand.to_owned(),
        });
        if event != RolloutEvent::Pause {
            change.rollout.close_batch(BatchState::Failed, now);
        }
        Ok(change)
    }

    /// Ends the current batch in the given state.
    pub(super) fn close_batch(&mut self, state: BatchState, now: Timestamp) {
        if let Some(batch) = &mut self.batch
            && batch.state != BatchState::Passed
        {
            batch.state = state;
            batch.ended_at = Some(now);
        }
    }

    /// The rollout after `event`, with the times that belong to it.
    pub(super) fn after(
        &self,
        event: RolloutEvent,
        now: Timestamp,
    ) -> Result<RolloutChange, Refusal> {
        let state = next_state(ROLLOUT_TRANSITIONS, self.state, event);
        let state = state.ok_or(Refusal::WrongState {
            noun: "a rollout",
            state: self.state.name(),
            event: event.name(),
        })?;
        let first = |time: Option<Timestamp>, is_now: bool| time.or(is_now.then_some(now));
        let rollout = Self {
            state,
            started_at: first(self.started_at, state == RolloutState::Running),
            reverting_since: first(self.reverting_since, state == RolloutState::RollingBack),
            ended_at: first(self.ended_at, state.is_final()),
            ..self.clone()
        };
        Ok(RolloutChange { rollout, event })
    }
}

impl Batch {
    pub(super) fn open(number: i64, now: Timestamp) -> Self {
        Self {
            number,
            state: BatchState::Open,
            opened_at: now,
            switched_at: None,
            ended_at: None,
        }
    }
}
