//! Clients over HTTP/1.1.

use super::exchange::{ClientRequest, Content, Exchange, Outcome};
use super::random::Random;
use proxy_testkit::{Broken, Gate, Journal, RawClient, Wire};
use std::net::SocketAddr;
use std::time::Duration;

/// Longest pause between two requests, and before a client leaves, in milliseconds.
const MAX_PAUSE_MS: usize = 12;

/// Sends requests until it is `over`.
pub(crate) fn run(
    address: SocketAddr,
    client: usize,
    mut random: Random,
    over: &Gate,
    exchanges: &Journal<Exchange>,
) {
    let mut connection = None;
    for number in 0.. {
        let request = ClientRequest::new(&mut random, client, number);
        let pause = Duration::from_millis(random.below(MAX_PAUSE_MS) as u64);
        let mut wire = connection
            .take()
            .unwrap_or_else(|| RawClient::connect(address));
        let outcome = if request.leaves {
            leave(wire, &request, pause, random.once_in(2));
            Outcome::Left
        } else {
            let (outcome, stays_open) = exchange(&mut wire, &request);
            connection = stays_open.then_some(wire);
            outcome
        };
        exchanges.push(Exchange::new(request, outcome));
        if over.opens_within(pause) {
            return;
        }
    }
}

/// Sends a request and leaves, with a reset or without.
fn leave(mut wire: RawClient, request: &ClientRequest, pause: Duration, reset: bool) {
    if Wire::send(&mut wire, request_bytes(request)).is_ok() {
        Gate::new().opens_within(pause);
    }
    if reset {
        wire.reset();
    }
}

/// Sends a request and reads the response; returns the outcome, and whether the connection stays open.
fn exchange(wire: &mut RawClient, request: &ClientRequest) -> (Outcome, bool) {
    // The proxy may respond early and close; the response is readable all the same.
    let sent = Wire::send(wire, request_bytes(request));
    let mut response = match wire.try_head() {
        Ok(response) => response,
        Err(broken) => return (unanswered(broken, sent), false),
    };
    let status = response.status;
    match wire.try_body(&mut response) {
        Ok(()) => {}
        Err(Broken::Eof | Broken::Reset) => return (Outcome::Cut(status), false),
        Err(broken) => return (unanswered(broken, sent), false),
    }
    let stays = response.fields.get("connection") != Some("close");
    let content = Content::classify(&response.body, request);
    (Outcome::Answered(status, content), stays)
}

fn unanswered(broken: Broken, sent: Result<(), Broken>) -> Outcome {
    Outcome::Unanswered(format!("{broken}; the request was sent: {sent:?}"))
}

fn request_bytes(request: &ClientRequest) -> Vec<u8> {
    let ClientRequest { id, body, .. } = request;
    let method = if body.is_some() { "POST" } else { "GET" };
    let body = body.as_deref().unwrap_or_default();
    let length = match method {
        "POST" => format!("Content-Length: {}\r\n", body.len()),
        _ => String::new(),
    };
    let head = format!(
        "{method} {} HTTP/1.1\r\nHost: a.test\r\nX-Correlation-Id: {id}\r\n{length}\r\n",
        request.path()
    );
    [head.as_bytes(), body].concat()
}
