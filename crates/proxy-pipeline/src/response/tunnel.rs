//! The tunnel after `101 Switching Protocols`: two joined byte streams.

use crate::failure::timeout_problem;
use crate::record::completion::CompletionGuard;
use proxy_clock::{Clock, Deadline, Timer};
use proxy_pool::{ConnectionPermit, Tunnel};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const BUFFER_BYTES: usize = 16 * 1024;

/// The reason why a tunnel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelEnd {
    /// Both sides closed.
    Closed,
    /// One side failed.
    Broken,
    /// No traffic for the maximum idle time.
    Idle(Duration),
    /// The proxy ended the tunnel.
    Cut,
}

/// A connection after a protocol switch: the upstream's side, and the guard of the exchange.
#[derive(Debug)]
pub struct SwitchedConnection {
    /// The upstream's side.
    pub tunnel: Tunnel,
    /// Maximum time without traffic in either direction.
    pub idle: Duration,
    pub(crate) permit: Option<ConnectionPermit>,
    pub(crate) completion: Box<CompletionGuard>,
}

/// Bytes carried in each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarriedBytes {
    /// From the client.
    pub up: u64,
    /// To the client.
    pub down: u64,
}

/// Timer of a connection without traffic.
#[derive(Clone, Copy, Debug)]
pub struct IdleTimer<'t> {
    /// Clock of the worker.
    pub clock: &'t Clock,
    /// Deadline that the timer runs on.
    pub deadline: &'t Deadline,
    /// Maximum time without traffic in either direction.
    pub idle: Duration,
}

/// Copies bytes in both directions until both sides have closed, one fails, no byte moves for the
/// idle time of `timer`, or `is_cut` returns true, which is tested whenever the tunnel is woken.
pub async fn join<C>(
    mut client: C,
    tunnel: Tunnel,
    early: &[u8],
    timer: IdleTimer<'_>,
    mut is_cut: impl FnMut() -> bool,
) -> (TunnelEnd, CarriedBytes)
where
    C: AsyncRead + AsyncWrite + Unpin,
{
    let IdleTimer {
        clock,
        deadline,
        idle,
    } = timer;
    let Tunnel {
        mut transport,
        early: from_target,
        stream_slot: _lane,
    } = tunnel;
    let mut up = Half::beginning_with(early);
    let mut down = Half::beginning_with(&from_target);
    // From here on only the idle timer applies.
    deadline.clear();
    deadline.start(clock, Timer::TunnelIdle, idle);
    let end = std::future::poll_fn(|cx| {
        deadline.watch(cx.waker());
        if is_cut() {
            return Poll::Ready(TunnelEnd::Cut);
        }
        let before = (up.carried, down.carried);
        let upward = up.poll(cx, &mut client, &mut transport);
        let downward = down.poll(cx, &mut transport, &mut client);
        if before != (up.carried, down.carried) {
            deadline.start(clock, Timer::TunnelIdle, idle);
        }
        match (upward, downward) {
            (Poll::Ready(Err(_)), _) | (_, Poll::Ready(Err(_))) => Poll::Ready(TunnelEnd::Broken),
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(TunnelEnd::Closed),
            (Poll::Pending, _) | (_, Poll::Pending) => match deadline.take_expired() {
                Some((_, after)) => Poll::Ready(TunnelEnd::Idle(after)),
                None => Poll::Pending,
            },
        }
    })
    .await;
    let carried = CarriedBytes {
        up: up.carried,
        down: down.carried,
    };
    (end, carried)
}

/// One direction of the tunnel.
#[derive(Debug)]
struct Half {
    buffer: Vec<u8>,
    // Data in the buffer that is not written yet: start..filled.
    start: usize,
    filled: usize,
    carried: u64,
    state: TunnelState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TunnelState {
    Carrying,
    Ending,
    Ended,
}

impl Half {
    fn beginning_with(early: &[u8]) -> Self {
        Self {
            buffer: early.to_vec(),
            start: 0,
            filled: early.len(),
            carried: 0,
            state: TunnelState::Carrying,
        }
    }

    fn poll<R, W>(&mut self, cx: &mut Context<'_>, from: &mut R, to: &mut W) -> Poll<io::Result<()>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        loop {
            match self.state {
                TunnelState::Ended => return Poll::Ready(Ok(())),
                TunnelState::Ending => {
                    ready!(Pin::new(&mut *to).poll_shutdown(cx))?;
                    self.state = TunnelState::Ended;
                }
                TunnelState::Carrying if self.start < self.filled => {
                    ready!(self.poll_write(cx, to))?;
                }
                TunnelState::Carrying => {
                    ready!(Pin::new(&mut *to).poll_flush(cx))?;
                    ready!(self.poll_fill(cx, from))?;
                }
            }
        }
    }

    fn poll_write<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut W,
    ) -> Poll<io::Result<()>> {
        let rest = self.buffer.get(self.start..self.filled).unwrap_or_default();
        let written = ready!(Pin::new(to).poll_write(cx, rest))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.start += written;
        self.carried += written as u64;
        Poll::Ready(Ok(()))
    }

    fn poll_fill<R: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut R,
    ) -> Poll<io::Result<()>> {
        self.buffer.resize(BUFFER_BYTES, 0);
        let mut read = ReadBuf::new(&mut self.buffer);
        let polled = Pin::new(from).poll_read(cx, &mut read);
        let filled = read.filled().len();
        if polled.is_pending() {
            // Frees the buffer, because most tunnels are silent most of the time.
            self.buffer = Vec::new();
            return Poll::Pending;
        }
        ready!(polled)?;
        (self.start, self.filled) = (0, filled);
        if filled == 0 {
            self.state = TunnelState::Ending;
        }
        Poll::Ready(Ok(()))
    }
}

impl SwitchedConnection {
    /// Copies bytes between `client` and the target until the tunnel ends, which ends the exchange.
    pub async fn carry<C>(self, client: C, early: &[u8], clock: &Clock, deadline: &Deadline)
    where
        C: AsyncRead + AsyncWrite + Unpin,
    {
        let Self {
            tunnel,
            idle,
            permit,
            mut completion,
        } = self;
        let mut removed = None;
        let is_cut = || {
            removed = completion.removed();
            removed.is_some()
        };
        let timer = IdleTimer {
            clock,
            deadline,
            idle,
        };
        let (end, carried) = join(client, tunnel, early, timer, is_cut).await;
        let problem = match end {
            TunnelEnd::Idle(after) => Some(timeout_problem(Timer::TunnelIdle, after)),
            TunnelEnd::Cut => removed,
            TunnelEnd::Closed | TunnelEnd::Broken => None,
        };
        completion.record.problem = problem.map(Box::new);
        completion.record.bytes_out = carried.down;
        completion.record.tunnelled_in = carried.up;
        completion.record.complete = true;
        drop(permit);
    }
}
