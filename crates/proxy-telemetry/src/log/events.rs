//! Lines that any thread may write at any time, each by itself.

use super::batch::Batch;
use super::batch_sender::BatchSender;
use super::counts::{LineCounts, LogCounters};
use super::sink::Sink;
use super::writer::LogWriter;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

/// Most lines that wait for a slow destination.
const QUEUED_LINES: usize = 1024;

/// A log of rare lines. Clones write to the same one; none of them ever waits.
#[derive(Clone, Debug)]
pub struct EventLog {
    inbox: BatchSender,
    books: Arc<LineCounts>,
    /// Leads nowhere: what was written is freed.
    home: SyncSender<Vec<u8>>,
}

impl EventLog {
    /// A log that goes to `out`, and the writer that ends it. Faults of `out` are only counted: there is
    /// no other place to tell them at.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn over(
        out: impl Write + Send + 'static,
        metrics: LogCounters,
    ) -> io::Result<(LogWriter, Self)> {
        let sink = Sink::new(Box::new(out), None);
        let (writer, inbox, books) =
            LogWriter::carrying(QUEUED_LINES, sink, metrics, Box::new(drop))?;
        let (home, _) = sync_channel(0);
        let log = Self { inbox, books, home };
        Ok((writer, log))
    }

    /// Hands over `lines`, whole ones. Beyond 1 024 that wait, and after the log was closed, they are
    /// given up and counted.
    pub fn write(&self, lines: Vec<u8>) {
        let count = lines.split_inclusive(|byte| *byte == b'\n').count() as u64;
        self.books.made(count);
        let batch = Batch {
            bytes: lines,
            lines: count,
            home: self.home.clone(),
            books: Arc::clone(&self.books),
        };
        // A batch that comes back enters its lines as lost when it is dropped.
        drop(self.inbox.put(batch));
    }
}
