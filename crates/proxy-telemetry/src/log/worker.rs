//! A worker's end of a log.

use super::batch::Batch;
use super::batch_sender::BatchSender;
use super::bounds::BATCH_BYTES;
use super::counts::LineCounts;
use super::spare::SpareBuffers;
use crate::record::{
    AccessFormat, AccessLogHead, AccessLogRequest, AccessRecord, ErrorRecord, EventRecord,
    LimitRecord, SpareNotes, TimestampText,
};
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// A batch is begun with room for this many bytes, so that its last line rarely makes it grow.
const BEGUN_BYTES: usize = BATCH_BYTES + 4 * 1024;

/// One worker's end of a log. Owned by the worker; never waits.
#[derive(Debug)]
pub struct WorkerLog {
    batch: Vec<u8>,
    lines: u64,
    /// The batch is handed over with so many lines, however short they are.
    most_lines: u64,
    /// Lines of the batch that the books know of, because it could not be handed over before.
    entered: u64,
    clock: TimestampText,
    notes: SpareNotes,
    /// None when the log is off.
    wire: Option<Wire>,
}

#[derive(Debug)]
struct Wire {
    inbox: BatchSender,
    spare: SpareBuffers,
    home: SyncSender<Vec<u8>>,
    books: Arc<LineCounts>,
}

impl WorkerLog {
    pub(crate) fn new(inbox: BatchSender, books: Arc<LineCounts>) -> Self {
        let (home, spare) = SpareBuffers::new();
        let most_lines = books.batch_lines();
        let wire = Wire {
            inbox,
            spare,
            home,
            books,
        };
        Self::over(Some(wire), most_lines)
    }

    /// An end of no log: records are not even made.
    pub fn off() -> Self {
        Self::over(None, u64::MAX)
    }

    fn over(wire: Option<Wire>, most_lines: u64) -> Self {
        Self {
            batch: Vec::new(),
            lines: 0,
            most_lines,
            entered: 0,
            clock: TimestampText::default(),
            notes: SpareNotes::default(),
            wire,
        }
    }

    /// Whether records go anywhere; where not, there is no need to gather their facts.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.wire.is_some()
    }

    /// Writes down what a client said of a request that begins, for [`WorkerLog::access`] when it is
    /// over. None when the log is off.
    #[inline]
    pub fn access_head(
        &mut self,
        facts: &AccessLogRequest<'_>,
        format: &AccessFormat,
    ) -> Option<AccessLogHead> {
        self.is_on()
            .then(|| facts.access_head(format, &mut self.notes))
    }

    /// Writes down a request that is over.
    #[inline]
    pub fn access(&mut self, record: &AccessRecord<'_>, access_head: AccessLogHead) {
        if self.is_on() {
            record.write(&mut self.batch, &mut self.clock, &access_head);
            self.notes.keep(access_head);
            self.end_line();
        }
    }

    /// Writes down a failure.
    pub fn error(&mut self, record: &ErrorRecord<'_>) {
        if self.is_on() {
            record.write(&mut self.batch, &mut self.clock);
            self.end_line();
        }
    }

    /// Writes down a limit that was met.
    pub fn limit(&mut self, record: &LimitRecord<'_>) {
        if self.is_on() {
            record.write(&mut self.batch, &mut self.clock);
            self.end_line();
        }
    }

    /// Writes down an event of the process, and hands it over at once.
    pub fn event(&mut self, record: &EventRecord<'_>) {
        if self.is_on() {
            record.write(&mut self.batch, &mut self.clock);
            self.end_line();
            self.flush();
        }
    }

    /// Hands over what has been written down, for the worker to call at each tick. What the
    /// channel has no room for is kept for the next.
    pub fn flush(&mut self) {
        if self.lines > 0 {
            self.hand_over();
        }
    }

    #[inline]
    fn end_line(&mut self) {
        self.lines += 1;
        if self.batch.len() >= BATCH_BYTES || self.lines >= self.most_lines {
            self.hand_over();
            self.give_up();
        }
    }

    /// Hands the batch over if there is room, else keeps it.
    #[cold]
    fn hand_over(&mut self) {
        let Some(wire) = &mut self.wire else {
            return;
        };
        // Entered before they can be written, for the books never to show more written than made.
        wire.books.made(self.lines - self.entered);
        self.entered = self.lines;
        if wire.books.is_full() {
            return;
        }
        let batch = Batch {
            bytes: mem::take(&mut self.batch),
            lines: self.lines,
            home: wire.home.clone(),
            books: Arc::clone(&wire.books),
        };
        match wire.inbox.put(batch) {
            Ok(()) => {
                let spare = wire.spare.take();
                self.batch = spare.unwrap_or_else(|| Vec::with_capacity(BEGUN_BYTES));
                self.lines = 0;
                self.entered = 0;
            }
            Err(batch) => self.batch = batch.take_back(),
        }
    }

    /// Gives up what could not be handed over.
    fn give_up(&mut self) {
        if let Some(wire) = &self.wire {
            wire.books.lost(self.lines);
        }
        self.batch.clear();
        self.lines = 0;
        self.entered = 0;
    }
}

impl Drop for WorkerLog {
    fn drop(&mut self) {
        if self.lines > 0 {
            self.hand_over();
            self.give_up();
        }
    }
}
