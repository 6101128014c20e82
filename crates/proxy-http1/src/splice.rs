//! Moves bytes from socket to socket through a kernel pipe, without copying them to user space.
//! [splice(2)]

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

/// Maximum number of pipes in use in one thread; further bodies are copied.
///
/// A client that reads nothing keeps a pipe occupied.
const MAX_PIPES_IN_USE: usize = 32;

/// Requested capacity of a pipe, equal to the amount that is copied at once: a splice delays other
/// connections no longer than a copy.
const PIPE_BYTES: usize = 256 * 1024;

/// Minimum useful capacity of a pipe: the kernel gives small pipes to users with very many of them.
const MIN_PIPE_BYTES: usize = 64 * 1024;

/// A body that can be spliced into a pipe.
pub trait SpliceFrom {
    /// Returns true if the next bytes are in a socket and need no processing.
    fn can_splice(&self) -> bool;

    /// Moves at most `most` bytes. `None` if the body must be read instead, for example to get its
    /// error.
    fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        most: u64,
    ) -> Poll<Option<usize>>;
}

/// A stream that a pipe can be spliced into.
pub trait SpliceTo {
    /// Returns true if the stream is a plain socket, which does not process the bytes.
    fn can_splice(&self) -> bool;

    /// Moves as many bytes as the stream accepts; returns their number.
    ///
    /// # Errors
    /// Errors of writing to the stream.
    fn poll_splice(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe) -> Poll<io::Result<usize>>;
}

/// A pipe with its contents. If it is empty when dropped, it returns to its thread's pool.
#[derive(Debug)]
pub struct Pipe {
    // `None` only while dropping.
    ends: Option<Ends>,
    held: usize,
}

#[derive(Debug)]
struct Ends {
    reader: OwnedFd,
    writer: OwnedFd,
}

#[derive(Debug, Default)]
struct PipePool {
    in_use: usize,
    idle: Vec<Ends>,
    /// Minimum number of idle pipes since the last call of [`close_idle_pipes`].
    unneeded: usize,
}

thread_local! {
    static PIPE_POOL: RefCell<PipePool> = RefCell::default();
}

/// Closes this thread's idle pipes that were not needed since the last call.
pub fn close_idle_pipes() {
    PIPE_POOL.with_borrow_mut(PipePool::close_unneeded);
}

impl Pipe {
    /// Takes an empty pipe; `None` at the thread's maximum, or if the kernel refuses to create one.
    #[must_use]
    pub fn take() -> Option<Self> {
        let ends = PIPE_POOL.with_borrow_mut(PipePool::lend)?;
        Some(Self {
            ends: Some(ends),
            held: 0,
        })
    }

    /// Returns true if the pipe holds no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Moves at most `most` bytes from a socket into the pipe, which must be empty. Returns their
    /// number: 0 at the end of the stream.
    ///
    /// # Errors
    /// Errors of reading; [`io::ErrorKind::Unsupported`] if the kernel does not support the system
    /// call.
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
                splice(from, None, &ends.writer, None, most, flags).map_err(into_io_error)
            });
            if let Ok(count) = &moved {
                self.held += count;
            }
            if !is_early(&moved) {
                return Poll::Ready(moved);
            }
        }
    }

    /// Moves as many bytes as the socket accepts from the pipe to it; returns their number.
    ///
    /// # Errors
    /// Errors of writing.
    pub fn poll_drain(&mut self, cx: &mut Context<'_>, to: &TcpStream) -> Poll<io::Result<usize>> {
        let Some(ends) = &self.ends else {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        };
        loop {
            ready!(to.poll_write_ready(cx))?;
            let moved = to.try_io(Interest::WRITABLE, || {
                let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
                splice(&ends.reader, None, to, None, self.held, flags).map_err(into_io_error)
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
        // The pool is gone if the thread is ending.
        let returned = PIPE_POOL.try_with(|pool| pool.borrow_mut().take_back(ends));
        returned.unwrap_or_default();
    }
}

impl PipePool {
    fn lend(&mut self) -> Option<Ends> {
        if self.in_use == MAX_PIPES_IN_USE {
            return None;
        }
        let ends = self.idle.pop().or_else(Ends::open)?;
        self.unneeded = self.unneeded.min(self.idle.len());
        self.in_use += 1;
        Some(ends)
    }

    fn take_back(&mut self, ends: Option<Ends>) {
        self.in_use -= 1;
        self.idle.extend(ends);
    }

    fn close_unneeded(&mut self) {
        self.idle.drain(..self.unneeded);
        self.unneeded = self.idle.len();
    }
}

impl Ends {
    fn open() -> Option<Self> {
        let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        let (reader, writer) = pipe_with(flags).ok()?;
        let room = fcntl_setpipe_size(&writer, PIPE_BYTES).or_else(|_| fcntl_getpipe_size(&writer));
        (MIN_PIPE_BYTES <= room.ok()?).then_some(Self { reader, writer })
    }
}

/// Returns true if a socket was not ready although it was reported as ready.
fn is_early(moved: &io::Result<usize>) -> bool {
    moved
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Maps the different errors of kernels without the system call and of sandboxes that forbid it.
fn into_io_error(error: Errno) -> io::Error {
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

    /// The two ends of a TCP connection.
    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let (client, accepted) = tokio::join!(client, listener.accept());
        (client.unwrap(), accepted.unwrap().0)
    }

    /// Number of pipes in use, and of idle pipes.
    fn pooled() -> (usize, usize) {
        PIPE_POOL.with_borrow(|pool| (pool.in_use, pool.idle.len()))
    }

    fn on_a_runtime(test: impl Future<Output = ()>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_io().build().unwrap().block_on(test);
    }

    #[test]
    fn bytes_are_read_unchanged_and_at_most_as_many_as_requested() {
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

            let mut received = [0; 10];
            far.read_exact(&mut received).await.unwrap();
            assert_eq!(&received, b"some bytes");
        });
    }

    #[test]
    fn the_end_of_a_stream_reads_as_zero_bytes() {
        on_a_runtime(async {
            let (near, from) = pair().await;
            drop(near);
            let mut pipe = Pipe::take().unwrap();

            let moved = poll_fn(|cx| pipe.poll_fill(cx, &from, 10)).await.unwrap();
            assert_eq!(moved, 0);
        });
    }

    #[test]
    fn a_thread_has_a_maximum_of_pipes_and_reuses_empty_ones() {
        let all: Vec<Pipe> = std::iter::from_fn(Pipe::take).collect();
        assert_eq!(all.len(), MAX_PIPES_IN_USE);
        drop(all);
        assert_eq!(pooled(), (0, MAX_PIPES_IN_USE));

        let mut full = Pipe::take().unwrap();
        full.held = 1;
        drop(full);
        assert_eq!(pooled(), (0, MAX_PIPES_IN_USE - 1));
    }

    #[test]
    fn unneeded_idle_pipes_are_closed() {
        let two = [Pipe::take(), Pipe::take()];
        drop(two);
        close_idle_pipes();
        assert_eq!(pooled(), (0, 2), "both were needed");

        drop(Pipe::take());
        close_idle_pipes();
        assert_eq!(pooled(), (0, 1), "one was needed");
        close_idle_pipes();
        assert_eq!(pooled(), (0, 0));
    }
}
