//! Fake upstreams used by many tests.

use crate::gate::Gate;
use crate::upstream::Upstream;
use crate::upstream::served::Served;

pub(crate) const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

impl Upstream {
    /// Answers every request with these bytes and keeps the connection.
    pub fn answering(response: impl Into<Vec<u8>>) -> Self {
        let response = response.into();
        Self::start(move |served| {
            while served.request().is_some() {
                served.send(&response);
            }
        })
    }

    /// Answers every request with status 200 and this text, and keeps the connection.
    pub fn saying(text: &str) -> Self {
        Self::answering(ok(text))
    }

    /// Answers every request with status 200 and this text, once `gate` is open.
    pub fn gated(gate: &Gate, text: &str) -> Self {
        let (gate, response) = (gate.clone(), ok(text));
        Self::start(move |served| {
            while served.request().is_some() {
                gate.wait();
                served.send(&response);
            }
        })
    }

    /// Answers every request with its own body.
    pub fn echo() -> Self {
        Self::start(|served| {
            while let Some(request) = served.request() {
                served.send(ok(&request.body));
            }
        })
    }

    /// Closes each connection after `count` responses, without `Connection: close`.
    pub fn closing_after(count: usize) -> Self {
        Self::start(move |served| {
            for _ in 0..count {
                if served.request().is_none() {
                    return;
                }
                served.send(ok("ok"));
            }
        })
    }

    /// Reads a request's head at once and its body only once `gate` is open; then it answers.
    pub fn slow_reader(gate: &Gate) -> Self {
        let gate = gate.clone();
        Self::start(move |served| {
            while let Some(mut request) = served.head() {
                gate.wait();
                if served.body(&mut request).is_none() {
                    return;
                }
                served.send(ok(request.body.len().to_string()));
            }
        })
    }

    /// Answers every request with a switch to WebSocket, for the sample key of RFC 6455 §1.3, and
    /// returns every byte until the proxy closes its side.
    pub fn websocket() -> Self {
        Self::start(|served| {
            if served.head().is_some() {
                served.send(SWITCHING);
                echo_bytes(served);
            }
        })
    }
}

pub(crate) fn echo_bytes(served: &mut Served) {
    while let Ok(bytes) = served.some() {
        served.send(bytes);
    }
    // Records the end.
    served.end();
}

/// A response with status 200 and this body.
#[must_use]
pub fn ok(body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut response = head.into_bytes();
    response.extend_from_slice(body);
    response
}
