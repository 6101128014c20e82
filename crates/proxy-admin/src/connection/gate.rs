//! Filter between a client's stream and hyper: only well-formed HTTP passes, and clients that stop
//! reading time out.

use crate::connection::activity::Activity;
use proxy_framing::{FramingError, HeadLimits, RequestValidator, Scan, Stop};
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Limits on a request's head. No setting changes them.
const HEAD_LIMITS: HeadLimits = HeadLimits {
    max_head_bytes: 8 * 1024,
    max_header_count: 64,
    max_name_bytes: 256,
    max_value_bytes: 4 * 1024,
    max_target_bytes: 2 * 1024,
};

/// Time without any written byte after which the client is taken to have stopped reading.
const STALL_TIME: Duration = Duration::from_secs(10);

/// Filtered stream of a client. Malformed input looks like the end of the stream to hyper, so that
/// the current response is completed, and no error response of hyper's own is sent: it would lack
/// the common header fields.
#[derive(Debug)]
pub(crate) struct Gate<S> {
    stream: S,
    guard: RequestValidator,
    fault: Option<FramingError>,
    stalled: Option<Pin<Box<Sleep>>>,
    activity: Activity,
}

impl<S> Gate<S> {
    pub(crate) fn new(stream: S, activity: Activity) -> Self {
        Self {
            stream,
            guard: RequestValidator::new(HEAD_LIMITS),
            fault: None,
            stalled: None,
            activity,
        }
    }

    /// Returns the framing error of a head. An error within a body cannot be answered, because the
    /// response has begun.
    pub(crate) fn fault(&self) -> Option<FramingError> {
        self.fault.filter(|_| self.guard.in_head())
    }

    /// True between the first byte and the end of a head.
    pub(crate) fn in_head(&self) -> bool {
        self.guard.in_head()
    }

    /// Correlation ID in the malformed head.
    pub(crate) fn correlation_id(&self) -> Option<&[u8]> {
        self.guard.correlation_id()
    }

    pub(crate) fn into_stream(self) -> S {
        self.stream
    }

    /// Returns the length of the well-formed start of `bytes`.
    fn judge(&mut self, bytes: &[u8]) -> usize {
        let mut accepted = 0;
        loop {
            let rest = bytes.get(accepted..).unwrap_or_default();
            let Scan {
                accepted: more,
                stop,
            } = self.guard.scan(rest);
            accepted += more;
            match stop {
                None => return accepted,
                Some(Stop::FramingError(fault)) => {
                    self.fault = Some(fault);
                    return accepted;
                }
                // The interface has no other protocols: HTTP continues.
                Some(Stop::Upgrade) => self.guard.resume_http(),
            }
        }
    }

    /// Resets the stall timer on progress. Without progress, starts it, and fails when it has
    /// expired.
    fn note(
        &mut self,
        written: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            self.activity.happened();
            return written;
        }
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep(STALL_TIME)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gate<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        if me.fault.is_some() {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut me.stream).poll_read(cx, buf))?;
        let accepted = me.judge(buf.filled().get(before..).unwrap_or_default());
        buf.set_filled(before + accepted);
        me.activity.happened();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gate<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        let written = Pin::new(&mut me.stream).poll_write(cx, bytes);
        me.note(written, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        let written = Pin::new(&mut me.stream).poll_write_vectored(cx, pieces);
        me.note(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    /// Does nothing: the owner of the connection may still write an error response.
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::activity::Events;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_reads_nothing_is_disconnected() {
        let (ours, theirs) = duplex(16);
        let mut gate = Gate::new(ours, Events::default().begin());

        let error = gate.write_all(&[b'a'; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(theirs);
    }

    #[tokio::test]
    async fn hyper_sees_an_end_where_the_fault_is() {
        let (ours, mut theirs) = duplex(256);
        let mut gate = Gate::new(ours, Events::default().begin());
        theirs
            .write_all(b"GET / HTTP/1.1\r\nHost : a\r\n\r\n")
            .await
            .unwrap();

        let mut seen = Vec::new();
        gate.read_to_end(&mut seen).await.unwrap();
        assert_eq!(seen, b"GET / HTTP/1.1\r\nHost");
        assert_eq!(gate.fault(), Some(FramingError::SpaceBeforeColon));
    }

    #[tokio::test]
    async fn an_offer_to_upgrade_is_passed_over() {
        let (ours, mut theirs) = duplex(256);
        let mut gate = Gate::new(ours, Events::default().begin());
        let offer = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
        theirs.write_all(offer).await.unwrap();
        theirs
            .write_all(b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        drop(theirs);

        let mut seen = Vec::new();
        gate.read_to_end(&mut seen).await.unwrap();
        assert_eq!(gate.fault(), None);
        assert!(seen.ends_with(b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n"));
    }
}
