//! Logs: workers fill batches of lines, and a thread writes them.
//!
//! A worker never waits. It sends a full batch through a bounded channel; if a slow destination has
//! filled the channel, the lines of the batch are dropped and counted. Buffers return to the worker
//! that filled them, so that steady work does not allocate.

mod batch;
mod batch_sender;
mod bounds;
mod buffer_pool;
mod counts;
mod destination;
mod events;
mod repeated_limits;
mod repetitions;
mod ring;
mod sink;
mod span_queue;
mod syslog;
mod worker;
mod writer;

pub use counts::{LogCounters, LogCounts};
pub use destination::Destination;
pub use events::EventLog;
pub use repetitions::{Repeated, Repetitions, Windows};
pub use ring::{LineRing, RingWriter};
pub use sink::LogError;
pub use span_queue::SpanQueue;
pub use worker::WorkerLog;
pub use writer::LogWriter;
