//! Number of changes of targets.

use std::sync::atomic::{AtomicU64, Ordering};

/// Number of changes of targets; a worker re-reads the targets before its next choice when it has
/// advanced. Shared by all threads.
#[derive(Debug, Default)]
pub struct TargetChanges(AtomicU64);

impl TargetChanges {
    /// Counts a change that was made before.
    pub fn note(&self) {
        // Changes are visible to a worker that sees their number.
        self.0.fetch_add(1, Ordering::Release);
    }

    /// The number of changes.
    #[inline]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
