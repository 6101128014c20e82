//! Lingering close after an early response.
//!
//! Closing a socket with unread bytes resets the connection, and a reset may overtake the response.
//! So the proxy closes its own side, then reads for a short time.

use crate::connection::timeout::ConnectionDeadline;
use proxy_clock::Timer;
use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

/// Maximum time of lingering after a response.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size of a read, in bytes.
const READ_BYTES: usize = 8 * 1024;

/// Writes `bytes`, for at most `time`, and closes.
pub(crate) async fn answer(
    transport: &mut (impl AsyncRead + AsyncWrite + Unpin),
    bytes: &[u8],
    time: Duration,
    timeout: ConnectionDeadline<'_>,
) {
    let writing = async {
        transport.write_all(bytes).await?;
        transport.flush().await
    };
    let written = timeout.within(Timer::ResponseWrite, time, writing).await;
    if matches!(written, Some(Ok(()))) {
        close(transport, timeout).await;
    }
}

/// Closes our side and reads until the client has closed its own, for [`LINGER_TIMEOUT`] at most.
pub(crate) async fn close(
    transport: &mut (impl AsyncRead + AsyncWrite + Unpin),
    timeout: ConnectionDeadline<'_>,
) {
    let closing = async {
        if transport.shutdown().await.is_ok() {
            drain(transport).await;
        }
    };
    timeout.within(Timer::Linger, LINGER_TIMEOUT, closing).await;
}

async fn drain(transport: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    poll_fn(|cx| {
        // Not kept while it waits: thousands of connections may linger at once.
        let mut scratch = [const { MaybeUninit::uninit() }; READ_BYTES];
        loop {
            let mut buf = ReadBuf::uninit(&mut scratch);
            let read = ready!(Pin::new(&mut *transport).poll_read(cx, &mut buf));
            if read.is_err() || buf.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    })
    .await;
}
