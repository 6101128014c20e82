//! Reads into buffers that are as large as what comes.

use bytes::BytesMut;
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::io::poll_read_buf;

/// Small reads ask for so many bytes.
const LITTLE: usize = 8 * 1024;

/// A small read that brings more than this is followed by large ones.
const MUCH: usize = 2 * 1024;

/// Large reads ask for at least so many bytes.
const LEAST: usize = 16 * 1024;

thread_local! {
    /// Where small reads go first: a connection then holds what came, and no room for what may come.
    static SCRATCH: RefCell<Box<[u8; LITTLE]>> = RefCell::new(Box::new([0; LITTLE]));
}

/// How many bytes the next read asks for: reads that fill their room are followed by larger ones.
#[derive(Debug)]
pub struct Appetite {
    /// None: a small read.
    large: Option<usize>,
    most: usize,
}

impl Appetite {
    /// Reads of at most `most` bytes, a power of two of 16 KiB at least.
    #[must_use]
    pub const fn up_to(most: usize) -> Self {
        Self { large: None, most }
    }

    /// Begins again with small reads.
    pub fn forget(&mut self) {
        self.large = None;
    }

    /// Goes back to the least of large reads, if it has come that far.
    pub fn moderate(&mut self) {
        self.large = self.large.map(|_| LEAST);
    }

    /// Reads behind what `buffer` holds. Gives the number of bytes read: 0 at the end.
    ///
    /// # Errors
    /// Those of `from`.
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
            self.large = Some((wanted * 2).min(self.most));
        } else if count < MUCH {
            self.large = None;
        } else if count < wanted / 4 {
            self.large = Some((wanted / 2).max(LEAST));
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
            if came.len() > MUCH {
                self.large = Some(LEAST);
            }
            Poll::Ready(Ok(came.len()))
        })
    }
}

/// Ready when the other side has hung up, or has said something. A byte of what it said is lost.
pub fn poll_hang_up(cx: &mut Context<'_>, from: &mut (impl AsyncRead + Unpin)) -> Poll<()> {
    let mut byte = [0];
    let polled = Pin::new(from).poll_read(cx, &mut ReadBuf::new(&mut byte));
    polled.map(drop)
}
