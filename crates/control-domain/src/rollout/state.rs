//! The rollout's state machine as one table.

use crate::machine::Transition;
use crate::named::named;

named! {
    /// State of a rollout.
    #[schema(as = RolloutStateName)]
    RolloutState {
        /// Its nodes are selected, and no order is sent yet.
        Planned = "planned",
        /// Submitted; a second person must approve.
        AwaitingApproval = "awaiting_approval",
        /// Batch follows batch.
        Running = "running",
        /// No further node is moved until it is resumed.
        Paused = "paused",
        /// Every batch has passed.
        Completed = "completed",
        /// A batch did not pass; the rollback begins at once.
        Failed = "failed",
        /// Nodes are ordered to run their former bundles.
        RollingBack = "rolling_back",
        /// Nodes run their former bundles.
        RolledBack = "rolled_back",
        /// Ended by an operator; nodes keep their bundles.
        Cancelled = "cancelled",
    }
}

named! {
    /// Events of a rollout.
    RolloutEvent {
        /// A rollout that needs approval is to start.
        Submit = "submit",
        /// An operator or the schedule starts the rollout.
        Start = "start",
        /// A second person agrees.
        Approve = "approve",
        /// The nodes of the next batch are ordered to run the bundle.
        OpenBatch = "open_batch",
        /// More nodes of a large batch are ordered.
        OrderNodes = "order_nodes",
        /// All present nodes of the batch run the bundle.
        SwitchBatch = "switch_batch",
        /// The batch has passed its gate.
        PassBatch = "pass_batch",
        /// An operator or a failed batch pauses the rollout.
        Pause = "pause",
        /// An operator resumes the interrupted batch.
        Resume = "resume",
        /// No batch remains.
        Complete = "complete",
        /// A batch did not pass, or the bundle was revoked.
        Fail = "fail",
        /// The nodes are to return to their previous bundles.
        RollBack = "roll_back",
        /// Nodes are ordered to run their former bundles.
        RevertNodes = "revert_nodes",
        /// The revert has ended.
        FinishRollback = "finish_rollback",
        /// An operator ends it.
        Cancel = "cancel",
    }
}

use RolloutEvent as Event;
use RolloutState as State;

/// Transitions of a rollout.
pub const ROLLOUT_TRANSITIONS: &[Transition<State, Event>] = &[
    Transition::new(State::Planned, Event::Submit, State::AwaitingApproval),
    Transition::new(State::Planned, Event::Start, State::Running),
    Transition::new(State::Planned, Event::Cancel, State::Cancelled),
    Transition::new(State::AwaitingApproval, Event::Approve, State::Running),
    Transition::new(State::AwaitingApproval, Event::Cancel, State::Cancelled),
    Transition::new(State::Running, Event::OpenBatch, State::Running),
    Transition::new(State::Running, Event::OrderNodes, State::Running),
    Transition::new(State::Running, Event::SwitchBatch, State::Running),
    Transition::new(State::Running, Event::PassBatch, State::Running),
    Transition::new(State::Running, Event::Complete, State::Completed),
    Transition::new(State::Running, Event::Pause, State::Paused),
    Transition::new(State::Running, Event::Fail, State::Failed),
    Transition::new(State::Running, Event::RollBack, State::RollingBack),
    Transition::new(State::Running, Event::Cancel, State::Cancelled),
    Transition::new(State::Paused, Event::Resume, State::Running),
    Transition::new(State::Paused, Event::Fail, State::Failed),
    Transition::new(State::Paused, Event::RollBack, State::RollingBack),
    Transition::new(State::Paused, Event::Cancel, State::Cancelled),
    Transition::new(State::Failed, Event::RollBack, State::RollingBack),
    Transition::new(State::RollingBack, Event::RevertNodes, State::RollingBack),
    Transition::new(State::RollingBack, Event::FinishRollback, State::RolledBack),
];

impl RolloutState {
    /// Returns true if the rollout holds its nodes against other rollouts.
    pub fn holds_nodes(self) -> bool {
        matches!(
            self,
            Self::Running | Self::Paused | Self::Failed | Self::RollingBack
        )
    }

    /// Returns true if no further transition is possible.
    pub fn is_final(self) -> bool {
        ROLLOUT_TRANSITIONS.iter().all(|row| row.from != self)
    }
}
