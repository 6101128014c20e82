//! Clients of all nodes: each repeats one request and checks every response.

use proxy_load::clock::{Stopwatch, pause};
use proxy_testkit::{RawClient, get};
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

#[derive(Clone, Copy, Debug)]
enum Ask {
    Items,
    Upload,
    Admin,
    Me,
    Stream,
    Reports,
    Site,
    Secure,
}

const ASKS: [Ask; 8] = [
    Ask::Items,
    Ask::Upload,
    Ask::Admin,
    Ask::Me,
    Ask::Stream,
    Ask::Reports,
    Ask::Site,
    Ask::Secure,
];

impl Clients {
    pub(super) fn start(ports: &Arc<Vec<Ports>>, tls: &Arc<ClientConfig>) -> Self {
        let (sender, wrong_responses) = channel();
        let since = Stopwatch::start();
        let stop = Arc::<AtomicBool>::default();
        let pause_millis = Arc::new(AtomicU64::new(PAUSE_MILLIS));
        let asked = Arc::<AtomicU64>::default();
        let nodes = 0..ports.len();
        let all = nodes.flat_map(|node| ASKS.map(|ask| (node, ask)));
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
    pub(super) fn scale_pause(&self, factor: u64) {
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
        while !self.stop.load(Ordering::Relaxed) {
            let at = self.since.elapsed();
            self.asked.fetch_add(1, Ordering::Relaxed);
            if let Err(why) = self.ask_once() {
                let node = self.node;
                let why = format!("{:?}: {why}", self.ask);
                drop(wrong_responses.send(WrongResponse { node, at, why }));
            }
            pause(Duration::from_millis(
                self.pause_millis.load(Ordering::Relaxed),
            ));
        }
    }

    fn ask_once(&self) -> Result<(), String> {
        let ports = &self.ports[self.node];
        match self.ask {
            Ask::Secure => self.ask_secure(ports.secure.load(Ordering::Relaxed)),
            Ask::Items
            | Ask::Upload
            | Ask::Admin
            | Ask::Me
            | Ask::Stream
            | Ask::Reports
            | Ask::Site => self.ask_plain(ports.plain.load(Ordering::Relaxed)),
        }
    }

    fn ask_plain(&self, port: u16) -> Result<(), String> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut client = RawClient::try_connect(address).map_err(|error| error.to_string())?;
        let close = ("connection", "close");
        let request = match self.ask {
            Ask::Items => get("/api/items", &[close]),
            Ask::Upload => upload(),
            Ask::Admin => get("/admin/users", &[close]),
            Ask::Me => get("/me", &[close]),
            Ask::Stream => get("/stream", &[close]),
            Ask::Reports => get("/reports/today", &[close]),
            Ask::Site | Ask::Secure => get("/", &[close]),
        };
        client.send(request);
        let since = Stopwatch::start();
        let head = client.try_head();
        let mut head = head.map_err(|broken| format!("{broken:?}"))?;
        let took = since.elapsed();
        let read = client.try_body(&mut head);
        read.map_err(|broken| format!("{broken:?}"))?;
        let field = |name: &str| head.fields.get(name).unwrap_or_default().to_owned();
        let (status, body) = match self.ask {
            Ask::Items | Ask::Upload => (200, "api"),
            Ask::Admin => (403, ""),
            Ask::Me => (200, "me"),
            Ask::Stream => (200, "stream"),
            Ask::Reports => (200, "reports"),
            Ask::Site | Ask::Secure => (200, "front"),
        };
        expect("status", &head.status, &status)?;
        let text = String::from_utf8_lossy(&head.body);
        if !body.is_empty() && !text.starts_with(body) {
            return Err(format!("the body is {text:?}"));
        }
        match self.ask {
            Ask::Items | Ask::Upload => {
                expect(
                    "x-frame-options",
                    &field("x-frame-options"),
                    &"DENY".to_owned(),
                )?;
                expect("x-internal", &field("x-internal"), &String::new())?;
            }
            Ask::Site => {
                expect(
                    "x-frame-options",
                    &field("x-frame-options"),
                    &"DENY".to_owned(),
                )?;
            }
            Ask::Me => expect(
                "cache-control",
                &field("cache-control"),
                &"private".to_owned(),
            )?,
            Ask::Admin | Ask::Stream | Ask::Reports | Ask::Secure => {}
        }
        if FIRST_BYTE < took {
            return Err(format!("the answer began after {} ms", took.as_millis()));
        }
        Ok(())
    }

    fn ask_secure(&self, port: u16) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        let stream = TcpStream::connect(("127.0.0.1", port)).map_err(text)?;
        let timeout = Some(Duration::from_secs(10));
        stream.set_read_timeout(timeout).map_err(text)?;
        let name = ServerName::try_from(HOST).map_err(|error| error.to_string())?;
        let session = ClientConnection::new(Arc::clone(&self.tls), name);
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
}

fn upload() -> Vec<u8> {
    let mut request = b"POST /api/items HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
        content-length: 4000\r\n\r\n"
        .to_vec();
    request.extend([b'x'; 4_000]);
    request
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted {
        return Ok(());
    }
    Err(format!("{what} is {found:?}, not {wanted:?}"))
}
