//! A server that does what a test tells it, on a real socket.

use crate::journal::Journal;
use crate::message::Request;
use crate::served::Served;
use crate::wire::{End, Wire};
use rustix::net::{Shutdown, listen};
use std::net::{Shutdown as Both, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Connections that may wait to be accepted.
const ACCEPT_BACKLOG: i32 = 4096;

/// A fake upstream. Every request that it reads is recorded. Dropped, it is gone; if the proxy sent it
/// what is no request, its drop panics.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    listener: Arc<TcpListener>,
    accepting: Option<JoinHandle<()>>,
    requests: Journal<Request>,
    faults: Journal<String>,
    ends: Journal<(usize, End)>,
    streams: Journal<Arc<TcpStream>>,
}

impl Upstream {
    /// Serves every connection, each on a thread of its own, as `script` says.
    pub fn start(script: impl Fn(&mut Served) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
        Self::start_on(listener, script)
    }

    /// The same, on a socket of the test's.
    pub fn start_on(
        listener: TcpListener,
        script: impl Fn(&mut Served) + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().expect("a socket has an address");
        // Whoever finds the queue full tries again after a second, and the usual one is short.
        listen(&listener, ACCEPT_BACKLOG).expect("a socket that listens may listen again");
        let listener = Arc::new(listener);
        let mut upstream = Self {
            address,
            listener: Arc::clone(&listener),
            accepting: None,
            requests: Journal::default(),
            faults: Journal::default(),
            ends: Journal::default(),
            streams: Journal::default(),
        };
        let requests = upstream.requests.clone();
        let faults = upstream.faults.clone();
        let ends = upstream.ends.clone();
        let streams = upstream.streams.clone();
        let script = Arc::new(script);
        upstream.accepting = Some(thread::spawn(move || {
            for number in 0.. {
                let Ok((stream, _)) = listener.accept() else {
                    break;
                };
                let wire = Wire::new(stream);
                streams.push(Arc::new(wire.stream()));
                let (requests, faults, ends) = (requests.clone(), faults.clone(), ends.clone());
                let mut served = Served::new(wire, number, requests, faults, ends);
                let script = Arc::clone(&script);
                let streams = streams.clone();
                thread::spawn(move || {
                    script(&mut served);
                    hang_up(&streams, number);
                });
            }
        }));
        upstream
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests read so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.requests.entries()
    }

    /// Waits until `count` requests have been read, and gives all of them.
    #[track_caller]
    pub fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        self.requests.wait_for(count)
    }

    /// The last request; waits for it when there is none yet.
    #[must_use]
    #[track_caller]
    pub fn last_request(&self) -> Request {
        let mut requests = self.requests.wait_for(1);
        requests.pop().expect("there is one")
    }

    /// Connections taken so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.streams.len()
    }

    /// Waits until `count` connections have been taken.
    #[track_caller]
    pub fn wait_for_connections(&self, count: usize) {
        self.streams.wait_for(count);
    }

    /// Waits until the proxy has ended `count` connections, and gives which and how, in order. Only a
    /// script that still reads sees an end.
    #[track_caller]
    pub fn wait_for_ends(&self, count: usize) -> Vec<(usize, End)> {
        self.ends.wait_for(count)
    }

    /// What the proxy sent that is no request.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        self.faults.entries()
    }

    /// Takes no more connections: whoever connects is refused. Those that are open stay.
    pub fn stop_accepting(&mut self) {
        let Some(accepting) = self.accepting.take() else {
            return;
        };
        let shut = rustix::net::shutdown(&*self.listener, Shutdown::Both);
        shut.expect("a listening socket can be shut");
        drop(accepting.join());
    }

    /// Ends all connections that are open, in order.
    pub fn hang_up(&self) {
        for stream in self.streams.entries() {
            drop(stream.shutdown(Both::Both));
        }
    }
}

/// The test's handle for the stream would keep it open after the script.
fn hang_up(streams: &Journal<Arc<TcpStream>>, number: usize) {
    if let Some(stream) = streams.entries().get(number) {
        drop(stream.shutdown(Both::Both));
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.stop_accepting();
        self.hang_up();
        let faults = self.faults();
        if !thread::panicking() {
            assert!(
                faults.is_empty(),
                "the proxy sent what is no request: {faults:?}"
            );
        }
    }
}
