//! Counts of lines made, written and lost.

use crate::metrics::SharedCounter;
use crate::names;
use crate::registry::Registry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The metrics of one log.
#[derive(Clone, Debug, Default)]
pub struct LogCounters {
    written: Arc<SharedCounter>,
    lost: Arc<SharedCounter>,
    errors: Arc<SharedCounter>,
}

/// Counts of the lines that left the workers' batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// Lines that left a worker's batch: the sum of the other three.
    pub made: u64,
    /// Lines that reached the destination.
    pub written: u64,
    /// Lines dropped because the destination was too slow or failed.
    pub lost: u64,
    /// Lines not written yet.
    pub pending: u64,
}

/// One log's counts, separate from the metrics, which outlive the log and may be shared.
#[derive(Debug)]
pub(crate) struct LineCounts {
    made: SharedCounter,
    written: SharedCounter,
    lost: SharedCounter,
    /// Maximum number of lines waiting for the destination.
    max_pending: AtomicU64,
    metrics: LogCounters,
}

impl LogCounters {
    /// The metrics of the log `name`, for example `access`.
    pub fn registered(registry: &Registry, name: &str) -> Self {
        Self {
            written: registry.counter(&names::LOG_LINES_WRITTEN_TOTAL, [name]),
            lost: registry.counter(&names::LOG_LINES_LOST_TOTAL, [name]),
            errors: registry.counter(&names::LOG_WRITE_ERRORS_TOTAL, [name]),
        }
    }

    /// Registers the metrics of a log that was opened before `registry`, under the log's `name`.
    pub fn register(&self, registry: &Registry, name: &str) {
        let Self {
            written,
            lost,
            errors,
        } = self;
        for (metric, counter) in [
            (&names::LOG_LINES_WRITTEN_TOTAL, written),
            (&names::LOG_LINES_LOST_TOTAL, lost),
            (&names::LOG_WRITE_ERRORS_TOTAL, errors),
        ] {
            registry.show(metric, [name], counter);
        }
    }
}

impl LineCounts {
    pub(crate) fn new(metrics: LogCounters) -> Self {
        Self {
            made: SharedCounter::default(),
            written: SharedCounter::default(),
            lost: SharedCounter::default(),
            max_pending: AtomicU64::new(u64::MAX),
            metrics,
        }
    }

    pub(crate) fn made(&self, lines: u64) {
        self.made.add(lines);
    }

    pub(crate) fn written(&self, lines: u64) {
        self.written.add(lines);
        self.metrics.written.add(lines);
    }

    pub(crate) fn lost(&self, lines: u64) {
        self.lost.add(lines);
        self.metrics.lost.add(lines);
    }

    pub(crate) fn failed(&self) {
        self.metrics.errors.add(1);
    }

    pub(crate) fn set_max_pending(&self, lines: u64) {
        self.max_pending.store(lines, Ordering::Relaxed);
    }

    /// Maximum number of lines in one batch: with a small limit on waiting lines, batches are sent
    /// earlier.
    pub(crate) fn batch_lines(&self) -> u64 {
        const BATCHES: u64 = 4;
        (self.max_pending.load(Ordering::Relaxed) / BATCHES).max(1)
    }

    /// Returns true if more lines wait than the maximum, including the current batch.
    pub(crate) fn is_full(&self) -> bool {
        self.counts().pending > self.max_pending.load(Ordering::Relaxed)
    }

    pub(crate) fn counts(&self) -> LogCounts {
        // Lines are counted as made first: `made`, read last, cannot be less than its parts.
        let (written, lost) = (self.written.get(), self.lost.get());
        let made = self.made.get();
        LogCounts {
            made,
            written,
            lost,
            pending: made.saturating_sub(written + lost),
        }
    }
}
