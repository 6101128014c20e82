//! Log lines on their way out: batches that workers fill, and one thread that carries them away.
//!
//! A worker never waits. It hands a full batch over through a bounded channel; when the channel is
//! full because the destination is slow, the batch's lines are given up and counted. Buffers come
//! back to the worker that filled them, so that steady work allocates nothing.

mod batch;
mod batch_sender;
mod bounds;
mod counts;
mod destination;
mod events;
mod sink;
mod spare;
mod worker;
mod writer;

pub use counts::{LogCounters, LogCounts};
pub use destination::Destination;
pub use events::EventLog;
pub use sink::LogError;
pub use worker::WorkerLog;
pub use writer::LogWriter;
