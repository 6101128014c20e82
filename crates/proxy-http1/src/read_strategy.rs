//! Reads into buffers sized by the amount of data.

use bytes::BytesMut;
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::io::poll_read_buf;

/// Size of a small read, in bytes.
const SMALL_READ_BYTES: usize = 8 * 1024;

/// A small read that returns more bytes than this is followed by large reads.
const GROW_ABOVE_BYTES: usize = 2 * 1024;

/// Minimum size of a large read, in bytes.
const LARGE_READ_BYTES: usize = 16 * 1024;

/// Sum of the sizes of all large reads of a thread, in bytes beyond [`LARGE_READ_BYTES`] each. The
/// limit exists because data for a slow client stays in memory for a long time.
const SHARED_READ_BYTES: usize = 32 * 1024 * 1024;

/// Divisor of the rest of [`SHARED_READ_BYTES`] that one connection may take, so that the first
/// ones do not take everything.
const SHARE: usize = 16;

/// Part of the memory limit that the large reads of one thread may use beyond [`LARGE_READ_BYTES`] each.
const MEMORY_LIMIT_SHARE: u64 = 64;

thread_local! {
    /// [`SHARED_READ_BYTES`], or less under a memory limit.
    static SHARED: Cell<usize> = const { Cell::new(SHARED_READ_BYTES) };

    /// Bytes of [`SHARED_READ_BYTES`] in use.
    static TAKEN: Cell<usize> = const { Cell::new(0) };

    /// The buffer of small reads, shared by the thread's connections, so that a connection holds
    /// only the data it received.
    static SCRATCH: RefCell<Box<[u8; SMALL_READ_BYTES]>> = RefCell::new(Box::new([0; SMALL_READ_BYTES]));
}

/// The size of the next read: reads that fill their buffer are followed by larger ones, within the
/// thread's shared memory for them.
#[derive(Debug)]
pub struct ReadStrategy {
    /// Size of the next large read; `None` for a small read.
    large: Option<usize>,
    most: usize,
}

impl ReadStrategy {
    /// Reads of at most `most` bytes, a power of two of at least 16 KiB.
    #[must_use]
    pub const fn up_to(most: usize) -> Self {
        Self { large: None, most }
    }

    /// Returns to small reads.
    pub fn forget(&mut self) {
        self.ask_for(None);
    }

    /// Returns to the smallest large reads, if reads are larger.
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
        if more <= SHARED.get().saturating_sub(TAKEN.get()) / SHARE {
            self.ask_for(Some(more));
        }
    }

    /// Appends to `buffer`. Returns the number of bytes read: 0 at the end of the stream.
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
            let came = read.filled();
            buffer.extend_from_slice(came);
            if came.len() > GROW_ABOVE_BYTES {
                self.ask_for(Some(LARGE_READ_BYTES));
            }
            Poll::Ready(Ok(came.len()))
        })
    }
}

impl Drop for ReadStrategy {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Bounds the large reads of this thread by the memory limit of the process, in bytes.
pub fn limit_large_reads(max_memory_bytes: Option<u64>) {
    let share = max_memory_bytes.map(|max| max / MEMORY_LIMIT_SHARE);
    let share = share.and_then(|share| usize::try_from(share).ok());
    SHARED.set(share.map_or(SHARED_READ_BYTES, |share| share.min(SHARED_READ_BYTES)));
}

fn beyond_least(large: Option<usize>) -> usize {
    large.map_or(0, |large| large.saturating_sub(LARGE_READ_BYTES))
}

/// Ready when the peer closes the connection or sends data; one byte of that data is lost.
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

    /// The strategy after ten reads that filled their buffers.
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
