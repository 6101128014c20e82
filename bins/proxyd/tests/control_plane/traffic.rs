//! Steady traffic to every node of a fleet; each answer is kept with its node and its time.

use proxy_load::clock::{Stopwatch, pause};
use proxy_testkit::{RawClient, Wire};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// Clients of one node: a node that answers slowly still answers several a second.
const CLIENTS: usize = 4;
/// Between an answer and the client's next request.
const PAUSE: Duration = Duration::from_millis(80);

/// Timeout of a response.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The outcome of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The index of the node.
    pub(crate) node: usize,
    /// The index of the client at its node.
    client: usize,
    /// Since the traffic began, when the request was sent.
    began: Duration,
    /// 0 for a request without an answer.
    pub(crate) status: u16,
    /// The bundle by its header, or the client's error.
    pub(crate) bundle: String,
}

/// Clients that send requests until they are dropped, each on a connection of its own.
pub(crate) struct Traffic {
    ports: Arc<Vec<AtomicU16>>,
    stop: Arc<AtomicBool>,
    outcomes: Receiver<Outcome>,
    since: Stopwatch,
    clients: Vec<JoinHandle<()>>,
}

impl Traffic {
    /// Begins to send requests to the nodes at `addresses`, about forty a second to each.
    pub(crate) fn to(addresses: &[SocketAddr]) -> Self {
        let ports = addresses.iter().map(|at| AtomicU16::new(at.port()));
        let ports: Arc<Vec<_>> = Arc::new(ports.collect());
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, outcomes) = channel();
        let since = Stopwatch::start();
        let nodes = 0..addresses.len();
        let all = nodes.flat_map(|node| (0..CLIENTS).map(move |client| (node, client)));
        let clients = all.map(|own| {
            let (ports, stop) = (Arc::clone(&ports), Arc::clone(&stop));
            let sender = sender.clone();
            spawn(move || send(own, &ports[own.0], &stop, since, &sender))
        });
        Self {
            clients: clients.collect(),
            ports,
            stop,
            outcomes,
            since,
        }
    }

    /// The node has restarted at another address.
    pub(crate) fn move_to(&self, node: usize, address: SocketAddr) {
        self.ports[node].store(address.port(), Ordering::SeqCst);
    }

    /// Outcomes of the requests since the last call. Waits for those that are on their way, so that
    /// the next call has none that was sent before this one.
    pub(crate) fn take(&self) -> Vec<Outcome> {
        let called = self.since.elapsed();
        let mut taken = Vec::new();
        let mut settled = HashSet::new();
        while settled.len() < self.clients.len() {
            let outcome = self.outcomes.recv_timeout(TIMEOUT).unwrap();
            if called < outcome.began {
                settled.insert((outcome.node, outcome.client));
            }
            taken.push(outcome);
        }
        taken
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for client in self.clients.drain(..) {
            client.join().unwrap_or_default();
        }
    }
}

fn send(
    (node, client): (usize, usize),
    port: &AtomicU16,
    stop: &AtomicBool,
    since: Stopwatch,
    sender: &Sender<Outcome>,
) {
    while !stop.load(Ordering::SeqCst) {
        let address = SocketAddr::from(([127, 0, 0, 1], port.load(Ordering::SeqCst)));
        let began = since.elapsed();
        let (status, bundle) = ask(address);
        let outcome = Outcome {
            node,
            client,
            began,
            status,
            bundle,
        };
        drop(sender.send(outcome));
        pause(PAUSE);
    }
}

/// The status of an answer, and the bundle that it is of.
pub(crate) fn ask(address: SocketAddr) -> (u16, String) {
    let mut client = match RawClient::try_connect(address) {
        Ok(client) => client,
        Err(error) => return (0, error.to_string()),
    };
    let request = proxy_testkit::get("/", &[("connection", "close")]);
    let sent = Wire::send(&mut client, request);
    match sent.and_then(|()| client.try_response()) {
        Ok(response) => {
            let bundle = response.fields.get("x-bundle").unwrap_or_default();
            (response.status, bundle.to_owned())
        }
        Err(broken) => (0, format!("{broken:?}")),
    }
}
