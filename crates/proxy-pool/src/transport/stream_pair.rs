//! The two halves of an HTTP/2 stream as one byte stream.

use crate::unsent_frames::UnsentFrames;
use bytes::{Buf, Bytes};
use h2::{RecvStream, SendStream};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A tunnel through one HTTP/2 stream, to a client or a target. [RFC 8441]
#[derive(Debug)]
pub struct StreamPair {
    send: SendStream<Bytes>,
    receive: RecvStream,
    unread: Bytes,
    unsent: Rc<UnsentFrames>,
}

impl StreamPair {
    /// Joins the halves of one stream; `unsent` belongs to its connection.
    #[must_use]
    pub fn new(send: SendStream<Bytes>, receive: RecvStream, unsent: Rc<UnsentFrames>) -> Self {
        Self {
            send,
            receive,
            unread: Bytes::new(),
            unsent,
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
        let me = self.get_mut();
        if me.unsent.is_full(cx) {
            return Poll::Pending;
        }
        let send = &mut me.send;
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
        me.unsent.add(count);
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

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use std::future::poll_fn;
    use tokio::io::{AsyncWriteExt, duplex};

    const SOCKET_BYTES: usize = 64 * 1024;

    #[tokio::test]
    async fn writes_wait_for_a_blocked_socket() {
        let (near, far) = duplex(SOCKET_BYTES);
        let served = async {
            let mut connection = h2::server::handshake(far).await.unwrap();
            let (request, mut respond) = connection.accept().await.unwrap().unwrap();
            let sent = respond.send_response(Response::new(()), false).unwrap();
            (connection, request.into_body(), sent)
        };
        let asked = async {
            let (mut sender, connection) = h2::client::handshake(near).await.unwrap();
            let request = Request::post("http://a.test/").body(()).unwrap();
            let (_, send) = sender.send_request(request, false).unwrap();
            (sender, connection, send)
        };
        let ((_connection, receive, send), client) = {
            let mut served = Box::pin(served);
            let (sender, mut connection, upload) = asked.await;
            let both = poll_fn(|cx| {
                assert!(Pin::new(&mut connection).poll(cx).is_pending());
                served.as_mut().poll(cx)
            });
            (both.await, (sender, upload))
        };
        let unsent = Rc::<UnsentFrames>::default();
        let mut pair = StreamPair::new(send, receive, Rc::clone(&unsent));
        assert_eq!(pair.write(b"x").await.unwrap(), 1);

        unsent.block();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(Pin::new(&mut pair).poll_write(&mut cx, b"x").is_pending());
        unsent.clear();
        assert_eq!(pair.write(b"x").await.unwrap(), 1);
        drop(client);
    }
}
