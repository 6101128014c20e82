//! Metrics of one external agent on one worker.

use super::cell::{Counter, Gauge};
use super::group::MetricGroup;
use super::histogram::{Histogram, HistogramTotal};
use super::reason_counters::{ReasonCounters, ReasonTotals};
use crate::vocabulary::AgentDecision;
use agent_protocol::EventKind;
use std::time::Duration;

/// Number of failure reasons that a worker counts separately for one agent.
const MAX_REASONS: usize = 16;

/// Metrics of one agent on one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct AgentMetrics {
    /// Calls waiting for the agent.
    pub queue_depth: Gauge,
    events: [EventMetrics; EventKind::ALL.len()],
    failures: ReasonCounters<MAX_REASONS>,
}

/// Metrics of one agent over all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentTotal {
    /// Calls waiting for the agent.
    pub queue_depth: u64,
    pub(crate) events: [EventTotal; EventKind::ALL.len()],
    pub(crate) failures: ReasonTotals,
}

impl AgentTotal {
    /// Calls with an answer, of every event.
    pub fn decisions(&self) -> u64 {
        let decisions = self.events.iter().flat_map(|event| event.decisions);
        decisions.sum()
    }

    /// Calls that timed out, of every event.
    pub fn timeouts(&self) -> u64 {
        self.events.iter().map(|event| event.timeouts).sum()
    }
}

#[derive(Debug, Default)]
struct EventMetrics {
    decisions: [Counter; AgentDecision::ALL.len()],
    timeouts: Counter,
    duration: Histogram,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventTotal {
    pub(crate) decisions: [u64; AgentDecision::ALL.len()],
    pub(crate) timeouts: u64,
    pub(crate) duration: HistogramTotal,
}

impl AgentMetrics {
    /// Counts a call with an answer.
    pub fn decided(&self, event: EventKind, decision: AgentDecision, took: Duration) {
        let Some(counts) = self.events.get(event.index()) else {
            return;
        };
        counts.duration.record(took);
        if let Some(counter) = counts.decisions.get(decision.index()) {
            counter.add(1);
        }
    }

    /// Counts a call that timed out.
    pub fn timed_out(&self, event: EventKind) {
        if let Some(counts) = self.events.get(event.index()) {
            counts.timeouts.add(1);
        }
    }

    /// Counts a failed call; `reason` is an index into the registry's reasons.
    pub fn failed(&self, reason: u16) {
        self.failures.add(reason);
    }
}

impl MetricGroup for AgentMetrics {
    type Total = AgentTotal;

    fn add_to(&self, total: &mut AgentTotal) {
        total.queue_depth += self.queue_depth.get();
        self.failures.add_to(&mut total.failures);
        for (sum, counts) in total.events.iter_mut().zip(&self.events) {
            sum.timeouts += counts.timeouts.get();
            counts.duration.add_to(&mut sum.duration);
            for (decisions, counter) in sum.decisions.iter_mut().zip(&counts.decisions) {
                *decisions += counter.get();
            }
        }
    }
}
