//! A well-behaved client that measures its waiting times.
#![expect(clippy::disallowed_methods, reason = "tests measure")]

use crate::attacks::GET;
use crate::frames::{FrameEvent, Frames, HEADERS, WHOLE, frame};
use proxy_testkit::{RawClient, get};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BETWEEN_REQUESTS: Duration = Duration::from_millis(5);

/// First byte of the head of a 200 response. [RFC 7541 §6.1]
const STATUS_200: u8 = 0x88;

/// Response times in ascending order.
#[derive(Debug)]
pub(crate) struct Waits(Vec<Duration>);

impl Waits {
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// A percentile of the response times.
    pub(crate) fn percentile(&self, of_hundred: usize) -> Duration {
        let at = self.0.len() * of_hundred / 100;
        self.0.get(at).copied().unwrap_or(Duration::MAX)
    }
}

/// Sends HTTP/1.1 requests until it is `over`.
pub(crate) fn by_http1(to: SocketAddr, over: &AtomicBool) -> Waits {
    let mut client = RawClient::connect(to);
    request_until(over, || assert_eq!(client.ask(get("/", &[])).status, 200))
}

/// Sends HTTP/2 requests until it is `over`.
pub(crate) fn by_http2(to: SocketAddr, over: &AtomicBool) -> Waits {
    let mut client = Http2::connect(to);
    request_until(over, || client.ask())
}

fn request_until(over: &AtomicBool, mut ask: impl FnMut()) -> Waits {
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
    frames: Frames,
    next: u32,
}

impl Http2 {
    fn connect(to: SocketAddr) -> Self {
        Self {
            frames: Frames::begin(to, &[]),
            next: 1,
        }
    }

    fn ask(&mut self) {
        let id = self.next;
        self.next += 2;
        self.frames.send(&frame(HEADERS, WHOLE, id, GET));
        loop {
            let FrameEvent::Frame(frame) = self.frames.next() else {
                panic!("the proxy leaves the bystander alone");
            };
            if frame.kind == HEADERS {
                assert_eq!(frame.payload.first(), Some(&STATUS_200));
            }
            if frame.stream == id && frame.ends_stream() {
                return;
            }
        }
    }
}
