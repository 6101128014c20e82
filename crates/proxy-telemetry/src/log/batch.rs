//! Batches of lines between a worker and the writer thread.

use super::bounds::BATCH_BYTES;
use super::counts::LineCounts;
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// Maximum capacity of a buffer that is reused, in bytes; an unusually long line may exceed it.
const KEPT_BYTES: usize = 2 * BATCH_BYTES;

/// Whole lines, with the channel that returns their buffer. Lines not written by the time of the
/// drop are counted as lost, so every line of a batch is accounted for.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) lines: u64,
    pub(crate) home: SyncSender<Vec<u8>>,
    pub(crate) line_counts: Arc<LineCounts>,
}

impl Batch {
    /// Counts the lines as written, except `lost` of them.
    pub(crate) fn settle(&mut self, lost: u64) {
        let lost = lost.min(self.lines);
        self.line_counts.written(self.lines - lost);
        self.line_counts.lost(lost);
        self.lines = 0;
    }

    /// The bytes of an unsent batch, which the worker keeps.
    pub(crate) fn take_back(mut self) -> Vec<u8> {
        self.lines = 0;
        mem::take(&mut self.bytes)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.lines > 0 {
            self.line_counts.lost(self.lines);
        }
        let mut buffer = mem::take(&mut self.bytes);
        buffer.clear();
        if (1..=KEPT_BYTES).contains(&buffer.capacity()) {
            // Fails if the worker has enough buffers or has ended; then the buffer is freed.
            drop(self.home.try_send(buffer));
        }
    }
}
