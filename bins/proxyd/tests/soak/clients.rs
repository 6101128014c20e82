//! The load: many clients of every kind, none of which may see an error.

use crate::{callers, http2};
use proxy_testkit::Gate;
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};

/// All clients.
pub(crate) struct Clients(Vec<Caller>);

struct Caller {
    what: &'static str,
    thread: JoinHandle<u64>,
}

type Manner = fn(SocketAddr, &Gate) -> u64;

/// Counter, number of clients and function of each kind.
const MANNERS: &[(&str, usize, Manner)] = &[
    ("requests on connections of their own", 2, callers::once),
    ("requests on kept connections", 3, callers::kept),
    ("slow downloads", 2, callers::slow_download),
    ("streams", 3, callers::stream),
    (
        "pieces of streams from start to end",
        2,
        callers::endless_stream,
    ),
    (
        "messages over WebSockets that come and go",
        2,
        callers::websocket,
    ),
    (
        "messages over WebSockets from start to end",
        2,
        callers::endless_websocket,
    ),
    ("requests over HTTP/2", 2, http2::requests),
    ("streams over HTTP/2", 2, http2::streams),
    (
        "pieces of HTTP/2 streams from start to end",
        2,
        http2::endless_stream,
    ),
];

impl Clients {
    /// Runs all clients until it is `over`.
    pub(crate) fn start(address: SocketAddr, over: &Gate) -> Self {
        let mut callers = Vec::new();
        for (what, count, manner) in MANNERS {
            for _ in 0..*count {
                let over = over.clone();
                let thread = thread::spawn(move || manner(address, &over));
                callers.push(Caller { what, thread });
            }
        }
        Self(callers)
    }

    /// Waits until all clients have finished, and returns their counts.
    #[track_caller]
    pub(crate) fn leave(self) -> Vec<(&'static str, u64)> {
        let mut served: Vec<(&'static str, u64)> = Vec::new();
        for Caller { what, thread } in self.0 {
            let Ok(count) = thread.join() else {
                panic!("failed: {what}");
            };
            match served.iter_mut().find(|(name, _)| *name == what) {
                Some((_, sum)) => *sum += count,
                None => served.push((what, count)),
            }
        }
        served
    }
}
