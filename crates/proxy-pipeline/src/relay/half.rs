//! One direction of a relayed connection.
//!
//! Bytes are read into a buffer of the thread and written from it at once, so that a relay holds
//! memory only for bytes not accepted by its receiver. After a read that fills the buffer the bytes
//! pass through a kernel pipe, while there is one and the sender keeps up.

use super::stream::RelayStream;
use proxy_http1::Pipe;
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;
use tokio::net::TcpStream;

/// Maximum number of bytes of one read, and of the bytes that one direction holds for its receiver.
const BUFFER_BYTES: usize = 64 * 1024;

/// Number of bytes after which one direction yields to other connections of the thread.
const TURN_BYTES: u64 = 1024 * 1024;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; BUFFER_BYTES].into());
}

#[derive(Debug, Default)]
pub(super) struct Half {
    /// Bytes that the receiver has not taken, from `start` on.
    held: Vec<u8>,
    start: usize,
    pipe: Option<Pipe>,
    /// The last read filled the buffer: the next bytes pass through a pipe.
    is_bulk: bool,
    /// The kernel refuses to splice these sockets.
    is_unspliceable: bool,
    carried: u64,
    state: RelayState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RelayState {
    #[default]
    Carrying,
    /// The sender has closed its side; the receiver has yet to be notified.
    Ending,
    Ended,
}

impl Half {
    pub(super) fn beginning_with(early: Vec<u8>) -> Self {
        Self {
            held: early,
            ..Self::default()
        }
    }

    /// Number of bytes that the receiver has taken.
    pub(super) fn carried(&self) -> u64 {
        self.carried
    }

    /// Moves bytes until a side is not ready. Ready when the sender has closed its side and the
    /// receiver is notified.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut impl RelayStream,
        to: &mut impl RelayStream,
    ) -> Poll<io::Result<()>> {
        let turn_ends = self.carried.saturating_add(TURN_BYTES);
        loop {
            match self.state {
                RelayState::Ended => return Poll::Ready(Ok(())),
                RelayState::Ending => {
                    ready!(Pin::new(&mut *to).poll_shutdown(cx))?;
                    self.state = RelayState::Ended;
                }
                RelayState::Carrying if self.start < self.held.len() => {
                    ready!(self.poll_write_held(cx, to))?;
                }
                RelayState::Carrying if self.carried >= turn_ends => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                RelayState::Carrying => ready!(self.poll_move(cx, from, to))?,
            }
        }
    }

    fn poll_write_held(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut impl RelayStream,
    ) -> Poll<io::Result<()>> {
        let rest = self.held.get(self.start..).unwrap_or_default();
        let written = ready!(Pin::new(to).poll_write(cx, rest))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.start += written;
        self.carried += written as u64;
        if self.start == self.held.len() {
            (self.held, self.start) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }

    /// Moves bytes once, through the pipe or the buffer.
    fn poll_move(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut impl RelayStream,
        to: &mut impl RelayStream,
    ) -> Poll<io::Result<()>> {
        if let Some(pipe) = self.pipe.as_mut().filter(|pipe| !pipe.is_empty())
            && let Some(socket) = to.splices()
        {
            self.carried += ready!(pipe.poll_drain(cx, socket))? as u64;
            return Poll::Ready(Ok(()));
        }
        ready!(Pin::new(&mut *to).poll_flush(cx))?;
        if self.is_bulk
            && let (Some(source), Some(_)) = (from.splices(), to.splices())
            && let Some(pipe) = self.pipe.take().or_else(Pipe::take)
            && let Some(filled) = ready!(self.poll_fill(cx, source, pipe))
        {
            return Poll::Ready(filled);
        }
        self.poll_copy(cx, from, to)
    }

    /// Fills `pipe`, and keeps it if it receives bytes. `None` if the sockets cannot be spliced.
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        from: &TcpStream,
        mut pipe: Pipe,
    ) -> Poll<Option<io::Result<()>>> {
        match pipe.poll_fill(cx, from, u64::MAX) {
            Poll::Pending => {
                self.is_bulk = false;
                Poll::Pending
            }
            Poll::Ready(Ok(0)) => {
                self.state = RelayState::Ending;
                Poll::Ready(Some(Ok(())))
            }
            Poll::Ready(Ok(_)) => {
                self.pipe = Some(pipe);
                Poll::Ready(Some(Ok(())))
            }
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Unsupported => {
                (self.is_bulk, self.is_unspliceable) = (false, true);
                Poll::Ready(None)
            }
            Poll::Ready(Err(error)) => Poll::Ready(Some(Err(error))),
        }
    }

    /// Reads into the thread's buffer and writes from it; keeps bytes that the receiver does not
    /// accept.
    fn poll_copy(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut impl RelayStream,
        to: &mut impl RelayStream,
    ) -> Poll<io::Result<()>> {
        BUFFER.with_borrow_mut(|buffer| {
            let mut read = ReadBuf::new(buffer);
            ready!(Pin::new(from).poll_read(cx, &mut read))?;
            let is_full = read.remaining() == 0;
            let bytes = read.filled();
            if bytes.is_empty() {
                self.state = RelayState::Ending;
                return Poll::Ready(Ok(()));
            }
            self.is_bulk = is_full && !self.is_unspliceable;
            let written = match Pin::new(to).poll_write(cx, bytes) {
                Poll::Pending => 0,
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(written) => written?,
            };
            self.carried += written as u64;
            let rest = bytes.get(written..).unwrap_or_default();
            // Empty for most reads, which then allocates nothing.
            self.held = rest.to_vec();
            Poll::Ready(Ok(()))
        })
    }
}
