//! Two thousand slow clients, and one that expects service.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may fail loudly, and measure"
)]

use crate::alone::alone;
use proxy_testkit::{Proxyd, RawClient, Upstream, get};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_proxyd");
const SLOW: usize = 2_000;
/// Deadlines of two seconds, the clock's tick, and a margin for a busy machine.
const IN_TIME: Duration = Duration::from_secs(15);

/// Added to a request's delay on the same machine without slow clients.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// A client that has sent half a head, or a head without a body, and continues byte by byte or not
/// at all.
struct Slow {
    stream: TcpStream,
    dribbles: bool,
    open: bool,
}

impl Slow {
    fn new(proxyd: &Proxyd, number: usize) -> Self {
        let mut stream = TcpStream::connect(proxyd.address()).unwrap();
        let dribbles = number.is_multiple_of(2);
        let begin: &[u8] = if dribbles {
            b"GET / HTTP/1.1\r\nHost: a.test\r\nX-Slow: "
        } else {
            b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000\r\n\r\nx"
        };
        stream.write_all(begin).unwrap();
        stream.set_nonblocking(true).unwrap();
        Self {
            stream,
            dribbles,
            open: true,
        }
    }

    /// Sends a byte, and tests whether the proxy has closed the connection.
    fn go_on(&mut self) {
        if self.dribbles && self.stream.write(b"a").is_err() {
            self.open = false;
        }
        let mut answer = [0; 1024];
        match self.stream.read(&mut answer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => self.open = false,
            Ok(_) => {}
        }
    }
}

#[test]
fn slow_clients_block_no_client_and_are_closed_in_time() {
    let _turn = alone();
    let upstream = Upstream::saying("ok");
    let address = upstream.address();
    let kdl = format!(
        r#"
            listeners {{
                listener "main" {{
                    address "127.0.0.1:0"
                    timeouts {{ header-secs 2; body-idle-secs 2 }}
                }}
            }}
            routes {{ route "all" {{ upstream "u" }} }}
            upstreams {{ upstream "u" {{ target "{address}" }} }}
            system {{ worker-threads 1 }}
            limits {{ max-connections-per-client 10000; max-connections-per-route 10000; max-in-flight-requests-per-worker 10000 }}
            "#
    );
    let proxyd = Proxyd::start(BINARY, &kdl);
    // Latency of a proxy without such clients on the same machine, at the same time.
    let undisturbed = Proxyd::start(BINARY, &kdl);
    let before = proxyd.rss_bytes();
    let over = AtomicBool::new(false);
    let (waits, baseline) = thread::scope(|scope| {
        let bystander = scope.spawn(|| request_until(&proxyd, &over));
        let baseline = scope.spawn(|| request_until(&undisturbed, &over));
        let left = slow_clients_left(&proxyd);
        over.store(true, Ordering::Relaxed);
        assert_eq!(left, 0, "of {SLOW} slow clients");
        (bystander.join().unwrap(), baseline.join().unwrap())
    });

    let asked = waits.len();
    let (wait, usual) = (p95(waits), p95(baseline));
    println!("{asked} requests beside {SLOW} slow clients, p95 {wait:?}, without them {usual:?}");
    let most = LONGEST_WAIT + 2 * usual;
    assert!(asked > 20 && wait < most, "{wait:?} of {most:?}");
    let grown = proxyd.rss_bytes().saturating_sub(before);
    println!("resident memory grew by {grown} bytes");
    assert!(grown < 50 << 20, "{grown} bytes");
}

/// Not the 99th percentile: when two thousand deadlines expire at once, a concurrent request waits for their
/// responses.
fn p95(mut waits: Vec<Duration>) -> Duration {
    waits.sort();
    waits[waits.len() * 95 / 100]
}

/// Number of slow clients left after [`IN_TIME`].
fn slow_clients_left(proxyd: &Proxyd) -> usize {
    let mut slow: Vec<Slow> = (0..SLOW).map(|number| Slow::new(proxyd, number)).collect();
    let begun = Instant::now();
    while begun.elapsed() < IN_TIME && slow.iter().any(|client| client.open) {
        slow.iter_mut()
            .filter(|client| client.open)
            .for_each(Slow::go_on);
        thread::park_timeout(Duration::from_millis(100));
    }
    slow.iter().filter(|client| client.open).count()
}

/// Sends requests until `over`; returns the response times.
fn request_until(proxyd: &Proxyd, over: &AtomicBool) -> Vec<Duration> {
    let mut client = RawClient::connect(proxyd.address());
    let mut waits = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let asked = Instant::now();
        let response = client.ask(get("/", &[]));
        assert_eq!(response.status, 200, "{}", response.text());
        waits.push(asked.elapsed());
        thread::park_timeout(Duration::from_millis(5));
    }
    waits
}
