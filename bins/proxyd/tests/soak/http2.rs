//! HTTP/2 clients. Each returns its counts, or panics.

use crate::backend::pieces_of;
use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;
use proxy_testkit::{EVENT_TIMEOUT, Gate};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

/// Pause between two operations of a client.
const PACE: Duration = Duration::from_millis(4);

/// Short requests, on a connection for as long as the proxy accepts them.
pub(crate) fn requests(address: SocketAddr, over: &Gate) -> u64 {
    block_on(async {
        let (mut client, mut count) = (Client::connect(address).await, 0);
        while !ends(over).await {
            assert_eq!(client.get("/small").await, b"fine");
            count += 1;
        }
        count
    })
}

/// Streams of about a second, five at once.
pub(crate) fn streams(address: SocketAddr, over: &Gate) -> u64 {
    block_on(async {
        let (mut client, mut count) = (Client::connect(address).await, 0);
        while !ends(over).await {
            let mut five = Vec::new();
            for _ in 0..5 {
                // Each is read separately: they share the connection's window.
                five.push(tokio::spawn(read_body(client.begin("/stream/60").await)));
            }
            for whole in five {
                assert_eq!(pieces_of(&whole.await.unwrap()), 60);
                count += 1;
            }
        }
        count
    })
}

/// A stream for the whole duration.
pub(crate) fn endless_stream(address: SocketAddr, _: &Gate) -> u64 {
    block_on(async {
        let mut client = Client::connect(address).await;
        let answer = client.begin("/stream/endless").await;
        pieces_of(&read_body(answer).await)
    })
}

/// A connection, replaced after GOAWAY.
struct Client {
    address: SocketAddr,
    send: SendRequest<Bytes>,
}

impl Client {
    async fn connect(address: SocketAddr) -> Self {
        let send = Self::handshake(address).await;
        Self { address, send }
    }

    async fn handshake(address: SocketAddr) -> SendRequest<Bytes> {
        let stream = TcpStream::connect(address).await.unwrap();
        let (send, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        send
    }

    async fn begin(&mut self, target: &str) -> h2::client::ResponseFuture {
        loop {
            let uri = format!("http://a.test{target}");
            let request = Request::get(uri).body(()).unwrap();
            // An unsent request may be sent elsewhere; a sent one must be answered.
            if let Ok(mut ready) = self.send.clone().ready().await
                && let Ok((answer, _)) = ready.send_request(request, true)
            {
                return answer;
            }
            self.send = Self::handshake(self.address).await;
        }
    }

    async fn get(&mut self, target: &str) -> Vec<u8> {
        let answer = self.begin(target).await;
        read_body(answer).await
    }
}

async fn read_body(answer: h2::client::ResponseFuture) -> Vec<u8> {
    let answer = tokio::time::timeout(EVENT_TIMEOUT, answer).await.unwrap();
    let (head, mut body) = answer.unwrap().into_parts();
    assert_eq!(head.status, 200);
    let mut all = Vec::new();
    while let Some(piece) = tokio::time::timeout(EVENT_TIMEOUT, body.data())
        .await
        .unwrap()
    {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        all.extend_from_slice(&piece);
    }
    all
}

/// Returns true if it has ended; waits briefly.
async fn ends(over: &Gate) -> bool {
    let over = over.clone();
    let waiting = tokio::task::spawn_blocking(move || over.opens_within(PACE));
    waiting.await.unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}
