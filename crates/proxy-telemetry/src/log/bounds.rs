//! Sizes of batches and of the queue.

/// Size at which a batch is sent, in bytes. Waking the thread costs as much as encoding a hundred
/// lines, and the kernel takes long writes at a lower cost per byte.
pub(crate) const BATCH_BYTES: usize = 512 * 1024;

/// Maximum number of batches waiting for the writer, of all workers together.
pub(crate) const QUEUED_BATCHES: usize = 32;
