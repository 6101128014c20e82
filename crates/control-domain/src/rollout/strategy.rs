//! How a rollout goes: batches, times, the gate, what follows a failure.

use crate::access::refusal::Refusal;
use crate::named::named;
use crate::rollout::gate::Gate;

const MAX_BATCHES: i64 = 500;
const MAX_SECS: i64 = 7 * 24 * 3_600;

named! {
    /// Reaction to a batch that does not pass.
    #[schema(as = OnFailureName)]
    OnFailure {
        /// The rollout waits for an operator.
        Pause = "pause",
        /// The nodes go back to what they ran.
        RollBack = "roll_back",
    }
}

/// How many nodes are switched together; never fewer than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSize {
    /// So many.
    Count(i64),
    /// Of the rollout's nodes, rounded up.
    Percent(i64),
}

/// How a rollout goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strategy {
    /// How many nodes are switched together.
    pub batch: BatchSize,
    /// Nodes of a batch that may be offline or late without stopping the rollout.
    pub max_unavailable: i64,
    /// Seconds in which a batch must switch and pass.
    pub deadline_secs: i64,
    /// Seconds that a batch runs before the gate lets it pass.
    pub soak_secs: i64,
    /// Conditions of the next batch; `None`: the nodes' verdicts alone count.
    pub gate: Option<Gate>,
    /// Whether a second person must agree.
    pub needs_approval: bool,
    /// Reaction to a batch that does not pass.
    pub on_failure: OnFailure,
}

impl BatchSize {
    /// Number of nodes per batch of a rollout with this many nodes.
    pub fn nodes_per_batch(self, nodes: i64) -> i64 {
        let size = match self {
            Self::Count(count) => count,
            Self::Percent(percent) => nodes.saturating_mul(percent).saturating_add(99) / 100,
        };
        size.clamp(1, nodes.max(1))
    }
}

impl Strategy {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let Self {
            batch,
            max_unavailable,
            deadline_secs,
            soak_secs,
            gate,
            needs_approval: _,
            on_failure: _,
        } = self;
        match batch {
            BatchSize::Count(count) if *count < 1 => {
                return Err(Refusal::invalid("batch_count", "is below 1"));
            }
            BatchSize::Percent(percent) if !(1..=100).contains(percent) => {
                return Err(Refusal::invalid("batch_percent", "is not 1 to 100"));
            }
            BatchSize::Count(_) | BatchSize::Percent(_) => {}
        }
        if *max_unavailable < 0 {
            return Err(Refusal::invalid("max_unavailable", "is below 0"));
        }
        if !(1..=MAX_SECS).contains(deadline_secs) {
            return Err(Refusal::invalid("deadline_secs", "is not 1 to 604800"));
        }
        if !(0..=*deadline_secs).contains(soak_secs) {
            let reason = "is not 0 to the seconds of the deadline";
            return Err(Refusal::invalid("soak_secs", reason));
        }
        gate.map_or(Ok(()), |gate| gate.check())
    }

    /// Nodes of one batch; a rollout has at most 500 batches.
    pub(super) fn batch_size(&self, nodes: i64) -> Result<i64, Refusal> {
        let size = self.batch.nodes_per_batch(nodes);
        if MAX_BATCHES < nodes.saturating_add(size - 1) / size {
            return Err(Refusal::invalid(
                "batch_count",
                "makes more than 500 batches",
            ));
        }
        Ok(size)
    }
}
