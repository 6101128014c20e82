//! The stream that hyper reads requests from and writes responses to.

use crate::conn::Conn;
use crate::transport::Transport;
use bytes::{Buf, Bytes};
use proxy_framing::{Fault, Scan, Stop};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Writes up to this size are gathered into one: cheaper than a vectored write.
const SMALL_WRITE: usize = 2048;

/// Judges what the client sends before hyper sees it, writes interim responses, gathers small writes,
/// and knows when the client does not read.
#[derive(Debug)]
pub(crate) struct ClientIo {
    transport: Transport,
    conn: Rc<Conn>,
    interim: Bytes,
}

impl ClientIo {
    pub(crate) fn new(transport: Transport, conn: Rc<Conn>) -> Self {
        Self {
            transport,
            conn,
            interim: Bytes::new(),
        }
    }

    pub(crate) fn into_transport(self) -> Transport {
        self.transport
    }

    /// Bytes from before or after the last unanswered question whether HTTP goes on.
    fn poll_fill(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut held = self.conn.held.borrow_mut();
        if held.is_empty() {
            return Pin::new(&mut self.transport).poll_read(cx, buf);
        }
        let count = held.len().min(buf.remaining());
        buf.put_slice(&held.split_to(count));
        Poll::Ready(Ok(()))
    }

    /// Keeps from hyper what the guard does not let through. None: there is nothing for hyper now.
    fn judge(&self, buf: &mut ReadBuf<'_>, before: usize) -> Option<io::Result<()>> {
        let fresh = buf.filled().get(before..).unwrap_or_default();
        if fresh.is_empty() {
            self.conn.eof.set(true);
            return Some(Ok(()));
        }
        let Scan { accepted, stop } = self.conn.guard.borrow_mut().scan(fresh);
        let Some(stop) = stop else {
            return Some(Ok(()));
        };
        match stop {
            Stop::Fault(fault) => {
                self.conn.client.fault.set(Some(fault));
                // What came before the fault goes first: it may hold the head of this very request.
                if accepted == 0 && self.conn.guard.borrow().in_body() {
                    return Some(Err(refused(fault)));
                }
            }
            Stop::Upgrade => {
                let rest = fresh.get(accepted..).unwrap_or_default();
                let held = Bytes::copy_from_slice(rest);
                let behind = self.conn.held.replace(Bytes::new());
                self.conn.held.replace(joined(held, behind));
                self.conn.undecided.set(true);
            }
        }
        buf.set_filled(before + accepted);
        (accepted > 0).then_some(Ok(()))
    }

    /// Writes what must come before the next response.
    fn poll_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(heads) = self.conn.client.take_interim() {
            let waiting = std::mem::take(&mut self.interim);
            self.interim = joined(waiting, heads.into());
        }
        while !self.interim.is_empty() {
            let written = ready!(Pin::new(&mut self.transport).poll_write(cx, &self.interim))?;
            self.interim.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn note<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_pending() {
            self.conn.blocked();
        } else {
            self.conn.unblocked();
        }
        polled
    }

    #[inline]
    fn has_interim(&self) -> bool {
        !self.interim.is_empty() || self.conn.client.has_interim()
    }
}

impl AsyncRead for ClientIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        if let Some(fault) = me.conn.client.fault.get() {
            if me.conn.guard.borrow().in_body() {
                return Poll::Ready(Err(refused(fault)));
            }
            // The connection's owner looks at the fault when all earlier requests are answered.
            return Poll::Pending;
        }
        if me.conn.undecided.get() {
            return Poll::Pending;
        }
        let before = buf.filled().len();
        ready!(me.poll_fill(cx, buf))?;
        me.judge(buf, before).map_or(Poll::Pending, Poll::Ready)
    }
}

impl AsyncWrite for ClientIo {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        if me.has_interim() {
            ready!(me.poll_interim(cx))?;
        }
        let polled = Pin::new(&mut me.transport).poll_write(cx, bytes);
        me.note(polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [one] = pieces {
            return self.poll_write(cx, one);
        }
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        if total <= SMALL_WRITE {
            let mut scratch = [0; SMALL_WRITE];
            return self.poll_write(cx, gather(&mut scratch, pieces));
        }
        let me = self.get_mut();
        if me.has_interim() {
            ready!(me.poll_interim(cx))?;
        }
        let polled = Pin::new(&mut me.transport).poll_write_vectored(cx, pieces);
        me.note(polled)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        if me.has_interim() {
            ready!(me.poll_interim(cx))?;
        }
        Pin::new(&mut me.transport).poll_flush(cx)
    }

    /// Left to the connection's owner, who lingers.
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn refused(fault: Fault) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, fault)
}

fn joined(first: Bytes, second: Bytes) -> Bytes {
    if second.is_empty() {
        return first;
    }
    if first.is_empty() {
        return second;
    }
    [first, second].concat().into()
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
