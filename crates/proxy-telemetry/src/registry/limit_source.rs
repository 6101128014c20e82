//! The source of the use of limits.

use crate::limit_use::LimitUse;
use crate::scrape::snapshot::Snapshot;
use std::fmt::Debug;

/// Source of the current use of each limit, read at each scrape.
pub trait LimitSource: Debug + Send + Sync {
    /// The use of every limit, at the time of `snapshot`.
    fn uses(&self, snapshot: &Snapshot) -> Vec<LimitUse>;
}
