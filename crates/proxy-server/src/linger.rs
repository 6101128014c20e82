//! The last words to a client that may still be talking.
//!
//! Closing a socket that holds unread bytes resets the connection, and a reset may overtake the answer
//! on its way to the client. So the proxy ends its own side, then reads on for a moment.

use crate::conn::Conn;
use crate::transport::Transport;
use proxy_clock::Timer;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};

/// The longest time that is spent on a client after its answer.
const LINGER: Duration = Duration::from_secs(2);

/// Writes `bytes` and closes.
pub(crate) async fn answer(transport: &mut Transport, bytes: &[u8], conn: &Conn) {
    let time = conn.write_time;
    conn.deadline.start(&conn.clock, Timer::ResponseWrite, time);
    let written = within(conn, transport.write_all(bytes)).await;
    if matches!(written, Some(Ok(()))) {
        close(transport, conn).await;
    }
}

/// Ends our side and reads until the client has ended its own, for [`LINGER`] at most.
pub(crate) async fn close(transport: &mut Transport, conn: &Conn) {
    conn.deadline.start(&conn.clock, Timer::Linger, LINGER);
    let ended = within(conn, transport.shutdown()).await;
    if !matches!(ended, Some(Ok(()))) {
        return;
    }
    let mut scratch = vec![0; 8 * 1024];
    let drained = poll_fn(|cx| {
        loop {
            let mut buf = ReadBuf::new(&mut scratch);
            let read = ready!(Pin::new(&mut *transport).poll_read(cx, &mut buf));
            if read.is_err() || buf.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    });
    within(conn, drained).await;
    conn.deadline.stop();
}

/// What `future` gives, unless the deadline passes first.
async fn within<T>(conn: &Conn, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        conn.deadline.watch(cx.waker());
        if let Poll::Ready(done) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        match conn.deadline.take_expired() {
            Some(_) => Poll::Ready(None),
            None => Poll::Pending,
        }
    })
    .await
}
