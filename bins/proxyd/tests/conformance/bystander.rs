//! A client that does nothing wrong, and measures how long it waits.
#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests may fail loudly, and measure"
)]

use crate::attack_frames::{
    ACK, END_HEADERS, END_STREAM, Frame, GET, HEADERS, SETTINGS, frame, greeting,
};
use proxy_testkit::{PATIENCE, RawClient, get};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BETWEEN_REQUESTS: Duration = Duration::from_millis(5);

/// What is first in the head of a response that is `200`. [RFC 7541 §6.1]
const STATUS_200: u8 = 0x88;

/// How long answers took, the shortest first.
#[derive(Debug)]
pub(crate) struct Waits(Vec<Duration>);

impl Waits {
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// What so many of a hundred waited at most.
    pub(crate) fn percentile(&self, of_hundred: usize) -> Duration {
        let at = self.0.len() * of_hundred / 100;
        self.0.get(at).copied().unwrap_or(Duration::MAX)
    }
}

/// Asks by HTTP/1.1 until it is `over`.
pub(crate) fn by_http1(to: SocketAddr, over: &AtomicBool) -> Waits {
    let mut client = RawClient::connect(to);
    ask_on(over, || assert_eq!(client.ask(get("/", &[])).status, 200))
}

/// Asks by HTTP/2 until it is `over`.
pub(crate) fn by_http2(to: SocketAddr, over: &AtomicBool) -> Waits {
    let mut client = Http2::connect(to);
    ask_on(over, || client.ask())
}

fn ask_on(over: &AtomicBool, mut ask: impl FnMut()) -> Waits {
    let mut waits = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let asked = Instant::now();
        ask();
        waits.push(asked.elapsed());
        thread::park_timeout(BETWEEN_REQUESTS);
    }
    waits.sort();
    Waits(waits)
}

struct Http2 {
    stream: TcpStream,
    read: Vec<u8>,
    next: u32,
}

impl Http2 {
    fn connect(to: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&greeting(&[])).unwrap();
        Self {
            stream,
            read: Vec::new(),
            next: 1,
        }
    }

    fn ask(&mut self) {
        let id = self.next;
        self.next += 2;
        let request = frame(HEADERS, END_STREAM | END_HEADERS, id, GET);
        self.stream.write_all(&request).unwrap();
        loop {
            let frame = self.frame();
            if frame.kind == HEADERS {
                assert_eq!(frame.payload.first(), Some(&STATUS_200));
            }
            if frame.stream == id && frame.flags & END_STREAM != 0 {
                return;
            }
        }
    }

    fn frame(&mut self) -> Frame {
        loop {
            if let Some(came) = Frame::take(&mut self.read) {
                if came.kind == SETTINGS && came.flags & ACK == 0 {
                    self.stream
                        .write_all(&frame(SETTINGS, ACK, 0, &[]))
                        .unwrap();
                }
                return came;
            }
            let mut piece = [0; 4096];
            let count = self.stream.read(&mut piece).unwrap();
            assert_ne!(count, 0, "the proxy ended the bystander's connection");
            self.read.extend_from_slice(&piece[..count]);
        }
    }
}
