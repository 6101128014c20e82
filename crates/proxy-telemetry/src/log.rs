//! Log lines on their way out: batches that workers fill, and one thread that carries them away.
//!
//! A worker never waits. It hands a full batch over through a bounded channel; when the channel is
//! full because the destination is slow, the batch's lines are given up and counted. Buffers come
//! back to the worker that filled them, so that steady work allocates nothing.

mod batch;
mod counts;
mod destination;
mod inbox;
mod sink;
mod spare;
mod worker;
mod writer;

pub use counts::{LogCounters, LogCounts};
pub use destination::Destination;
pub use sink::LogFault;
pub use worker::WorkerLog;
pub use writer::LogWriter;

/// A batch is handed over when it has grown this long, in bytes. To wake the thread costs as much as to
/// write a hundred lines, and the kernel takes long writes for less per byte than short ones.
pub(crate) const BATCH_BYTES: usize = 512 * 1024;

/// Most batches that wait for the writer, of all workers together.
pub(crate) const QUEUED_BATCHES: usize = 32;
