//! A well-behaved client that measures response times.
#![expect(clippy::disallowed_methods, reason = "tests measure")]

use crate::attacks::GET;
use crate::cpu_time::process_time;
use crate::frames::{FrameEvent, Frames, HEADERS, WHOLE, frame};
use proxy_testkit::{Proxyd, RawClient, get};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BETWEEN_REQUESTS: Duration = Duration::from_millis(5);

/// First byte of the head of a 200 response. [RFC 7541 §6.1]
const STATUS_200: u8 = 0x88;

/// Response times of one client.
#[derive(Debug)]
pub(crate) struct Waits {
    /// Response times, sorted.
    times: Vec<Duration>,
    /// CPU time of the proxy during each request, sorted.
    work: Vec<Duration>,
}

/// Number of answered requests, and whether to send further ones.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    pub(crate) answered: AtomicUsize,
    pub(crate) over: AtomicBool,
}

impl Waits {
    pub(crate) fn count(&self) -> usize {
        self.times.len()
    }

    /// Returns the 99th percentile of response times.
    pub(crate) fn p99(&self) -> Duration {
        p99(&self.times)
    }

    /// Returns the 99th percentile of the proxy's CPU time during a request. For a proxy with one
    /// worker on an idle machine, it is about the response time.
    pub(crate) fn work_p99(&self) -> Duration {
        p99(&self.work)
    }
}

fn p99(sorted: &[Duration]) -> Duration {
    let at = sorted.len() * 99 / 100;
    sorted.get(at).copied().unwrap_or(Duration::MAX)
}

/// Sends HTTP/1.1 requests until the test ends.
pub(crate) fn by_http1(to: &Proxyd, visits: &Visits) -> Waits {
    let mut client = RawClient::connect(to.address());
    request_until(to, visits, || {
        assert_eq!(client.ask(get("/", &[])).status, 200);
    })
}

/// Sends HTTP/2 requests until the test ends.
pub(crate) fn by_http2(to: &Proxyd, visits: &Visits) -> Waits {
    let mut client = Http2::connect(to.address());
    request_until(to, visits, || client.ask())
}

fn request_until(to: &Proxyd, visits: &Visits, mut ask: impl FnMut()) -> Waits {
    let process = to.id().to_string();
    let (mut times, mut work) = (Vec::new(), Vec::new());
    while !visits.over.load(Ordering::Relaxed) {
        let (asked, before) = (Instant::now(), process_time(&process));
        ask();
        times.push(asked.elapsed());
        work.push(process_time(&process).saturating_sub(before));
        visits.answered.fetch_add(1, Ordering::Relaxed);
        thread::park_timeout(BETWEEN_REQUESTS);
    }
    times.sort();
    work.sort();
    Waits { times, work }
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
