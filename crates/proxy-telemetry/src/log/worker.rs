//! The interface of a log to one worker.

use super::batch::Batch;
use super::batch_sender::BatchSender;
use super::bounds::BATCH_BYTES;
use super::buffer_pool::BufferPool;
use super::counts::LineCounts;
use super::repeated_limits::RepeatedLimits;
use super::repetitions::Windows;
use crate::record::{
    AccessFormat, AccessLogHead, AccessLogRequest, AccessRecord, ErrorRecord, EventRecord,
    HeadBufferPool, LimitRecord, RecordedFields, RecordingFormat, TimestampText,
};
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// Initial capacity of a batch, in bytes, so that its last line rarely makes it grow.
const BEGUN_BYTES: usize = BATCH_BYTES + 4 * 1024;

/// A log's batch of one worker. Owned by the worker; never waits.
#[derive(Debug)]
pub struct WorkerLog {
    batch: Vec<u8>,
    lines: u64,
    /// Number of lines at which the batch is sent, however short they are.
    most_lines: u64,
    /// Lines of the batch counted already, because it could not be sent before.
    entered: u64,
    clock: TimestampText,
    head_buffers: HeadBufferPool,
    limits: RepeatedLimits,
    /// `None` if the log is off.
    wire: Option<WriterChannel>,
}

#[derive(Debug)]
struct WriterChannel {
    inbox: BatchSender,
    pool: BufferPool,
    home: SyncSender<Vec<u8>>,
    line_counts: Arc<LineCounts>,
}

impl WorkerLog {
    pub(crate) fn new(inbox: BatchSender, line_counts: Arc<LineCounts>) -> Self {
        let (home, pool) = BufferPool::new();
        let most_lines = line_counts.batch_lines();
        let wire = WriterChannel {
            inbox,
            pool,
            home,
            line_counts,
        };
        Self::over(Some(wire), most_lines)
    }

    /// A log that is off: records are not encoded.
    pub fn off() -> Self {
        Self::over(None, u64::MAX)
    }

    fn over(wire: Option<WriterChannel>, most_lines: u64) -> Self {
        Self {
            batch: Vec::new(),
            lines: 0,
            most_lines,
            entered: 0,
            clock: TimestampText::default(),
            head_buffers: HeadBufferPool::default(),
            limits: RepeatedLimits::default(),
            wire,
        }
    }

    /// Returns true if the log is on; if it is off, callers need not collect records.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.wire.is_some()
    }

    /// Encodes the head of a request at its beginning, for [`WorkerLog::access`] at its end. `None`
    /// if the log is off.
    #[inline]
    pub fn access_head(
        &mut self,
        facts: &AccessLogRequest<'_>,
        format: &AccessFormat,
    ) -> Option<AccessLogHead> {
        self.is_on()
            .then(|| facts.access_head(format, &mut self.head_buffers))
    }

    /// Encodes the head of a request with its listener and header fields, for [`WorkerLog::access`]
    /// at its end. `None` if the log is off.
    pub fn recorded_head<'h, H: Iterator<Item = (&'h [u8], &'h [u8])>>(
        &mut self,
        facts: &AccessLogRequest<'_>,
        fields: RecordedFields<'_, H>,
        format: &RecordingFormat,
    ) -> Option<AccessLogHead> {
        self.is_on()
            .then(|| facts.recorded_head(fields, format, &mut self.head_buffers))
    }

    /// Appends the record of a finished request.
    #[inline]
    pub fn access(&mut self, record: &AccessRecord<'_>, access_head: AccessLogHead) {
        if self.is_on() {
            record.write(&mut self.batch, &mut self.clock, &access_head);
            self.head_buffers.recycle(access_head);
            self.end_line();
        }
    }

    /// Appends the record of a failure.
    pub fn error(&mut self, record: &ErrorRecord<'_>) {
        if self.is_on() {
            record.write(&mut self.batch, &mut self.clock);
            self.end_line();
        }
    }

    /// Appends the record of a reached limit. After five of one limit and one client within five
    /// seconds, further ones are counted for [`Self::sum_up`].
    pub fn limit(&mut self, record: &LimitRecord<'_>) {
        if self.is_on() && self.limits.admit(record) {
            record.write(&mut self.batch, &mut self.clock);
            self.end_line();
        }
    }

    /// Appends a record about each kind of limit record that was repeated, after its window at
    /// `now`, since the Unix epoch.
    pub fn sum_up(&mut self, now: Duration) {
        self.sum_up_limits(now, Windows::Ended);
    }

    fn sum_up_limits(&mut self, now: Duration, windows: Windows) {
        let mut limits = mem::take(&mut self.limits);
        limits.sum_up(now, windows, |record| {
            record.write(&mut self.batch, &mut self.clock);
            self.end_line();
        });
        self.limits = limits;
    }

    /// Appends the record of an event of the process, and sends the batch at once.
    pub fn event(&mut self, record: &EventRecord<'_>) {
        if self.is_on() {
            record.write(&mut self.batch, &mut self.clock);
            self.end_line();
            self.flush();
        }
    }

    /// Sends the batch; the worker calls this at each tick. A batch that does not fit into the
    /// channel is kept until the next call.
    pub fn flush(&mut self) {
        if self.lines > 0 {
            self.send_batch();
        }
    }

    #[inline]
    fn end_line(&mut self) {
        self.lines += 1;
        if self.batch.len() >= BATCH_BYTES || self.lines >= self.most_lines {
            self.send_batch();
            self.drop_batch();
        }
    }

    /// Sends the batch if the channel has room, else keeps it.
    #[cold]
    fn send_batch(&mut self) {
        let Some(wire) = &mut self.wire else {
            return;
        };
        // Counted before they can be written, so that `written` never exceeds `made`.
        wire.line_counts.made(self.lines - self.entered);
        self.entered = self.lines;
        if wire.line_counts.is_full() {
            return;
        }
        let batch = Batch {
            bytes: mem::take(&mut self.batch),
            lines: self.lines,
            home: wire.home.clone(),
            line_counts: Arc::clone(&wire.line_counts),
        };
        match wire.inbox.put(batch) {
            Ok(()) => {
                let buffer = wire.pool.take();
                self.batch = buffer.unwrap_or_else(|| Vec::with_capacity(BEGUN_BYTES));
                self.lines = 0;
                self.entered = 0;
            }
            Err(batch) => self.batch = batch.take_back(),
        }
    }

    /// Drops and counts the lines that could not be sent.
    fn drop_batch(&mut self) {
        if let Some(wire) = &self.wire {
            wire.line_counts.lost(self.lines);
        }
        self.batch.clear();
        self.lines = 0;
        self.entered = 0;
    }
}

impl Drop for WorkerLog {
    fn drop(&mut self) {
        self.sum_up_limits(Duration::ZERO, Windows::All);
        if self.lines > 0 {
            self.send_batch();
            self.drop_batch();
        }
    }
}
