//! Cache of the metrics servers' latest answers, per rollout.

use control_domain::MetricAnswer;
use control_wire::RolloutId;
use jiff::Timestamp;
use quick_cache::sync::Cache;
use std::sync::Arc;

/// Maximum number of rollouts in the cache, each of about a hundred bytes.
const MAX_ROLLOUTS: usize = 20_000;

/// The latest query and answer of each rollout.
#[derive(Clone, Debug)]
pub(crate) struct MetricAnswers(pub(crate) Arc<Cache<RolloutId, CachedAnswer>>);

/// Time of the latest query, and the latest answer, perhaps to an earlier query.
#[derive(Clone, Debug)]
pub(crate) struct CachedAnswer {
    pub(crate) asked_at: Timestamp,
    /// Time of its query, and the answer.
    pub(crate) answer: Option<(Timestamp, MetricAnswer)>,
}

impl Default for MetricAnswers {
    fn default() -> Self {
        Self(Arc::new(Cache::new(MAX_ROLLOUTS)))
    }
}
