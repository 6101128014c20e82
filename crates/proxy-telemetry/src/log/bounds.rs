//! How much is written and queued at once.

/// A batch is handed over when it has grown this long, in bytes. To wake the thread costs as much as to
/// write a hundred lines, and the kernel takes long writes for less per byte than short ones.
pub(crate) const BATCH_BYTES: usize = 512 * 1024;

/// Most batches that wait for the writer, of all workers together.
pub(crate) const QUEUED_BATCHES: usize = 32;
