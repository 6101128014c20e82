//! An HTTP/2 client.

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response, StatusCode};
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// One connection.
pub(crate) struct Http2 {
    pub(crate) send: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: HeaderMap,
}

impl Http2 {
    /// HTTP/2 over `io`.
    pub(crate) async fn over(io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        Self::with(io, &mut h2::client::Builder::new()).await
    }

    /// Configured by `builder`.
    pub(crate) async fn with(
        io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        builder: &mut h2::client::Builder,
    ) -> Self {
        let (send, connection) = builder.handshake(io).await.unwrap();
        Self {
            send,
            connection: tokio::spawn(connection),
        }
    }

    /// With prior knowledge, without TLS.
    pub(crate) async fn prior_knowledge(to: SocketAddr) -> Self {
        Self::over(plain(to).await).await
    }

    /// Begins a request; its body is still to be sent.
    pub(crate) async fn begin(
        &mut self,
        request: Request<()>,
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let mut send = self.send.clone().ready().await.unwrap();
        send.send_request(request, false).unwrap()
    }

    /// Sends a request without a body.
    pub(crate) async fn send(&mut self, request: Request<()>) -> ResponseFuture {
        let mut send = self.send.clone().ready().await.unwrap();
        send.send_request(request, true).unwrap().0
    }

    /// Sends a request without a body and waits for the whole response.
    pub(crate) async fn ask(&mut self, request: Request<()>) -> Answer {
        let response = self.send(request).await;
        Answer::read(response.await.unwrap()).await.unwrap()
    }

    /// Requests `target` at `a.test`.
    pub(crate) async fn get(&mut self, target: &str) -> Answer {
        self.ask(get(target)).await
    }

    /// Waits until the connection has ended, and returns the error.
    pub(crate) async fn end(self) -> Result<(), h2::Error> {
        let Self { send, connection } = self;
        drop(send);
        connection.await.unwrap()
    }
}

impl Answer {
    /// Reads a response to its end.
    pub(crate) async fn read(response: Response<RecvStream>) -> Result<Self, h2::Error> {
        let (head, mut stream) = response.into_parts();
        let mut body = Vec::new();
        while let Some(data) = stream.data().await {
            let data = data?;
            stream.flow_control().release_capacity(data.len())?;
            body.extend_from_slice(&data);
        }
        Ok(Self {
            status: head.status,
            headers: head.headers,
            body,
            trailers: stream.trailers().await?.unwrap_or_default(),
        })
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The `code` of an error body.
    pub(crate) fn error_code(&self) -> String {
        let json: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        json["error"]["code"].as_str().unwrap().to_owned()
    }
}

/// A connection without TLS.
pub(crate) async fn plain(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// A request for `target` at `a.test`.
pub(crate) fn get(target: &str) -> Request<()> {
    let uri = format!("http://a.test{target}");
    Request::builder().uri(uri).body(()).unwrap()
}

/// The same with another method.
pub(crate) fn ask(method: &str, target: &str) -> Request<()> {
    let mut request = get(target);
    *request.method_mut() = method.parse().unwrap();
    request
}

/// Sends all of `body`, as fast as the windows allow, and ends the stream.
pub(crate) async fn send_all(stream: &mut SendStream<Bytes>, body: &[u8]) -> Result<(), h2::Error> {
    send(stream, body, true).await
}

/// Sends all of `bytes`, as fast as the windows allow.
pub(crate) async fn send_some(stream: &mut SendStream<Bytes>, bytes: &[u8]) {
    send(stream, bytes, false).await.unwrap();
}

async fn send(stream: &mut SendStream<Bytes>, body: &[u8], end: bool) -> Result<(), h2::Error> {
    let mut rest = Bytes::copy_from_slice(body);
    while !rest.is_empty() {
        stream.reserve_capacity(rest.len());
        let room = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
        let Some(room) = room.transpose()? else {
            break;
        };
        let piece = rest.split_to(room.min(rest.len()));
        stream.send_data(piece, end && rest.is_empty())?;
    }
    Ok(())
}
