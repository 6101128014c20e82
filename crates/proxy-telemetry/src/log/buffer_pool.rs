//! Buffers returned to the worker that filled them.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Number of buffers kept. Steady work needs three: one being filled, one being written, one being
/// returned. With these none is freed, even if the worker collects them late.
const POOLED_BUFFERS: usize = 3;

/// Returns the buffer used last, because it is still in the processor's cache; using few buffers
/// leaves more of the cache to requests.
#[derive(Debug)]
pub(crate) struct BufferPool {
    back: Receiver<Vec<u8>>,
    kept: Vec<Vec<u8>>,
}

impl BufferPool {
    /// A pool, with the channel that returns buffers.
    pub(crate) fn new() -> (SyncSender<Vec<u8>>, Self) {
        let (home, back) = sync_channel(POOLED_BUFFERS);
        let kept = Vec::with_capacity(2 * POOLED_BUFFERS);
        (home, Self { back, kept })
    }

    /// An empty buffer, if one is available.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        self.kept.extend(self.back.try_iter());
        let last = self.kept.pop();
        self.kept.truncate(POOLED_BUFFERS);
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_recently_returned_connection_is_taken_first() {
        let (home, mut pool) = BufferPool::new();
        assert_eq!(pool.take(), None);

        let send = |capacity| home.send(Vec::with_capacity(capacity)).unwrap();
        let mut taken = || pool.take().map(|buffer| buffer.capacity());
        send(1000);
        send(2000);
        assert_eq!(taken(), Some(2000));
        send(3000);
        assert_eq!(taken(), Some(3000));
        assert_eq!(taken(), Some(1000));
        assert_eq!(taken(), None);
    }

    #[test]
    fn few_are_kept() {
        let (home, mut pool) = BufferPool::new();

        for _ in 0..2 * POOLED_BUFFERS {
            while home.try_send(Vec::new()).is_ok() {}
            assert_eq!(pool.take(), Some(Vec::new()));
            assert!(pool.kept.len() <= POOLED_BUFFERS);
        }
    }
}
