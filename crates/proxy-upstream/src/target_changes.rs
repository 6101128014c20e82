//! Number of changes of targets.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of changes of targets after which every worker is to look at them again before its next
/// choice. Shared by all threads.
#[derive(Debug, Default)]
pub struct TargetChanges(AtomicU64);

impl TargetChanges {
    /// Counts a change that was made before.
    pub fn note(&self) {
        // Changes are visible to a worker that sees their number.
        self.0.fetch_add(1, Ordering::Release);
    }

    /// The number of changes so far.
    #[inline]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
