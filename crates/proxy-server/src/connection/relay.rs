//! Connections that are relayed to a target.

use crate::connection::client_socket::ClientSocket;
use crate::connection::client_stream::ClientStream;
use crate::connection::handshake::HandshakeError;
use crate::connection::negotiated::{HttpVersion, Negotiated};
use crate::connection::ready_connection::{ConnectionGuard, ReadyConnection};
use proxy_pipeline::{Relay, RelayStream, RequestStream, open_relay};
use proxy_tls::{ClientHelloError, ClientHelloReader};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Room for a `ClientHello` of usual length.
const HELLO_ROOM_BYTES: usize = 2048;

impl RelayStream for ClientStream {
    fn splices(&self) -> Option<&TcpStream> {
        Self::splices(self)
    }

    fn abort(&mut self) {
        // If the socket refuses the option, drop closes it in order.
        Self::abort(self).unwrap_or_default();
    }
}

/// Starts relaying a connection. `server_name` is the SNI of a TLS handshake that is passed
/// through.
pub(crate) fn serve(ready: ReadyConnection, server_name: Option<Box<str>>) {
    tokio::task::spawn_local(open(ready, server_name));
}

/// Connects to a target; the relay is a separate task, so that the task that lives as long as the
/// connection is small. A refused connection is reset: its client must not mistake it for an
/// orderly end.
async fn open(ready: ReadyConnection, server_name: Option<Box<str>>) {
    let ReadyConnection {
        settings: _,
        client,
        guard,
        mut transport,
        early,
    } = ready;
    let session = client.session.as_ref();
    let ended = session.and_then(|session| session.server_name.clone());
    let server_name = server_name.or(ended);
    let stream = RequestStream {
        client,
        deadline: Rc::clone(&guard.deadline),
    };
    let relay = {
        let opening = open_relay(Rc::clone(&guard.worker), stream, server_name.as_deref());
        let mut opening = pin!(opening);
        poll_fn(|cx| {
            guard.deadline.watch(cx.waker());
            opening.as_mut().poll(cx)
        })
        .await
    };
    match relay {
        Some(relay) => {
            tokio::task::spawn_local(run_relay(relay, transport, early.into(), guard));
        }
        None => RelayStream::abort(&mut transport),
    }
}

async fn run_relay(relay: Relay, transport: ClientStream, early: Vec<u8>, guard: ConnectionGuard) {
    let (clock, deadline) = (&guard.worker.clock, &guard.deadline);
    relay.carry(transport, early, clock, deadline).await;
}

/// Reads the `ClientHello` of a client that has sent something. A malformed or late one ends with
/// a reset.
pub(crate) async fn read_hello(mut stream: ClientSocket) -> Result<Negotiated, HandshakeError> {
    stream.abort().map_err(HandshakeError::Io)?;
    let mut reader = ClientHelloReader::default();
    let mut seen = Vec::with_capacity(HELLO_ROOM_BYTES);
    loop {
        let known = seen.len();
        let count = stream.read_buf(&mut seen).await;
        if count.map_err(HandshakeError::Io)? == 0 {
            let error = io::Error::from(io::ErrorKind::UnexpectedEof);
            return Err(HandshakeError::Io(error));
        }
        let read = reader.read(seen.get(known..).unwrap_or_default());
        let invalid = |error: ClientHelloError| {
            HandshakeError::Io(io::Error::new(io::ErrorKind::InvalidData, error))
        };
        if let Some(hello) = read.map_err(invalid)? {
            stream.close_in_order().map_err(HandshakeError::Io)?;
            return Ok(Negotiated {
                version: HttpVersion::Http1,
                session: None,
                server_name: hello.server_name,
                transport: ClientStream::Plain(stream),
                early: seen.into(),
            });
        }
    }
}
