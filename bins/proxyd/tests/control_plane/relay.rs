//! A relay between a node and its control plane, which may manipulate answers.

use proxy_testkit::{Request, Served, Upstream};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

/// Manipulations of answers by the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    Pass,
    /// One byte of every archive is another.
    TamperedArchive,
    /// Another signature on every order.
    OtherSignature,
    /// Every order is replaced by the first one.
    FirstOrder,
    /// Bytes that are not HTTP.
    Garbage,
    /// A body without an end.
    Flood,
    /// No answer.
    Silence,
    /// Heartbeats with an instance are refused, as by a version without the field.
    NoInstances,
}

const MODES: [Mode; 8] = [
    Mode::Pass,
    Mode::TamperedArchive,
    Mode::OtherSignature,
    Mode::FirstOrder,
    Mode::Garbage,
    Mode::Flood,
    Mode::Silence,
    Mode::NoInstances,
];

pub(crate) struct Relay {
    upstream: Upstream,
    mode: Arc<AtomicU8>,
}

impl Relay {
    /// Forwards to the control plane at `url`.
    pub(crate) fn before(url: &str) -> Self {
        let target = url.strip_prefix("http://").unwrap().to_owned();
        let mode = Arc::new(AtomicU8::new(Mode::Pass as u8));
        let (shared, first) = (Arc::clone(&mode), Arc::new(OnceLock::new()));
        let upstream = Upstream::start(move |served| {
            let Some(request) = served.request() else {
                return;
            };
            relay(served, &request, &target, &shared, &first);
        });
        Self { upstream, mode }
    }

    /// Waits until this many requests were forwarded.
    pub(crate) fn until_requests(&self, count: usize) {
        self.upstream.wait_for_requests(count);
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.upstream.address())
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::SeqCst);
    }

    /// Number of forwarded requests.
    pub(crate) fn requests(&self) -> usize {
        self.upstream.requests().len()
    }
}

fn relay(
    served: &mut Served,
    request: &Request,
    target: &str,
    mode: &AtomicU8,
    first: &OnceLock<Vec<u8>>,
) {
    let mode = || MODES[usize::from(mode.load(Ordering::SeqCst))];
    match mode() {
        Mode::Garbage => {
            served.send(b"\x00\xffnothing that could be read\r\n\r\n\r\n");
            return;
        }
        Mode::Flood => {
            served.send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n[");
            let piece = "[".repeat(65_536);
            while served.send(&piece) {}
            return;
        }
        Mode::Silence => {
            drop(served.end());
            return;
        }
        Mode::NoInstances if find(&request.body, b"\"instance\"").is_some() => {
            served.send("HTTP/1.1 422 Unprocessable Content\r\ncontent-length: 0\r\n\r\n");
            return;
        }
        Mode::Pass
        | Mode::TamperedArchive
        | Mode::OtherSignature
        | Mode::FirstOrder
        | Mode::NoInstances => {}
    }
    let Some(mut answer) = forward(request, target) else {
        return;
    };
    let is_order = request.target.contains("/desired") && find(&answer, b"\"signature\"").is_some();
    if is_order {
        first.get_or_init(|| answer.clone());
    }
    // A long poll is answered in the mode at the time of the answer, not of the request.
    match mode() {
        Mode::TamperedArchive if request.target.ends_with("/archive") => {
            if let Some(byte) = answer.last_mut() {
                *byte ^= 1;
            }
        }
        Mode::OtherSignature if is_order => {
            let at = find(&answer, b"\"signature\":\"").unwrap() + 14;
            answer[at] = if answer[at] == b'A' { b'B' } else { b'A' };
        }
        Mode::FirstOrder if request.target.contains("/desired") => {
            if let Some(first) = first.get() {
                answer.clone_from(first);
            }
        }
        Mode::Pass
        | Mode::TamperedArchive
        | Mode::OtherSignature
        | Mode::FirstOrder
        | Mode::Garbage
        | Mode::Flood
        | Mode::NoInstances
        | Mode::Silence => {}
    }
    served.send(answer);
}

/// The answer of the control plane, which closes its connection afterwards.
fn forward(request: &Request, target: &str) -> Option<Vec<u8>> {
    let head_end = find(&request.raw, b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&request.raw[..head_end]).into_owned();
    let mut stream = TcpStream::connect(target).ok()?;
    let message = format!("{head}\r\nconnection: close\r\n\r\n");
    stream.write_all(message.as_bytes()).ok()?;
    stream.write_all(&request.body).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    Some(answer)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}
