//! Flow control between the streams of an HTTP/2 connection and its socket.

use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};

/// Maximum number of bytes of one connection that may wait for its socket, with [`FRAME_BYTES`] for each frame.
const MAX_WAITING_BYTES: usize = 256 * 1024;
/// Memory for a frame that waits, without its data: frames may have a byte each.
const FRAME_BYTES: usize = 256;

/// The DATA frames of a connection that wait for its socket, and the streams that wait until it accepts them.
///
/// `h2` limits the bytes of each stream that wait, but not the number of their frames.
#[derive(Debug, Default)]
pub struct UnsentFrames {
    /// The socket accepts no bytes.
    is_blocked: Cell<bool>,
    /// Bytes since the socket last accepted everything.
    bytes: Cell<usize>,
    waiting_streams: RefCell<Vec<Waker>>,
}

impl UnsentFrames {
    /// Counts a frame with this number of bytes that is not yet written to the socket.
    #[inline]
    pub fn add(&self, bytes: usize) {
        let unsent = self.bytes.get();
        self.bytes.set(unsent.saturating_add(bytes + FRAME_BYTES));
    }

    /// Returns true if the socket accepts no bytes.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.is_blocked.get()
    }

    /// Records that the socket accepts no bytes. Returns false if that was known.
    pub fn block(&self) -> bool {
        !self.is_blocked.replace(true)
    }

    /// Records that the socket accepts bytes. Returns false if it was not blocked.
    #[inline]
    pub fn unblock(&self) -> bool {
        self.is_blocked.replace(false)
    }

    /// Wakes the waiting streams, because the socket has accepted everything or is closed.
    #[inline]
    pub fn clear(&self) {
        self.is_blocked.set(false);
        self.bytes.set(0);
        self.waiting_streams
            .borrow_mut()
            .drain(..)
            .for_each(Waker::wake);
    }

    /// Returns true if streams must wait until the socket has accepted earlier frames. Registers the caller's waker
    /// if so.
    #[inline]
    pub fn is_full(&self, cx: &Context<'_>) -> bool {
        let is_full = self.is_blocked.get() || MAX_WAITING_BYTES <= self.bytes.get();
        if is_full {
            let mut waiting_streams = self.waiting_streams.borrow_mut();
            if !waiting_streams
                .iter()
                .any(|known| known.will_wake(cx.waker()))
            {
                waiting_streams.push(cx.waker().clone());
            }
        }
        is_full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn streams_wait_for_a_blocked_socket_and_are_woken_once() {
        let (frames, wakes) = (UnsentFrames::default(), Arc::new(Wakes::default()));
        let waker = Arc::clone(&wakes).into();
        let cx = Context::from_waker(&waker);
        assert!(!frames.is_full(&cx));
        assert!(frames.block() && !frames.block());
        assert!(frames.is_full(&cx) && frames.is_full(&cx));
        frames.clear();
        assert!(!frames.is_full(&cx) && !frames.unblock());
        frames.clear();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn frames_of_one_byte_are_full_before_their_bytes_are() {
        let (frames, cx) = (UnsentFrames::default(), Context::from_waker(Waker::noop()));
        let mut count = 0;
        while !frames.is_full(&cx) {
            frames.add(1);
            count += 1;
        }
        assert!(0 < count && count < MAX_WAITING_BYTES / FRAME_BYTES);
        frames.clear();
        assert!(!frames.is_full(&cx));
    }
}
