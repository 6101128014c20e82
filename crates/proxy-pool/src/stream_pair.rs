//! The two halves of an HTTP/2 stream as one byte stream.

use bytes::{Buf, Bytes};
use h2::{RecvStream, SendStream};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A tunnel through one HTTP/2 stream, to a client or a target. [RFC 8441]
#[derive(Debug)]
pub struct StreamPair {
    send: SendStream<Bytes>,
    receive: RecvStream,
    unread: Bytes,
}

impl StreamPair {
    /// Joins the halves of one stream.
    #[must_use]
    pub fn new(send: SendStream<Bytes>, receive: RecvStream) -> Self {
        Self {
            send,
            receive,
            unread: Bytes::new(),
        }
    }
}

impl AsyncRead for StreamPair {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        while me.unread.is_empty() {
            match ready!(me.receive.poll_data(cx)) {
                Some(data) => me.unread = data.map_err(io::Error::other)?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = me.unread.len().min(buf.remaining());
        buf.put_slice(me.unread.get(..count).unwrap_or_default());
        me.unread.advance(count);
        let released = me.receive.flow_control().release_capacity(count);
        Poll::Ready(released.map_err(io::Error::other))
    }
}

impl AsyncWrite for StreamPair {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let send = &mut self.get_mut().send;
        send.reserve_capacity(bytes.len());
        let room = match send.capacity() {
            0 => match ready!(send.poll_capacity(cx)) {
                Some(room) => room.map_err(io::Error::other)?,
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            },
            room => room,
        };
        let count = room.min(bytes.len());
        let piece = Bytes::copy_from_slice(bytes.get(..count).unwrap_or_default());
        let sent = send.send_data(piece, false);
        Poll::Ready(sent.map(|()| count).map_err(io::Error::other))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = self.get_mut().send.send_data(Bytes::new(), true);
        Poll::Ready(ended.map_err(io::Error::other))
    }
}
