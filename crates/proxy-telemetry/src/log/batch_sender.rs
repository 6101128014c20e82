//! The way to the writer's thread, which sleeps while there is nothing to write.

use super::batch::Batch;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread::Thread;

/// Takes batches for the thread, and wakes it.
///
/// The channel by itself would wake a thread that waits in it, while it holds a lock that the thread
/// takes next: where both share a core, that is two more switches between them for each batch.
#[derive(Clone, Debug)]
pub(crate) struct BatchSender {
    // Dropped first, so that the thread that is woken then finds out that it was the last.
    batches: SyncSender<Batch>,
    reader: Reader,
}

/// The thread, which is woken when somebody who could write to it is gone.
#[derive(Clone, Debug)]
struct Reader(Thread);

impl BatchSender {
    /// `reader` parks when it finds the channel empty.
    pub(crate) fn new(batches: SyncSender<Batch>, reader: Thread) -> Self {
        let reader = Reader(reader);
        Self { batches, reader }
    }

    /// Never waits; gives the batch back when there is no room, or nobody to take it.
    pub(crate) fn put(&self, batch: Batch) -> Result<(), Batch> {
        match self.batches.try_send(batch) {
            Ok(()) => {
                self.wake();
                Ok(())
            }
            Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => Err(batch),
        }
    }

    /// Makes the thread look for what it has to do.
    pub(crate) fn wake(&self) {
        self.reader.0.unpark();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.unpark();
    }
}
