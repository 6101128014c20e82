//! Bytes that go from socket to socket by a pipe of the kernel's, and are never copied. [splice(2)]

use rustix::io::Errno;
use rustix::pipe::{
    PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice,
};
use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Pipes that are in use in one thread at most. Who gets none copies.
///
/// A client that takes nothing holds one, and what is in it.
const MOST_IN_USE: usize = 32;

/// Bytes that a pipe holds, if the system gives so much. As much as is copied at once: no connection
/// keeps the others waiting for longer.
const PIPE_BYTES: usize = 256 * 1024;

/// A pipe with room for less is of no use. Users with very many pipes get small ones. [pipe(7)]
const LEAST_ROOM: usize = 64 * 1024;

/// A body whose bytes can be moved into a pipe.
pub trait SpliceFrom {
    /// Whether what comes next of it is in a socket, and nobody has to look at it.
    fn can_splice(&self) -> bool;

    /// Moves up to `most` bytes. None: it has to be read, which may be to learn that it broke off.
    fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        most: u64,
    ) -> Poll<Option<usize>>;
}

/// A stream into which a pipe can be emptied.
pub trait SpliceTo {
    /// Whether it is a socket, with nothing that has to be done to the bytes.
    fn can_splice(&self) -> bool;

    /// Moves what it takes. Gives the number of bytes.
    ///
    /// # Errors
    /// Those of writing to it.
    fn poll_splice(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe) -> Poll<io::Result<usize>>;
}

/// A pipe, and what is in it. Its thread uses it again if it is dropped empty.
#[derive(Debug)]
pub struct Pipe {
    // None only while it is dropped.
    ends: Option<Ends>,
    held: usize,
}

#[derive(Debug)]
struct Ends {
    reader: OwnedFd,
    writer: OwnedFd,
}

#[derive(Debug, Default)]
struct Stock {
    in_use: usize,
    spare: Vec<Ends>,
    /// How many of the spare ones were not needed since somebody last looked.
    unneeded: usize,
}

thread_local! {
    static STOCK: RefCell<Stock> = RefCell::default();
}

/// Closes those of this thread's spare pipes that were not needed since it was last called.
pub fn close_spare_pipes() {
    STOCK.with_borrow_mut(Stock::close_unneeded);
}

impl Pipe {
    /// An empty pipe. None if the thread has as many as it may have, or the system has none to give.
    pub(crate) fn take() -> Option<Self> {
        let ends = STOCK.with_borrow_mut(Stock::lend)?;
        Some(Self {
            ends: Some(ends),
            held: 0,
        })
    }

    /// Whether everything that was moved into it was moved out again.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Moves up to `most` bytes from a socket into the pipe, which must be empty. Gives their number: 0 at
    /// the end of the stream.
    ///
    /// # Errors
    /// Those of reading; [`io::ErrorKind::Unsupported`] if the system allows no such thing.
    pub fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        from: &TcpStream,
        most: u64,
    ) -> Poll<io::Result<usize>> {
        let Some(ends) = &self.ends else {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        };
        let most = usize::try_from(most).map_or(PIPE_BYTES, |most| most.min(PIPE_BYTES));
        loop {
            ready!(from.poll_read_ready(cx))?;
            let moved = from.try_io(Interest::READABLE, || {
                let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
                splice(from, None, &ends.writer, None, most, flags).map_err(told)
            });
            if let Ok(count) = &moved {
                self.held += count;
            }
            if !is_early(&moved) {
                return Poll::Ready(moved);
            }
        }
    }

    /// Moves what the pipe holds to a socket, as far as that takes it. Gives the number of bytes.
    ///
    /// # Errors
    /// Those of writing.
    pub fn poll_drain(&mut self, cx: &mut Context<'_>, to: &TcpStream) -> Poll<io::Result<usize>> {
        let Some(ends) = &self.ends else {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        };
        loop {
            ready!(to.poll_write_ready(cx))?;
            let moved = to.try_io(Interest::WRITABLE, || {
                let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
                splice(&ends.reader, None, to, None, self.held, flags).map_err(told)
            });
            if let Ok(count) = &moved {
                self.held = self.held.saturating_sub(*count);
            }
            if !is_early(&moved) {
                return Poll::Ready(moved);
            }
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let ends = self.ends.take().filter(|_| self.held == 0);
        // A thread that ends has no stock any more.
        let returned = STOCK.try_with(|stock| stock.borrow_mut().take_back(ends));
        returned.unwrap_or_default();
    }
}

