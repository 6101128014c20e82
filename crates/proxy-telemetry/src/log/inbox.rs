//! The way to the writer's thread, which sleeps while there is nothing to write.

use super::batch::Message;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread::Thread;

/// Takes messages for the thread, and wakes it.
///
/// The channel by itself would wake a thread that waits in it, while it holds a lock that the thread
/// takes next: where both share a core, that is two more switches between them for each message.
#[derive(Clone, Debug)]
pub(crate) struct Inbox {
    // Dropped first, so that the thread that is woken then finds out that it was the last.
    messages: SyncSender<Message>,
    reader: Reader,
}

/// The thread, which is woken when somebody who could write to it is gone.
#[derive(Clone, Debug)]
struct Reader(Thread);

impl Inbox {
    /// `reader` parks when it finds the channel empty.
    pub(crate) fn new(messages: SyncSender<Message>, reader: Thread) -> Self {
        let reader = Reader(reader);
        Self { messages, reader }
    }

    /// Never waits.
    pub(crate) fn put(&self, message: Message) -> Result<(), TrySendError<Message>> {
        self.messages.try_send(message)?;
        self.reader.0.unpark();
        Ok(())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.unpark();
    }
}
