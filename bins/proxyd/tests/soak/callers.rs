//! HTTP/1.1 clients. Each returns its counts, or panics.

use crate::backend::{BULK, pieces_of};
use proxy_testkit::{Framing, Gate, RawClient, get};
use std::iter;
use std::net::SocketAddr;
use std::time::Duration;

/// Pause between two operations of a client.
const PACE: Duration = Duration::from_millis(4);

/// Requests, each on a new connection.
pub(crate) fn once(address: SocketAddr, over: &Gate) -> u64 {
    until(over, || {
        let _ = small(&mut RawClient::connect(address));
        1
    })
}

/// Requests on a connection for as long as the proxy keeps it open.
pub(crate) fn kept(address: SocketAddr, over: &Gate) -> u64 {
    let mut client = RawClient::connect(address);
    until(over, || {
        if !small(&mut client) {
            client = RawClient::connect(address);
        }
        1
    })
}

/// Downloads by slow clients.
pub(crate) fn slow_download(address: SocketAddr, over: &Gate) -> u64 {
    until(over, || {
        let mut client = RawClient::connect(address);
        client.send(get("/bulk", &[]));
        assert_eq!(client.head().framing, Framing::Length(BULK));
        let part = BULK / 64;
        for _ in 0..64 {
            client.discard(part).unwrap();
            over.opens_within(PACE);
        }
        1
    })
}

/// Streams of about a second.
pub(crate) fn stream(address: SocketAddr, over: &Gate) -> u64 {
    until(over, || {
        let answer = RawClient::connect(address).ask(get("/stream/60", &[]));
        assert_eq!(pieces_of(&answer.body), 60);
        1
    })
}

/// A stream for the whole duration.
pub(crate) fn endless_stream(address: SocketAddr, _: &Gate) -> u64 {
    let answer = RawClient::connect(address).ask(get("/stream/endless", &[]));
    pieces_of(&answer.body)
}

/// WebSocket messages, a hundred on each connection.
pub(crate) fn websocket(address: SocketAddr, over: &Gate) -> u64 {
    let rounds = iter::repeat_with(|| {
        let mut tunnel = open_tunnel(address);
        let messages = (0..100).map(|_| message(&mut tunnel, over));
        messages.take_while(|going| *going).count() as u64
    });
    rounds.take_while(|_| !over.is_open()).sum()
}

/// WebSocket messages on one connection.
pub(crate) fn endless_websocket(address: SocketAddr, over: &Gate) -> u64 {
    let mut tunnel = open_tunnel(address);
    let messages = iter::repeat_with(|| message(&mut tunnel, over));
    messages.take_while(|going| *going).count() as u64
}

fn until(over: &Gate, mut step: impl FnMut() -> u64) -> u64 {
    let mut count = step();
    while !over.opens_within(PACE) {
        count += step();
    }
    count
}

/// A short request. Returns whether the proxy keeps the connection open.
#[track_caller]
fn small(client: &mut RawClient) -> bool {
    let answer = client.ask(get("/small", &[]));
    assert_eq!((answer.status, answer.text().as_str()), (200, "fine"));
    answer.fields.get("connection") != Some("close")
}

#[track_caller]
fn open_tunnel(address: SocketAddr) -> RawClient {
    let mut client = RawClient::connect(address);
    let asks = [("Connection", "Upgrade"), ("Upgrade", "websocket")];
    assert_eq!(client.ask(get("/ws", &asks)).status, 101);
    client
}

/// A message and its echo. Returns whether there is time for another.
#[track_caller]
fn message(tunnel: &mut RawClient, over: &Gate) -> bool {
    let message = b"sixteen bytes, so";
    tunnel.send(message);
    assert_eq!(tunnel.exactly(message.len()).unwrap(), message);
    !over.opens_within(PACE)
}
