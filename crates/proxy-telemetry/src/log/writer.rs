//! The thread that writes batches to their destination.

use super::batch::Batch;
use super::batch_sender::BatchSender;
use super::bounds::QUEUED_BATCHES;
use super::counts::{LineCounts, LogCounters, LogCounts};
use super::destination::Destination;
use super::sink::{LogError, PartialWrite, Sink};
use super::worker::WorkerLog;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::thread;
use std::time::Duration;

/// A log: creates the workers' ends, and owns the writer thread.
#[derive(Debug)]
pub struct LogWriter {
    line_counts: Arc<LineCounts>,
    /// `None` if the log is off.
    thread: Option<Thread>,
}

/// Requests to the writer thread other than lines.
#[derive(Debug, Default)]
struct Requests {
    reopen: AtomicBool,
    close: AtomicBool,
}

#[derive(Debug)]
struct Thread {
    inbox: BatchSender,
    requests: Arc<Requests>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

struct WriterThread {
    sink: Sink,
    inbox: Receiver<Batch>,
    requests: Arc<Requests>,
    line_counts: Arc<LineCounts>,
    report: Box<dyn FnMut(LogError) + Send>,
    /// Lines lost since writing began to fail; `None` while it works.
    failing: Option<u64>,
}

/// A log with a running thread, and the sender of batches to it.
#[derive(Debug)]
pub(crate) struct StartedLog {
    pub(crate) writer: LogWriter,
    pub(crate) inbox: BatchSender,
    pub(crate) line_counts: Arc<LineCounts>,
}

impl LogWriter {
    /// Opens `destination` and starts the thread. `report` is called on that thread.
    ///
    /// # Errors
    /// The destination cannot be opened or the thread cannot be started.
    pub fn start(
        destination: &Destination,
        metrics: LogCounters,
        report: impl FnMut(LogError) + Send + 'static,
    ) -> io::Result<Self> {
        let Some(open) = destination.open()? else {
            return Ok(Self {
                line_counts: Arc::new(LineCounts::new(metrics)),
                thread: None,
            });
        };
        let sink = Sink::new(open.out, open.path).shared(destination.turn(), open.is_pipe);
        Ok(Self::with_sink(QUEUED_BATCHES, sink, metrics, Box::new(report))?.writer)
    }

    /// A log to `out`, for embedding programs.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn to_writer(
        out: impl Write + Send + 'static,
        metrics: LogCounters,
        report: impl FnMut(LogError) + Send + 'static,
    ) -> io::Result<Self> {
        let sink = Sink::new(Box::new(out), None);
        Ok(Self::with_sink(QUEUED_BATCHES, sink, metrics, Box::new(report))?.writer)
    }

    /// A log with at most `queued` waiting batches, and the sender to it.
    pub(crate) fn with_sink(
        queued: usize,
        sink: Sink,
        metrics: LogCounters,
        report: Box<dyn FnMut(LogError) + Send>,
    ) -> io::Result<StartedLog> {
        let line_counts = Arc::new(LineCounts::new(metrics));
        let requests = Arc::new(Requests::default());
        let (inbox, waiting) = sync_channel(queued);
        let (end, ended) = sync_channel(1);
        let writer_thread = WriterThread {
            sink,
            inbox: waiting,
            requests: Arc::clone(&requests),
            line_counts: Arc::clone(&line_counts),
            report,
            failing: None,
        };
        let handle = thread::Builder::new()
            .name("proxy-log".to_owned())
            .spawn(move || {
                writer_thread.run();
                drop(end);
            })?;
        let inbox = BatchSender::new(inbox, handle.thread().clone());
        let thread = Thread {
            inbox: inbox.clone(),
            requests,
            ended,
        };
        let writer = Self {
            line_counts: Arc::clone(&line_counts),
            thread: Some(thread),
        };
        Ok(StartedLog {
            writer,
            inbox,
            line_counts,
        })
    }

    /// Limits the lines that wait for a slow destination to `lines`; further ones are dropped and
    /// counted.
    #[must_use]
    pub fn bounded(self, lines: u64) -> Self {
        self.line_counts.set_max_pending(lines);
        self
    }

    /// The log's end for one worker.
    pub fn worker(&self) -> WorkerLog {
        let thread = self.thread.as_ref();
        thread.map_or_else(WorkerLog::off, |thread| {
            WorkerLog::new(thread.inbox.clone(), Arc::clone(&self.line_counts))
        })
    }

    /// Asks the thread to reopen its file, after it was moved away. Lines sent before may still go
    /// to the old file. Has no effect on other destinations.
    pub fn reopen(&self) {
        if let Some(thread) = &self.thread {
            thread.requests.reopen.store(true, Ordering::Release);
            thread.inbox.wake();
        }
    }

    /// Counts of the lines written until now.
    pub fn counts(&self) -> LogCounts {
        self.line_counts.counts()
    }

    /// Signals the thread to end after writing all lines sent, and does not wait for it.
    pub fn finish(&self) {
        if let Some(thread) = &self.thread {
            thread.requests.close.store(true, Ordering::Release);
            thread.inbox.wake();
        }
    }

    /// Writes all lines sent so far and ends the thread, waiting at most for `timeout`. Lines that
    /// a worker sends later are counted as lost, so drop the workers' ends first. After the
    /// deadline the thread is detached, and the lines it still holds are `pending`.
    pub fn close(self, timeout: Duration) -> LogCounts {
        self.finish();
        if let Some(thread) = self.thread {
            match thread.ended.recv_timeout(timeout) {
                Ok(()) | Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => {}
            }
        }
        self.line_counts.counts()
    }
}

impl WriterThread {
    fn run(mut self) {
        loop {
            self.reopen_if_asked();
            // Read first: a batch that is sent between an empty inbox and the request would be
            // lost.
            let closes = self.requests.close.load(Ordering::Acquire);
            match self.inbox.try_recv() {
                Ok(batch) => self.write(batch),
                Err(TryRecvError::Empty) if closes => break,
                Err(TryRecvError::Empty) => thread::park(),
                Err(TryRecvError::Disconnected) => break,
            }
        }
    }

    fn reopen_if_asked(&mut self) {
        if self.requests.reopen.swap(false, Ordering::Acquire)
            && let Err(cause) = self.sink.reopen()
        {
            self.line_counts.failed();
            (self.report)(LogError::Reopen(cause));
        }
    }

    fn write(&mut self, mut batch: Batch) {
        match self.sink.write(&batch.bytes) {
            Ok(()) => {
                batch.settle(0);
                if let Some(lost) = self.failing.take() {
                    (self.report)(LogError::Recovered { lost });
                }
            }
            Err(PartialWrite { lost, cause }) => {
                batch.settle(lost);
                self.line_counts.failed();
                if self.failing.is_none() {
                    (self.report)(LogError::Write(cause));
                }
                *self.failing.get_or_insert(0) += lost;
            }
        }
    }
}

impl fmt::Debug for WriterThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterThread")
            .field("sink", &self.sink)
            .field("failing", &self.failing)
            .finish_non_exhaustive()
    }
}
