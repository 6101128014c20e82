//! A log for single lines, written by any thread at any time.

use super::batch::Batch;
use super::batch_sender::BatchSender;
use super::counts::{LineCounts, LogCounters};
use super::sink::Sink;
use super::writer::{LogWriter, StartedLog};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

/// Maximum number of lines waiting for a slow destination.
const QUEUED_LINES: usize = 1024;

/// A log of rare lines. Clones write to the same log; writing never waits.
#[derive(Clone, Debug)]
pub struct EventLog {
    inbox: BatchSender,
    line_counts: Arc<LineCounts>,
    /// The receiver is dropped, so buffers are freed after writing.
    home: SyncSender<Vec<u8>>,
}

impl EventLog {
    /// A log to `out`, with the writer that closes it. Errors of `out` are only counted, because
    /// there is no other log to report them to.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn to_writer(
        out: impl Write + Send + 'static,
        metrics: LogCounters,
    ) -> io::Result<(LogWriter, Self)> {
        let sink = Sink::new(Box::new(out), None);
        let StartedLog {
            writer,
            inbox,
            line_counts,
        } = LogWriter::with_sink(QUEUED_LINES, sink, metrics, Box::new(drop))?;
        let (home, _) = sync_channel(0);
        let log = Self {
            inbox,
            line_counts,
            home,
        };
        Ok((writer, log))
    }

    /// Sends `lines`, each whole. They are dropped and counted if 1 024 lines are waiting, or the
    /// log is closed.
    pub fn write(&self, lines: Vec<u8>) {
        let count = lines.split_inclusive(|byte| *byte == b'\n').count() as u64;
        self.line_counts.made(count);
        let batch = Batch {
            bytes: lines,
            lines: count,
            home: self.home.clone(),
            line_counts: Arc::clone(&self.line_counts),
        };
        // A batch that is returned counts its lines as lost when it is dropped.
        drop(self.inbox.put(batch));
    }
}
