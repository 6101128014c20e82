//! Clients of all nodes: each repeats one request and checks every response.

use proxy_load::clock::{Stopwatch, pause};
use proxy_testkit::{RawClient, Response, get};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, StreamOwned};

/// Between two requests of a client, unless the load changes.
const PAUSE_MILLIS: u64 = 120;
const FIRST_BYTE: Duration = Duration::from_millis(1_200);
pub(super) const HOST: &str = "shop.example.com";
/// The field of a request that is the last of its connection.
pub(super) const CLOSE: (&str, &str) = ("connection", "close");

/// An answer that was not as expected.
#[derive(Clone, Debug)]
pub(super) struct WrongResponse {
    pub(super) node: usize,
    pub(super) at: Duration,
    pub(super) why: String,
}

/// Listening addresses of a node: plain and with TLS.
#[derive(Debug)]
pub(super) struct Ports {
    pub(super) plain: AtomicU16,
    pub(super) secure: AtomicU16,
}

/// All clients, until they are dropped.
pub(super) struct Clients {
    wrong_responses: Receiver<WrongResponse>,
    stop: Arc<AtomicBool>,
    pub(super) pause_millis: Arc<AtomicU64>,
    asked: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Clone)]
struct Client {
    node: usize,
    ask: Ask,
    ports: Arc<Vec<Ports>>,
    tls: Arc<ClientConfig>,
    stop: Arc<AtomicBool>,
    pause_millis: Arc<AtomicU64>,
    asked: Arc<AtomicU64>,
    since: Stopwatch,
}

/// A request that a client repeats, and the check of its answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    name: &'static str,
    send: fn(&Asked<'_>) -> Result<(), String>,
}

/// The circumstances of one request.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    ports: &'a Ports,
    tls: &'a Arc<ClientConfig>,
    /// Number of the client's requests before.
    pub(super) number: u32,
}

impl Ask {
    pub(super) const fn new(
        name: &'static str,
        send: fn(&Asked<'_>) -> Result<(), String>,
    ) -> Self {
        Self { name, send }
    }
}

impl Clients {
    pub(super) fn start(
        asks: &'static [Ask],
        ports: &Arc<Vec<Ports>>,
        tls: &Arc<ClientConfig>,
    ) -> Self {
        let (sender, wrong_responses) = channel();
        let since = Stopwatch::start();
        let stop = Arc::<AtomicBool>::default();
        let pause_millis = Arc::new(AtomicU64::new(PAUSE_MILLIS));
        let asked = Arc::<AtomicU64>::default();
        let nodes = 0..ports.len();
        let all = nodes.flat_map(|node| asks.iter().map(move |ask| (node, *ask)));
        let threads = all.map(|(node, ask)| {
            let client = Client {
                node,
                ask,
                ports: Arc::clone(ports),
                tls: Arc::clone(tls),
                stop: Arc::clone(&stop),
                pause_millis: Arc::clone(&pause_millis),
                asked: Arc::clone(&asked),
                since,
            };
            let sender = sender.clone();
            spawn(move || client.run(&sender))
        });
        Self {
            threads: threads.collect(),
            wrong_responses,
            stop,
            pause_millis,
            asked,
        }
    }

    /// Answers that were not as expected since the last call.
    pub(super) fn take(&self) -> Vec<WrongResponse> {
        self.wrong_responses.try_iter().collect()
    }

    /// Number of requests sent.
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Changes the load; 1 is the initial one.
    pub(super) fn scale_load(&self, factor: u64) {
        self.pause_millis
            .store(PAUSE_MILLIS / factor.max(1), Ordering::Relaxed);
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap_or_default();
        }
    }
}

impl Client {
    fn run(&self, wrong_responses: &Sender<WrongResponse>) {
        let mut number = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let at = self.since.elapsed();
            self.asked.fetch_add(1, Ordering::Relaxed);
            let asked = Asked {
                ports: &self.ports[self.node],
                tls: &self.tls,
                number,
            };
            number += 1;
            if let Err(why) = (self.ask.send)(&asked) {
                let node = self.node;
                let why = format!("{}: {why}", self.ask.name);
                drop(wrong_responses.send(WrongResponse { node, at, why }));
            }
            pause(Duration::from_millis(
                self.pause_millis.load(Ordering::Relaxed),
            ));
        }
    }
}

/// The answer to `request` on a new connection, if it has this status, a body that begins so, and is in time.
pub(super) fn answer(
    asked: &Asked<'_>,
    request: Vec<u8>,
    status: u16,
    body: &str,
) -> Result<Response, String> {
    let address = SocketAddr::from(([127, 0, 0, 1], asked.ports.plain.load(Ordering::Relaxed)));
    let mut client = RawClient::try_connect(address).map_err(|error| error.to_string())?;
    client.send(request);
    let since = Stopwatch::start();
    let head = client.try_head();
    let mut head = head.map_err(|broken| format!("{broken:?}"))?;
    let took = since.elapsed();
    let read = client.try_body(&mut head);
    read.map_err(|broken| format!("{broken:?}"))?;
    expect("status", &head.status, &status)?;
    if !head.body.starts_with(body.as_bytes()) {
        let text = String::from_utf8_lossy(&head.body);
        return Err(format!("the body is {text:?}"));
    }
    if FIRST_BYTE < took {
        return Err(format!("the answer began after {} ms", took.as_millis()));
    }
    Ok(head)
}

/// A field of the answer; an empty one is none.
pub(super) fn expect_field(answer: &Response, name: &str, wanted: &str) -> Result<(), String> {
    let found = answer.fields.get(name).unwrap_or_default();
    expect(name, &found, &wanted)
}

/// A page that clients are refused.
pub(super) fn ask_admin(asked: &Asked<'_>) -> Result<(), String> {
    answer(asked, get("/admin/users", &[CLOSE]), 403, "").map(drop)
}

/// The site by HTTPS.
pub(super) fn ask_secure(asked: &Asked<'_>) -> Result<(), String> {
    let port = asked.ports.secure.load(Ordering::Relaxed);
    let text = |error: std::io::Error| error.to_string();
    let stream = TcpStream::connect(("127.0.0.1", port)).map_err(text)?;
    let timeout = Some(Duration::from_secs(10));
    stream.set_read_timeout(timeout).map_err(text)?;
    let name = ServerName::try_from(HOST).map_err(|error| error.to_string())?;
    let session = ClientConnection::new(Arc::clone(asked.tls), name);
    let session = session.map_err(|error| error.to_string())?;
    let mut stream = StreamOwned::new(session, stream);
    let request = format!("GET / HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(text)?;
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    if answer.starts_with("HTTP/1.1 200") && answer.ends_with("front") {
        return Ok(());
    }
    Err(format!("{:?} {read:?}", answer.lines().next()))
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted {
        return Ok(());
    }
    Err(format!("{what} is {found:?}, not {wanted:?}"))
}
