//! The stream that hyper reads responses from and writes requests to.

use crate::informational;
use crate::transport::Transport;
use crate::wire::Wire;
use proxy_framing::{Fault, Scan, Stop};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Writes up to this size are gathered into one: cheaper than a vectored write.
const SMALL_WRITE: usize = 2048;

/// Watches a transport: judges what the target sends, counts, and gathers small writes.
#[derive(Debug)]
pub(crate) struct UpstreamIo {
    transport: Transport,
    wire: Rc<Wire>,
    /// Whether the target takes no more.
    deaf: bool,
}

impl UpstreamIo {
    pub(crate) fn new(transport: Transport, wire: Rc<Wire>) -> Self {
        Self {
            transport,
            wire,
            deaf: false,
        }
    }

    pub(crate) fn into_transport(self) -> Transport {
        self.transport
    }

    /// How many bytes of `fresh` are for hyper. Those behind a whole response are not; whoever reads
    /// on is told the fault.
    fn judge(&self, fresh: &[u8]) -> Result<usize, Fault> {
        if fresh.is_empty() {
            return self.wire.guard.borrow_mut().eof().map(|_| 0);
        }
        let mut taken = 0;
        let mut guard = self.wire.guard.borrow_mut();
        loop {
            let rest = fresh.get(taken..).unwrap_or_default();
            let Scan { accepted, stop } = guard.scan(rest);
            taken += accepted;
            match stop {
                None => return Ok(fresh.len()),
                Some(Stop::Fault(fault @ Fault::UnexpectedData)) if taken > 0 => {
                    self.wire.fault.set(Some(fault));
                    return Ok(taken);
                }
                Some(Stop::Fault(fault)) => return Err(fault),
                Some(Stop::Upgrade) => guard.pass_through(),
            }
        }
    }

    #[inline]
    fn note_informational(&self, fresh: &[u8]) {
        let wire = &self.wire;
        if wire.interim_over.get() {
            return;
        }
        if wire.received.get() == 0 && !informational::may_start(fresh) {
            wire.interim_over.set(true);
            return;
        }
        informational::collect(wire, fresh);
    }

    /// A target may answer and hang up before it has heard all. Its answer is still to be read, so what
    /// it does not hear is taken for written, and reading tells how the exchange ends.
    #[inline]
    fn unless_deaf(
        &mut self,
        polled: Poll<io::Result<usize>>,
        length: usize,
    ) -> Poll<io::Result<usize>> {
        match polled {
            Poll::Ready(Err(error)) if self.deaf || is_hang_up(&error) => {
                self.deaf = true;
                Poll::Ready(Ok(length))
            }
            other @ (Poll::Ready(_) | Poll::Pending) => other,
        }
    }

    fn wrote(&self, count: usize) {
        self.wire.sent.set(self.wire.sent.get() + count as u64);
    }
}

impl AsyncRead for UpstreamIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        if let Some(fault) = me.wire.fault.get() {
            return Poll::Ready(Err(refused(fault)));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut me.transport).poll_read(cx, buf))?;
        let fresh = buf.filled().get(before..).unwrap_or_default();
        me.note_informational(fresh);
        me.wire
            .received
            .set(me.wire.received.get() + fresh.len() as u64);
        match me.judge(fresh) {
            Ok(count) => {
                buf.set_filled(before + count);
                Poll::Ready(Ok(()))
            }
            Err(fault) => {
                me.wire.fault.set(Some(fault));
                Poll::Ready(Err(refused(fault)))
            }
        }
    }
}

impl AsyncWrite for UpstreamIo {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        let polled = Pin::new(&mut me.transport).poll_write(cx, bytes);
        let written = ready!(me.unless_deaf(polled, bytes.len()))?;
        if me.wire.replayable.get() {
            let sent = bytes.get(..written).unwrap_or_default();
            me.wire.head.borrow_mut().extend_from_slice(sent);
        }
        me.wrote(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [one] = pieces {
            return self.poll_write(cx, one);
        }
        let me = self.get_mut();
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        let polled = if total <= SMALL_WRITE {
            let mut scratch = [0; SMALL_WRITE];
            let gathered = gather(&mut scratch, pieces);
            Pin::new(&mut me.transport).poll_write(cx, gathered)
        } else {
            Pin::new(&mut me.transport).poll_write_vectored(cx, pieces)
        };
        let written = ready!(me.unless_deaf(polled, total))?;
        me.wrote(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_shutdown(cx)
    }
}

fn is_hang_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

fn refused(fault: Fault) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, fault)
}

/// Copies `pieces` into `scratch` as far as they fit and gives the filled part.
fn gather<'s>(scratch: &'s mut [u8], pieces: &[IoSlice<'_>]) -> &'s [u8] {
    let mut filled = 0;
    for piece in pieces {
        let Some(place) = scratch.get_mut(filled..filled + piece.len()) else {
            break;
        };
        place.copy_from_slice(piece);
        filled += piece.len();
    }
    scratch.get(..filled).unwrap_or_default()
}
