//! A scripted server on a real socket.

pub(crate) mod demo;
pub(crate) mod fakes;
pub(crate) mod served;

use crate::http::message::Request;
use crate::http::wire::{End, Wire};
use crate::journal::Journal;
use crate::upstream::served::Served;
use rustix::net::{Shutdown, listen};
use std::net::{Shutdown as Both, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Length of the accept queue.
const ACCEPT_BACKLOG: i32 = 4096;

/// A fake upstream that records every request. Closed on drop; the drop panics if the proxy sent
/// malformed requests.
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
    /// Runs `script` for every connection, each on a thread of its own.
    pub fn start(script: impl Fn(&mut Served) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        Self::start_on(listener, script)
    }

    /// Like [`Self::start`], on the given socket.
    pub fn start_on(
        listener: TcpListener,
        script: impl Fn(&mut Served) + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().expect("a socket has an address");
        // A client that finds the queue full retries only after a second, and the default queue is
        // short.
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

    /// The upstream's address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests read so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.requests.entries()
    }

    /// Waits until `count` requests have been read, and returns all.
    #[track_caller]
    pub fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        self.requests.wait_for(count)
    }

    /// The last request; waits for one if there is none yet.
    #[must_use]
    #[track_caller]
    pub fn last_request(&self) -> Request {
        let mut requests = self.requests.wait_for(1);
        requests.pop().expect("a request was received")
    }

    /// Number of connections accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.streams.len()
    }

    /// Waits until `count` connections have been accepted.
    #[track_caller]
    pub fn wait_for_connections(&self, count: usize) {
        self.streams.wait_for(count);
    }

    /// Waits until the proxy has closed `count` connections, and returns their indexes and ends, in
    /// order. An end is only seen by a script that still reads.
    #[track_caller]
    pub fn wait_for_ends(&self, count: usize) -> Vec<(usize, End)> {
        self.ends.wait_for(count)
    }

    /// Errors of malformed requests.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        self.faults.entries()
    }

    /// Closes the listener: new connections are refused, open ones stay.
    pub fn stop_accepting(&mut self) {
        let Some(accepting) = self.accepting.take() else {
            return;
        };
        let shut = rustix::net::shutdown(&*self.listener, Shutdown::Both);
        shut.expect("a listening socket can be shut");
        drop(accepting.join());
    }

    /// Closes all open connections with FIN.
    pub fn hang_up(&self) {
        for stream in self.streams.entries() {
            drop(stream.shutdown(Both::Both));
        }
    }
}

/// Shuts the stream down, because the test's handle would keep it open after the script.
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
                "the proxy sent what is not a request: {faults:?}"
            );
        }
    }
}
