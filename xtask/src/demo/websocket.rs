//! Both ends of a WebSocket: the upstream that echoes, and the client that checks it.

use super::upstream::{self, Answer};
use crate::task_error::TaskError;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

/// Answers the handshake; every text and binary message then goes back as it came.
pub(super) fn accept(request: Request<Incoming>) -> Answer {
    let Some(key) = request.headers().get(SEC_WEBSOCKET_KEY) else {
        let advice = "this path speaks WebSocket\n".to_owned();
        return upstream::text(StatusCode::BAD_REQUEST, advice);
    };
    let accepted = derive_accept_key(key.as_bytes());
    tokio::spawn(async move {
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            let io = TokioIo::new(upgraded);
            let socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
            // A client that goes away mid-message has ended the echo, not broken it.
            drop(echo(socket).await);
        }
    });
    let answer = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_ACCEPT, accepted);
    let empty = Empty::<Bytes>::new().map_err(|never| match never {});
    answer
        .body(empty.boxed())
        .unwrap_or_else(|_| upstream::text(StatusCode::INTERNAL_SERVER_ERROR, String::new()))
}

async fn echo(
    mut socket: WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>,
) -> Result<(), tungstenite::Error> {
    while let Some(message) = socket.next().await {
        let message = message?;
        if message.is_text() || message.is_binary() {
            socket.send(message).await?;
        }
    }
    Ok(())
}

/// A client's end.
pub(super) struct Client(WebSocketStream<TcpStream>);

impl Client {
    /// Connects and shakes hands.
    pub(super) async fn connect(to: SocketAddr, path: &str) -> Result<Self, TaskError> {
        let stream = TcpStream::connect(to).await;
        let stream = stream.map_err(|source| TaskError::System {
            deed: "connect for a WebSocket",
            source,
        })?;
        let (socket, _) = client_async(format!("ws://{to}{path}"), stream)
            .await
            .map_err(|cause| told(&cause))?;
        Ok(Self(socket))
    }

    /// Sends a text and waits for it to come back.
    pub(super) async fn echoes(&mut self, text: &str) -> Result<(), TaskError> {
        self.0
            .send(Message::text(text))
            .await
            .map_err(|cause| told(&cause))?;
        match self.0.next().await {
            Some(Ok(Message::Text(back))) if back.as_str() == text => Ok(()),
            Some(Err(cause)) => Err(told(&cause)),
            Some(Ok(other)) => Err(TaskError::Failed(format!("sent {text:?}, got {other:?}"))),
            None => Err(TaskError::Failed("the WebSocket closed".to_owned())),
        }
    }

    /// Says goodbye and waits for the other end to do so.
    pub(super) async fn close(mut self) -> Result<(), TaskError> {
        self.0.close(None).await.map_err(|cause| told(&cause))?;
        while let Some(Ok(_)) = self.0.next().await {}
        Ok(())
    }
}

fn told(cause: &tungstenite::Error) -> TaskError {
    TaskError::Failed(format!("WebSocket: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{addresses, block_on, curl};

    #[test]
    fn an_upstream_echoes_over_a_websocket() {
        let [listener] = addresses::free().unwrap();
        let address = listener.local_addr().unwrap();
        upstream::serve("one", listener).unwrap();

        block_on(async {
            let mut client = Client::connect(address, "/one/ws").await.unwrap();
            client.echoes("first").await.unwrap();
            client.echoes("second").await.unwrap();
            client.close().await.unwrap();
        })
        .unwrap();
    }

    #[test]
    fn a_plain_request_for_a_websocket_is_refused() {
        let [listener] = addresses::free().unwrap();
        let address = listener.local_addr().unwrap();
        upstream::serve("one", listener).unwrap();

        let answer = curl::get(&format!("http://{address}/ws"), &[]).unwrap();
        assert_eq!(answer.status, 400);
    }
}
