//! The source of the use of limits.

use crate::limit_use::LimitUse;
use crate::scrape::snapshot::Snapshot;
use std::fmt::Debug;

/// Knows how much of each limit is in use, and is asked at each scrape.
pub trait LimitSource: Debug + Send + Sync {
    /// The use of every limit, at the time of `snapshot`.
    fn uses(&self, snapshot: &Snapshot) -> Vec<LimitUse>;
}
