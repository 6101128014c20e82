//! Lines between a worker and the writer.

use super::bounds::BATCH_BYTES;
use super::counts::LineCounts;
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// A buffer that grew longer than this for an unusual line is not kept.
const KEPT_BYTES: usize = 2 * BATCH_BYTES;

/// Whole lines, and the way their buffer goes home. Lines that were not written by the time it is
/// dropped are lost: whatever happens to a batch, its lines are accounted for.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) lines: u64,
    pub(crate) home: SyncSender<Vec<u8>>,
    pub(crate) books: Arc<LineCounts>,
}

impl Batch {
    /// Enters the lines as written, but for `lost` of them.
    pub(crate) fn settle(&mut self, lost: u64) {
        let lost = lost.min(self.lines);
        self.books.written(self.lines - lost);
        self.books.lost(lost);
        self.lines = 0;
    }

    /// The bytes of a batch that was not sent, for the worker to keep.
    pub(crate) fn take_back(mut self) -> Vec<u8> {
        self.lines = 0;
        mem::take(&mut self.bytes)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.lines > 0 {
            self.books.lost(self.lines);
        }
        let mut buffer = mem::take(&mut self.bytes);
        buffer.clear();
        if (1..=KEPT_BYTES).contains(&buffer.capacity()) {
            // A worker that has enough buffers, or is gone, does not need this one.
            drop(self.home.try_send(buffer));
        }
    }
}
