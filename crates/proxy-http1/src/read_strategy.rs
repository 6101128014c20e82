//! Reads into buffers that adapt to the amount of data.

use bytes::BytesMut;
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::io::poll_read_buf;

/// Size of a small read, in bytes.
const SMALL_READ_BYTES: usize = 8 * 1024;

/// Size of a small read's result above which large reads follow, in bytes.
const GROW_ABOVE_BYTES: usize = 2 * 1024;

/// Minimum size of a large read, in bytes.
const LARGE_READ_BYTES: usize = 16 * 1024;

/// Maximum memory for a thread's large reads, in bytes beyond [`LARGE_READ_BYTES`] each. Limited
/// because data for a slow client stays in memory for long.
const SHARED_READ_BYTES: usize = 32 * 1024 * 1024;

/// Divisor of the remaining [`SHARED_READ_BYTES`]: the part that one connection may take, so that
/// the first connections do not use it up.
const SHARE_DIVISOR: usize = 16;

/// Divisor of the process's memory limit: the part for a thread's large reads beyond
/// [`LARGE_READ_BYTES`] each.
const MEMORY_LIMIT_SHARE: u64 = 64;

thread_local! {
    /// Current limit: [`SHARED_READ_BYTES`], or less under a memory limit.
    static SHARED: Cell<usize> = const { Cell::new(SHARED_READ_BYTES) };

    /// Bytes of the limit in use.
    static TAKEN: Cell<usize> = const { Cell::new(0) };

    /// Buffer for small reads, shared by the thread's connections, so that each connection holds
    /// only the data that it has received.
    static SCRATCH: RefCell<Box<[u8; SMALL_READ_BYTES]>> = RefCell::new(Box::new([0; SMALL_READ_BYTES]));
}

/// Chooses the size of the next read. Reads that fill their buffer are followed by larger ones,
/// within the thread's shared memory.
#[derive(Debug)]
pub struct ReadStrategy {
    /// Size of the next large read; `None` for a small one.
    large: Option<usize>,
    most: usize,
}

impl ReadStrategy {
    /// Creates a strategy for reads of at most `most` bytes, which must be a power of two and at
    /// least 16 KiB.
    #[must_use]
    pub const fn up_to(most: usize) -> Self {
        Self { large: None, most }
    }

    /// Continues with small reads.
    pub fn forget(&mut self) {
        self.ask_for(None);
    }

    /// Continues with the smallest large reads, if reads are larger now.
    pub fn moderate(&mut self) {
        self.ask_for(self.large.map(|_| LARGE_READ_BYTES));
    }

    fn ask_for(&mut self, large: Option<usize>) {
        if self.large != large {
            TAKEN.set(TAKEN.get() + beyond_least(large) - beyond_least(self.large));
            self.large = large;
        }
    }

    /// Doubles the read size `wanted`, within the shared memory.
    fn grow(&mut self, wanted: usize) {
        let more = (wanted * 2).min(self.most);
        if more <= SHARED.get().saturating_sub(TAKEN.get()) / SHARE_DIVISOR {
            self.ask_for(Some(more));
        }
    }

    /// Reads and appends to `buffer`. Returns the number of bytes: 0 at the end of the stream.
    ///
    /// # Errors
    /// Errors of reading `from`.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut (impl AsyncRead + Unpin),
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        let Some(wanted) = self.large else {
            return self.poll_read_little(cx, from, buffer);
        };
        if buffer.capacity() - buffer.len() < wanted - wanted / 4 {
            buffer.reserve(wanted);
        }
        let room = buffer.capacity() - buffer.len();
        let count = ready!(poll_read_buf(Pin::new(from), cx, buffer))?;
        if count == room {
            self.grow(wanted);
        } else if count < GROW_ABOVE_BYTES {
            self.forget();
        } else if count < wanted / 4 {
            self.ask_for(Some((wanted / 2).max(LARGE_READ_BYTES)));
        }
        Poll::Ready(Ok(count))
    }

    fn poll_read_little(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut (impl AsyncRead + Unpin),
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut read = ReadBuf::new(&mut **scratch);
            ready!(Pin::new(from).poll_read(cx, &mut read))?;
            let received = read.filled();
            buffer.extend_from_slice(received);
            if received.len() > GROW_ABOVE_BYTES {
                self.ask_for(Some(LARGE_READ_BYTES));
            }
            Poll::Ready(Ok(received.len()))
        })
    }
}

impl Drop for ReadStrategy {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Limits the thread's large reads by the process's memory limit.
pub fn limit_large_reads(max_memory_bytes: Option<u64>) {
    let share = max_memory_bytes.map(|max| max / MEMORY_LIMIT_SHARE);
    let share = share.and_then(|share| usize::try_from(share).ok());
    SHARED.set(share.map_or(SHARED_READ_BYTES, |share| share.min(SHARED_READ_BYTES)));
}

fn beyond_least(large: Option<usize>) -> usize {
    large.map_or(0, |large| large.saturating_sub(LARGE_READ_BYTES))
}

/// Ready when the peer closes the connection or sends data, of which one byte is lost.
pub fn poll_hang_up(cx: &mut Context<'_>, from: &mut (impl AsyncRead + Unpin)) -> Poll<()> {
    let mut byte = [0];
    let polled = Pin::new(from).poll_read(cx, &mut ReadBuf::new(&mut byte));
    polled.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    const MAX_READ_BYTES: usize = 512 * 1024;

    /// A strategy after ten reads that filled their buffers.
    fn fed() -> ReadStrategy {
        let mut strategy = ReadStrategy::up_to(MAX_READ_BYTES);
        for _ in 0..10 {
            let mut endless = tokio::io::repeat(0);
            let mut buffer = BytesMut::new();
            let mut cx = Context::from_waker(Waker::noop());
            let read = strategy.poll_read(&mut cx, &mut endless, &mut buffer);
            assert!(matches!(read, Poll::Ready(Ok(1..))));
        }
        strategy
    }

    #[test]
    fn reads_that_fill_their_room_grow() {
        assert_eq!(fed().large, Some(MAX_READ_BYTES));
    }

    #[test]
    fn all_together_stay_within_bounds_and_what_is_dropped_is_free() {
        let hundreds: Vec<ReadStrategy> = (0..500).map(|_| fed()).collect();

        let asked: usize = hundreds.iter().filter_map(|it| it.large).sum();
        assert!(
            asked <= SHARED_READ_BYTES + hundreds.len() * LARGE_READ_BYTES,
            "{asked}"
        );
        assert!(asked > SHARED_READ_BYTES / 2, "{asked}");
        assert_eq!(fed().large, Some(LARGE_READ_BYTES));

        drop(hundreds);
        assert_eq!(TAKEN.get(), 0);
        assert_eq!(fed().large, Some(MAX_READ_BYTES));

        limit_large_reads(Some(64 << 20));
        assert_eq!(fed().large, Some(LARGE_READ_BYTES * 2));
        limit_large_reads(None);
        assert_eq!(fed().large, Some(MAX_READ_BYTES));
    }
}
