//! The sender of batches to the writer thread, which sleeps while there is nothing to write.

use super::batch::Batch;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread::Thread;

/// Sends batches to the writer thread and wakes it.
///
/// The thread parks instead of waiting in the channel: the channel would wake it while holding a
/// lock that the thread takes next, which costs two more context switches for each batch if both
/// share a core.
#[derive(Clone, Debug)]
pub(crate) struct BatchSender {
    // Dropped before `reader`, so that the thread woken by that finds the channel closed.
    batches: SyncSender<Batch>,
    reader: Reader,
}

/// The writer thread, woken when a sender is dropped.
#[derive(Clone, Debug)]
struct Reader(Thread);

impl BatchSender {
    /// `reader` must park when it finds the channel empty.
    pub(crate) fn new(batches: SyncSender<Batch>, reader: Thread) -> Self {
        let reader = Reader(reader);
        Self { batches, reader }
    }

    /// Sends without waiting; returns the batch if the channel is full or closed.
    pub(crate) fn put(&self, batch: Batch) -> Result<(), Batch> {
        match self.batches.try_send(batch) {
            Ok(()) => {
                self.wake();
                Ok(())
            }
            Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => Err(batch),
        }
    }

    /// Wakes the writer thread.
    pub(crate) fn wake(&self) {
        self.reader.0.unpark();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.unpark();
    }
}
