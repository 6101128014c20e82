//! What the load process is told to do, and what it tells back: a line of JSON each.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One task of the load process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Be the proxy's clients and its upstream at once, and measure.
    Drive(Box<Drive>),
    /// Be an upstream only, for this long.
    Respond(Duration),
}

/// How a proxy is driven.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Drive {
    /// The proxy's port on loopback.
    pub(super) port: u16,
    /// What carries the requests.
    pub(super) carrier: Carrier,
    /// What is asked.
    pub(super) asking: Asking,
    /// How many connections are open at once.
    pub(super) connections: u32,
    /// Requests in flight on each connection; more than one with HTTP/2 only.
    pub(super) streams: u32,
    /// When the next request is made.
    pub(super) rhythm: Rhythm,
    /// How long requests are made before anything is measured.
    pub(super) warm: Duration,
    /// When it ends.
    pub(super) span: Span,
    /// Whether the process looks for work without ever sleeping.
    pub(super) spin: bool,
    /// The processes whose CPU time and memory are read.
    pub(super) watch: Vec<i32>,
    /// Whether one answer, and what the upstream saw of its request, are kept.
    pub(super) capture: bool,
}

/// What carries requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Carrier {
    /// HTTP/1.1 over TCP.
    Plain,
    /// HTTP/1.1 over TLS 1.3.
    Tls,
    /// HTTP/2 over TLS 1.3.
    Http2,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asking {
    /// The paths, asked for in turn.
    pub(super) paths: Vec<String>,
    /// The upstream's answer that they lead to.
    pub(super) answer: Answer,
    /// Bytes of body; 0 makes it a GET, anything else a POST.
    pub(super) body_bytes: usize,
    /// Whether the request has a browser's headers.
    pub(super) browser: bool,
}

/// What the upstream answers. The last letter of the path names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer {
    /// 100 bytes, for a path that ends in anything else.
    Small,
    /// 10 KiB, for a path that ends in `m`.
    Medium,
    /// 1 MiB, for a path that ends in `l`.
    Large,
}

/// When the next request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Rhythm {
    /// As soon as the answer to the last one is there, on the same connection.
    Closed,
    /// As often as this a second, whether or not answers come; late ones count from when they
    /// were due.
    PerSecond(u32),
    /// As soon as the last connection is closed, on a new one.
    Fresh,
    /// Once on each connection, which then rests.
    Once,
}

/// When a drive ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Span {
    /// This long after it was warm and all connections had an answer.
    Time(Duration),
    /// After this many requests, the first ones too.
    Requests(u64),
}

/// What the load process answers to an order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// A drive came to its end.
    Driven(Box<Sample>),
    /// The time as an upstream is over.
    Responded,
    /// It could not be done, for this reason.
    Failed(String),
}

/// What one drive showed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sample {
    /// Requests answered as they should be, while measuring.
    pub(super) answered: u64,
    /// Requests that were not, from the first connection on.
    pub(super) failed: u64,
    /// The first failure, in words.
    pub(super) failure: Option<String>,
    /// How long was measured.
    pub(super) time: Duration,
    /// CPU time of the watched processes while measuring.
    pub(super) cpu: Duration,
    /// For how much of that time the load found nothing to do.
    pub(super) idle: Duration,
    /// The time within which half of the answers came.
    pub(super) p50: Duration,
    /// The time within which 99 % came.
    pub(super) p99: Duration,
    /// The time within which 99.9 % came.
    pub(super) p999: Duration,
    /// Memory of the watched processes before the first connection, in bytes.
    pub(super) memory_before_bytes: u64,
    /// Their memory at the end, with all connections open.
    pub(super) memory_after_bytes: u64,
    /// Kept when the order says so.
    pub(super) capture: Option<Capture>,
}

/// One exchange, as both ends saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Capture {
    /// The head of the answer as the client saw it; empty with HTTP/2, whose heads are packed.
    pub(super) answer_head: String,
    /// The bytes of its body.
    pub(super) answer_body_bytes: usize,
    /// Whether the body was what the upstream sent.
    pub(super) answer_body_intact: bool,
    /// The head of the request as the upstream saw it.
    pub(super) request_head: String,
    /// The bytes of its body.
    pub(super) request_body_bytes: usize,
}

impl Answer {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    /// The answer that a path asks for.
    pub(super) fn of(path: &[u8]) -> Self {
        match path.last() {
            Some(b'm') => Self::Medium,
            Some(b'l') => Self::Large,
            _ => Self::Small,
        }
    }

    /// The last letter of paths that ask for it.
    pub(super) fn letter(self) -> char {
        match self {
            Self::Small => 's',
            Self::Medium => 'm',
            Self::Large => 'l',
        }
    }

    /// The bytes of its body.
    pub(super) fn body_bytes(self) -> usize {
        match self {
            Self::Small => 100,
            Self::Medium => 10 << 10,
            Self::Large => 1 << 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_ends_in_the_letter_of_its_answer() {
        for answer in Answer::ALL {
            let path = format!("/r17/{}", answer.letter());
            assert_eq!(Answer::of(path.as_bytes()), answer);
        }
        assert_eq!(Answer::of(b"/"), Answer::Small);
    }
}
