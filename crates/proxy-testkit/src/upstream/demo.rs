//! The upstream of `cargo xtask demo` and of the quickstart's tests: it responds with the requests
//! it receives.

use crate::gate::Gate;
use crate::http::message::{Framing, Request};
use crate::upstream::Upstream;
use crate::upstream::fakes::{SWITCHING, echo_bytes, ok};
use crate::upstream::served::Served;
use std::net::TcpListener;
use std::time::Duration;

/// Default size of a download without `bytes=N`, in bytes.
const DOWNLOAD_BYTES: usize = 1 << 20;
/// Default delay of a slow response without `ms=N`, in milliseconds.
const SLOW_MS: usize = 1_000;
const PIECE_BYTES: usize = 64 << 10;

/// Serves on `listener`. The last segment of a path selects the response: `echo`, `ws`,
/// `download?bytes=N`, `upload`, `slow?ms=N`; for any other path it is the request's own head.
pub fn demo_upstream(name: &'static str, listener: TcpListener) -> Upstream {
    Upstream::start_on(listener, move |served| {
        while let Some(request) = served.head() {
            if respond(name, served, request).is_none() {
                return;
            }
        }
    })
}

/// Sends the response to `request`; `None` at the end of the connection.
fn respond(name: &str, served: &mut Served, mut request: Request) -> Option<()> {
    let target = request.target.clone();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let segment = path.rsplit('/').next().unwrap_or_default();
    if request.fields.has("expect") {
        served.send("HTTP/1.1 100 Continue\r\n\r\n");
    }
    if segment == "ws" && request.fields.has("upgrade") {
        served.send(SWITCHING);
        echo_bytes(served);
        return None;
    }
    if let ("upload", Framing::Length(length)) = (segment, &request.framing) {
        // Discarded in pieces, for any size.
        served.discard(*length).ok()?;
        return served.send(ok(format!("{length}\n"))).then_some(());
    }
    served.body(&mut request)?;
    let sent = match segment {
        "echo" => served.send(ok(&request.body)),
        "upload" => served.send(ok(format!("{}\n", request.body.len()))),
        "download" => send_zeros(served, number(query, "bytes").unwrap_or(DOWNLOAD_BYTES)),
        "slow" => {
            let millis = number(query, "ms").unwrap_or(SLOW_MS) as u64;
            Gate::new().opens_within(Duration::from_millis(millis));
            served.send(ok(describe(name, &request)))
        }
        _ => served.send(ok(describe(name, &request))),
    };
    sent.then_some(())
}

fn send_zeros(served: &mut Served, bytes: usize) -> bool {
    let piece = vec![0; PIECE_BYTES];
    let mut sent = served.send(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n"
    ));
    let mut left = bytes;
    while sent && left > 0 {
        let (now, _) = piece.split_at(left.min(PIECE_BYTES));
        sent = served.send(now);
        left -= now.len();
    }
    sent
}

/// The upstream's name, and the request as received.
fn describe(name: &str, request: &Request) -> String {
    let head = String::from_utf8_lossy(&request.raw).replace('\r', "");
    format!("upstream {name}\n{head}")
}

fn number(query: &str, key: &str) -> Option<usize> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| *name == key)?.1.parse().ok()
}
