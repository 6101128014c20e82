//! Answers of metrics servers to the queries of this replica.

use control_domain::MetricAnswer;
use control_wire::RolloutId;
use jiff::Timestamp;
use quick_cache::sync::Cache;
use std::sync::Arc;

/// Rollouts with a condition and kept answers.
const ROLLOUTS: usize = 1_000;

/// Answers by rollout.
#[derive(Clone, Debug)]
pub(crate) struct MetricAnswers(pub(crate) Arc<Cache<RolloutId, HeldAnswer>>);

/// The newest query, and the newest answer.
#[derive(Clone, Debug)]
pub(crate) struct HeldAnswer {
    pub(crate) asked_at: Timestamp,
    /// With the time of its query.
    pub(crate) answer: Option<(Timestamp, MetricAnswer)>,
}

impl Default for MetricAnswers {
    fn default() -> Self {
        Self(Arc::new(Cache::new(ROLLOUTS)))
    }
}
