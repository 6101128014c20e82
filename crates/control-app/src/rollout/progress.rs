//! Progress of a rollout, as its readers see it.

use crate::app::App;
use crate::error::Error;
use crate::rollout::scheduler::freeze_end;
use control_domain::{
    BatchCounts, Comparison, Figures, Gate, Observation, Rollout, RolloutState, Trim,
    WeighedFigures,
};
use control_store::{CommandRecord, StopRecord, StoredBatch, Transaction};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A rollout with its batches, and the state of the current one.
#[derive(Clone, Debug, PartialEq)]
pub struct RolloutProgress {
    /// The rollout, with its state at this version.
    pub rollout: Rollout,
    /// Batches opened so far.
    pub batches: Vec<StoredBatch>,
    /// Node counts of the current batch; `None` without one.
    pub counts: Option<BatchCounts>,
    /// The gate's current figures for the batch; `None` without a gate.
    pub figures: Option<StoredFigures>,
    /// Reason that the current batch has not passed yet, as a noun.
    pub waits_for: Option<String>,
    /// End of the freeze that delays the next batch.
    pub held_until: Option<Timestamp>,
    /// Latest commands of users and API keys, oldest first; actor names without e-mail addresses.
    pub commands: Vec<CommandRecord>,
    /// Latest automatic pauses and rollbacks, oldest first.
    pub stops: Vec<StopRecord>,
}

/// Summary of a gate's figures for a batch, as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredFigures {
    /// Nodes of the batch.
    pub batch: StoredSide,
    /// Nodes that the batch was compared with.
    pub rest: StoredSide,
    /// Entries of `rest` that are nodes of the batch before it; `None` in batches of earlier releases.
    #[serde(default)]
    pub earlier: Option<i64>,
    /// The verdict in one sentence; `None` in batches of earlier releases.
    #[serde(default)]
    pub verdict: Option<String>,
}

/// One of the two compared groups of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredSide {
    /// Number of compared nodes.
    pub nodes: i64,
    /// Requests of the compared nodes; a node above the median counts as much as the median.
    pub requests: u64,
    /// Trimmed mean of the nodes' shares of 5xx responses, in thousandths.
    pub error_permille: i64,
    /// Trimmed mean of the nodes' 99th percentiles of latency; `None` without requests.
    pub p99_ms: Option<i64>,
    /// Trimmed mean of the nodes' CPU use; 100 is one core.
    pub cpu_percent: Option<f64>,
}

impl StoredFigures {
    pub(super) fn new(gate: &Gate, compared: &Comparison) -> Self {
        let Comparison { batch, rest } = compared;
        Self {
            batch: StoredSide::new(batch, Trim::Lowest),
            rest: StoredSide::new(rest, Trim::BothEnds),
            earlier: Some(rest.earlier),
            verdict: Some(gate.explain(compared)),
        }
    }
}

impl StoredSide {
    pub(super) fn new(figures: &Figures, trim: Trim) -> Self {
        let WeighedFigures {
            nodes: _,
            requests,
            error_permille,
            p99_ms,
        } = figures.weigh(trim);
        Self {
            nodes: figures.nodes,
            requests,
            error_permille,
            p99_ms,
            cpu_percent: figures.mean_cpu_percent(trim),
        }
    }
}

impl App {
    pub(super) async fn progress(
        &self,
        tx: &mut Transaction,
        rollout: Rollout,
        now: Timestamp,
    ) -> Result<RolloutProgress, Error> {
        let (since, id) = (self.online_since(now), rollout.id);
        let batches = tx.rollout_batches(rollout.id).await?;
        let is_open = rollout
            .batch
            .as_ref()
            .is_some_and(|batch| batch.ended_at.is_none());
        let mut seen = Observation {
            is_after_outage: self.is_after_outage(now),
            ..Observation::default()
        };
        let (mut figures, mut waits_for) = (None, None);
        if is_open {
            let reports_since = rollout.reports_since(self.heartbeat_interval.duration());
            seen.batch = tx.count_batch(&rollout, since, reports_since).await?;
            if let Some(gate) = &rollout.strategy.gate {
                let compared = tx.compare_batch(&rollout, since).await?;
                figures = Some(StoredFigures::new(gate, &compared));
                let has_switched = seen.batch.is_some_and(|counts| counts.ready > 0);
                seen.compared = has_switched.then_some(compared);
            }
            // A paused batch waits for a command, and its metrics server is not queried.
            if rollout.state == RolloutState::Running {
                seen.metric = self.metric_answer(&rollout, now);
                waits_for = rollout.waits_for(&seen, now);
            }
        }
        let mut held_until = None;
        if rollout.opens_batch(now) {
            held_until = freeze_end(tx, &rollout, now).await?;
        }
        let mut commands = tx.rollout_commands(rollout.id).await?;
        for command in &mut commands {
            hide_address(&mut command.actor_name);
        }
        Ok(RolloutProgress {
            rollout,
            batches,
            counts: seen.batch,
            figures,
            waits_for,
            held_until,
            commands,
            stops: tx.rollout_stops(id).await?,
        })
    }
}

/// Removes e-mail addresses from an actor's name: not every reader of rollouts may see members'
/// addresses.
fn hide_address(name: &mut String) {
    let cut = name.rsplit_once(" <").filter(|(_, address)| {
        let address = address.strip_suffix('>');
        address.is_some_and(|address| address.contains('@'))
    });
    if let Some((before, _)) = cut {
        *name = before.to_owned();
    }
    // An identity provider may assert an address as the name.
    if name.contains('@') {
        let words = name.split(' ');
        let local_parts = words.map(|word| word.split_once('@').map_or(word, |(local, _)| local));
        *name = local_parts.collect::<Vec<_>>().join(" ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_rollout_contain_no_address() {
        for (audited, shown) in [
            ("Ada <ada@example.com>", "Ada"),
            ("ada@example.com", "ada"),
            ("ci, a key of ada@example.com", "ci, a key of ada"),
            ("Ada, of the night shift", "Ada, of the night shift"),
        ] {
            let mut name = audited.to_owned();
            hide_address(&mut name);
            assert_eq!(name, shown, "{audited}");
        }
    }
}