impl Stock {
    fn lend(&mut self) -> Option<Ends> {
        if self.in_use == MOST_IN_USE {
            return None;
        }
        let ends = self.spare.pop().or_else(Ends::open)?;
        self.unneeded = self.unneeded.min(self.spare.len());
        self.in_use += 1;
        Some(ends)
    }

    fn take_back(&mut self, ends: Option<Ends>) {
        self.in_use -= 1;
        self.spare.extend(ends);
    }

    fn close_unneeded(&mut self) {
        self.spare.drain(..self.unneeded);
        self.unneeded = self.spare.len();
    }
}

impl Ends {
    fn open() -> Option<Self> {
        let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        let (reader, writer) = pipe_with(flags).ok()?;
        let room = fcntl_setpipe_size(&writer, PIPE_BYTES).or_else(|_| fcntl_getpipe_size(&writer));
        (LEAST_ROOM <= room.ok()?).then_some(Self { reader, writer })
    }
}

/// Whether the socket was not ready after all.
fn is_early(moved: &io::Result<usize>) -> bool {
    moved
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// A kernel without the call, and a sandbox that does not allow it, say so in different ways.
fn told(error: Errno) -> io::Error {
    match error {
        Errno::INVAL | Errno::NOSYS | Errno::PERM | Errno::ACCESS => {
            io::Error::new(io::ErrorKind::Unsupported, io::Error::from(error))
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Both ends of a connection.
    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let (client, accepted) = tokio::join!(client, listener.accept());
        (client.unwrap(), accepted.unwrap().0)
    }

    /// How many are in use, and how many spare.
    fn in_stock() -> (usize, usize) {
        STOCK.with_borrow(|stock| (stock.in_use, stock.spare.len()))
    }

    fn on_a_runtime(test: impl Future<Output = ()>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_io().build().unwrap().block_on(test);
    }

    #[test]
    fn bytes_come_out_as_they_went_in_and_no_more_than_asked_for() {
        on_a_runtime(async {
            let ((mut near, from), (to, mut far)) = (pair().await, pair().await);
            near.write_all(b"some bytes, and the next").await.unwrap();
            let mut pipe = Pipe::take().unwrap();

            let moved = poll_fn(|cx| pipe.poll_fill(cx, &from, 10)).await.unwrap();
            assert_eq!(moved, 10);
            assert!(!pipe.is_empty());
            let moved = poll_fn(|cx| pipe.poll_drain(cx, &to)).await.unwrap();
            assert_eq!(moved, 10);
            assert!(pipe.is_empty());

            let mut heard = [0; 10];
            far.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"some bytes");
        });
    }

    #[test]
    fn the_end_of_a_stream_is_no_bytes() {
        on_a_runtime(async {
            let (near, from) = pair().await;
            drop(near);
            let mut pipe = Pipe::take().unwrap();

            let moved = poll_fn(|cx| pipe.poll_fill(cx, &from, 10)).await.unwrap();
            assert_eq!(moved, 0);
        });
    }

    #[test]
    fn a_thread_has_so_many_and_uses_empty_ones_again() {
        let all: Vec<Pipe> = std::iter::from_fn(Pipe::take).collect();
        assert_eq!(all.len(), MOST_IN_USE);
        drop(all);
        assert_eq!(in_stock(), (0, MOST_IN_USE));

        let mut full = Pipe::take().unwrap();
        full.held = 1;
        drop(full);
        assert_eq!(in_stock(), (0, MOST_IN_USE - 1));
    }

    #[test]
    fn spare_ones_that_nobody_needs_are_closed() {
        let two = [Pipe::take(), Pipe::take()];
        drop(two);
        close_spare_pipes();
        assert_eq!(in_stock(), (0, 2), "both were needed");

        drop(Pipe::take());
        close_spare_pipes();
        assert_eq!(in_stock(), (0, 1), "one was needed");
        close_spare_pipes();
        assert_eq!(in_stock(), (0, 0));
    }
}
