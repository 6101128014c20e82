//! Strategy of a rollout: batch size, times, gate, reaction to failure.

use crate::access::refusal::Refusal;
use crate::access::refusal::faults::Faults;
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
        /// The nodes return to their former bundles.
        RollBack = "roll_back",
    }
}

/// Size of a batch; at least one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSize {
    /// A fixed number of nodes.
    Count(i64),
    /// A percentage of the rollout's nodes, rounded up.
    Percent(i64),
}

/// Strategy of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strategy {
    /// Size of a batch.
    pub batch: BatchSize,
    /// Number of nodes per batch that may be offline or late without stopping the rollout.
    pub max_unavailable: i64,
    /// Time within which a batch must switch and pass, in seconds.
    pub deadline_secs: i64,
    /// Minimum time that a batch runs before it can pass, in seconds.
    pub soak_secs: i64,
    /// Limits of the comparison with other nodes; `None` relies on the nodes' own verdicts.
    pub gate: Option<Gate>,
    /// Set if a second person must approve.
    pub needs_approval: bool,
    /// Reaction to a batch that does not pass.
    pub on_failure: OnFailure,
}

impl BatchSize {
    /// Number of nodes per batch, for a rollout of `nodes` nodes.
    pub fn nodes_per_batch(self, nodes: i64) -> i64 {
        let size = match self {
            Self::Count(count) => count,
            Self::Percent(percent) => nodes.saturating_mul(percent).saturating_add(99) / 100,
        };
        size.clamp(1, nodes.max(1))
    }
}

impl Strategy {
    /// Maximum time from a node's switch to the end of its batch, without outages: a batch may switch
    /// at its deadline, and wait half a soak more for a suspicion.
    pub fn max_batch_secs(&self) -> i64 {
        self.deadline_secs + self.soak_secs + self.soak_secs / 2
    }

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
        let mut faults = Faults::default();
        match batch {
            BatchSize::Count(count) => faults.check(1 <= *count, "batch_count", "is below 1"),
            BatchSize::Percent(percent) => {
                let is_part = (1..=100).contains(percent);
                faults.check(is_part, "batch_percent", "is not 1 to 100");
            }
        }
        faults.check(0 <= *max_unavailable, "max_unavailable", "is below 0");
        let is_time = (1..=MAX_SECS).contains(deadline_secs);
        faults.check(is_time, "deadline_secs", "is not 1 to 604800");
        let is_within = (0..=*deadline_secs).contains(soak_secs);
        let reason = "is not 0 to the seconds of the deadline";
        faults.check(is_within, "soak_secs", reason);
        if let Some(gate) = gate {
            gate.check(&mut faults);
        }
        faults.finish(Some(()))
    }

    /// Number of nodes per batch; refuses more than 500 batches.
    pub(super) fn batch_size(&self, nodes: i64) -> Result<i64, Refusal> {
        let size = self.batch.nodes_per_batch(nodes);
        if MAX_BATCHES < nodes.saturating_add(size - 1) / size {
            return Err(Refusal::invalid(
                "batch_count",
                "gives more than 500 batches",
            ));
        }
        Ok(size)
    }
}
