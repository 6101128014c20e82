//! Buffers that came back to the worker that filled them.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Buffers that are kept. Steady work needs three: one is filled, one is written, one may be on its way
/// back. With room for all of them none is ever freed, however late the worker looks.
const SPARE_BUFFERS: usize = 3;

/// Gives out the buffer that came back last, which is in the cache still: a short way to go round makes
/// room there for the requests.
#[derive(Debug)]
pub(crate) struct SpareBuffers {
    back: Receiver<Vec<u8>>,
    kept: Vec<Vec<u8>>,
}

impl SpareBuffers {
    /// With the way back to it.
    pub(crate) fn new() -> (SyncSender<Vec<u8>>, Self) {
        let (home, back) = sync_channel(SPARE_BUFFERS);
        let kept = Vec::with_capacity(2 * SPARE_BUFFERS);
        (home, Self { back, kept })
    }

    /// An empty buffer, if there is one.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        self.kept.extend(self.back.try_iter());
        let last = self.kept.pop();
        self.kept.truncate(SPARE_BUFFERS);
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_that_came_back_is_taken_first() {
        let (home, mut spare) = SpareBuffers::new();
        assert_eq!(spare.take(), None);

        let send = |capacity| home.send(Vec::with_capacity(capacity)).unwrap();
        let mut taken = || spare.take().map(|buffer| buffer.capacity());
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
        let (home, mut spare) = SpareBuffers::new();

        for _ in 0..2 * SPARE_BUFFERS {
            while home.try_send(Vec::new()).is_ok() {}
            assert_eq!(spare.take(), Some(Vec::new()));
            assert!(spare.kept.len() <= SPARE_BUFFERS);
        }
    }
}
