//! Clients over HTTP/2, with several streams on each connection.

use super::exchange::{ClientRequest, Content, Exchange, Outcome};
use super::random::Random;
use super::wait::wait;
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::Request;
use proxy_testkit::{EVENT_TIMEOUT, Gate, Journal};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

/// Streams at once on a connection.
const STREAMS: usize = 8;
/// Longest pause between two requests, and before a client leaves, in milliseconds.
const MAX_PAUSE_MS: usize = 25;

/// Sends requests until it is `over`.
pub(crate) fn run(
    address: SocketAddr,
    client: usize,
    random: &Random,
    over: &Gate,
    exchanges: &Journal<Exchange>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let stream = TcpStream::connect(address).await.unwrap();
        let (send, connection) = h2::client::handshake(stream).await.unwrap();
        let (end, ends) = watch::channel(false);
        tokio::spawn(connection);
        let mut streams = tokio::task::JoinSet::new();
        for stream in 0..STREAMS {
            let mut random = random.clone();
            let user = Random::new(random.below(1 << 30) as u64, stream as u64);
            let (send, exchanges) = (send.clone(), exchanges.clone());
            let numbers = (client * 10 + stream, user);
            streams.spawn(requests(send, numbers, ends.clone(), exchanges));
        }
        let over = over.clone();
        let waiting =
            tokio::task::spawn_blocking(move || while !over.opens_within(EVENT_TIMEOUT) {});
        waiting.await.unwrap();
        end.send_replace(true);
        while let Some(ended) = streams.join_next().await {
            ended.unwrap();
        }
    });
}

/// Sends one request after the other.
async fn requests(
    send: SendRequest<Bytes>,
    (client, mut random): (usize, Random),
    ends: watch::Receiver<bool>,
    exchanges: Journal<Exchange>,
) {
    for number in 0.. {
        let request = ClientRequest::new(&mut random, client, number);
        let pause = Duration::from_millis(random.below(MAX_PAUSE_MS) as u64);
        let outcome = match begin(&send, &request).await {
            Ok((answer, body)) if request.leaves => {
                wait(pause).await;
                leave(answer, body);
                Outcome::Left
            }
            Ok((answer, _body)) => {
                let whole = timeout(EVENT_TIMEOUT, receive(answer, &request)).await;
                whole.unwrap_or_else(|_| Outcome::Unanswered("no answer in time".to_owned()))
            }
            Err(error) => Outcome::Unanswered(format!("cannot send: {error}")),
        };
        exchanges.push(Exchange::new(request, outcome));
        if *ends.borrow() {
            return;
        }
        wait(pause).await;
    }
}

/// Sends a request; of one that its client leaves, without its last byte of the body.
async fn begin(
    send: &SendRequest<Bytes>,
    request: &ClientRequest,
) -> Result<(ResponseFuture, Option<SendStream<Bytes>>), h2::Error> {
    let ClientRequest { id, body, .. } = request;
    let method = if body.is_some() { "POST" } else { "GET" };
    let head = Request::builder()
        .method(method)
        .uri(format!("http://a.test{}", request.path()))
        .header("x-correlation-id", id)
        .body(())
        .unwrap();
    let mut ready = send.clone().ready().await?;
    let (answer, mut stream) = ready.send_request(head, body.is_none())?;
    let Some(body) = body else {
        return Ok((answer, None));
    };
    // The proxy may have answered already, and reset the rest.
    drop(stream.send_data(Bytes::from(body.clone()), !request.leaves));
    Ok((answer, Some(stream)))
}

fn leave(answer: ResponseFuture, body: Option<SendStream<Bytes>>) {
    if let Some(mut body) = body {
        body.send_reset(Reason::CANCEL);
    }
    // Without a body, the stream is reset when the future is dropped.
    drop(answer);
}

async fn receive(answer: ResponseFuture, request: &ClientRequest) -> Outcome {
    let response = match answer.await {
        Ok(response) => response,
        Err(error) => return Outcome::Unanswered(error.to_string()),
    };
    let (head, mut pieces) = response.into_parts();
    let status = head.status.as_u16();
    let mut body = Vec::new();
    while let Some(piece) = pieces.data().await {
        let Ok(piece) = piece else {
            return Outcome::Cut(status);
        };
        drop(pieces.flow_control().release_capacity(piece.len()));
        body.extend_from_slice(&piece);
    }
    Outcome::Answered(status, Content::classify(&body, request))
}
