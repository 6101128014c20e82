//! The commands of the load process and its replies: a line of JSON each.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One task of the load process.
#[derive(Debug, Serialize, Deserialize)]
pub enum Command {
    /// Be the proxy's clients and its upstream at once, and measure.
    Run(Box<LoadProfile>),
    /// Be an upstream only, for this long.
    Respond(Duration),
}

/// How a proxy is driven.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadProfile {
    /// The proxy's port on loopback.
    pub port: u16,
    /// What carries the requests.
    pub protocol: Protocol,
    /// What is asked.
    pub request: RequestShape,
    /// How many connections are open at once.
    pub connections: u32,
    /// Requests in flight on each connection; more than one with HTTP/2 only.
    pub streams: u32,
    /// When the next request is made.
    pub pacing: Pacing,
    /// How long requests are made before anything is measured.
    pub warm: Duration,
    /// When it ends.
    pub span: Span,
    /// Whether the process looks for work without ever sleeping.
    pub spin: bool,
    /// The processes whose CPU time and memory are read.
    pub watch: Vec<i32>,
    /// Whether one answer, and what the upstream saw of its request, are kept.
    pub capture: bool,
    /// Whether the server may close a connection between two answers [RFC 9112 §9.3.1]; a client with a
    /// refused connection then ends without a failure.
    pub may_close: bool,
}

/// What carries requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// HTTP/1.1 over TCP.
    Plain,
    /// HTTP/1.1 over TLS 1.3.
    Tls,
    /// HTTP/2 over TLS 1.3.
    Http2,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestShape {
    /// The paths, asked for in turn.
    pub paths: Vec<String>,
    /// The upstream's answer that they lead to.
    pub answer: ResponseSize,
    /// Bytes of body; 0 makes it a GET, anything else a POST.
    pub body_bytes: usize,
    /// Whether the request has a browser's headers.
    pub browser: bool,
}

/// What the upstream answers. The last letter of the path names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResponseSize {
    /// 100 bytes, for a path that ends in anything else.
    Small,
    /// 10 KiB, for a path that ends in `m`.
    Medium,
    /// 1 MiB, for a path that ends in `l`.
    Large,
    /// Any number of bytes, told by `Content-Length`: for servers other than our upstream.
    Any,
}

/// When the next request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pacing {
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

/// When a profile ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Span {
    /// This long after it was warm and all connections had an answer.
    Time(Duration),
    /// After this many requests, the first ones too.
    Requests(u64),
}

/// What the load process answers to an order.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// A profile came to its end.
    Measured(Box<Sample>),
    /// The time as an upstream is over.
    Responded,
    /// It could not be done, for this reason.
    Failed(String),
}

/// What one profile showed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Requests answered as they should be, while measuring.
    pub answered: u64,
    /// Requests that were not, from the first connection on.
    pub failed: u64,
    /// The first failure, in words.
    pub failure: Option<String>,
    /// How long was measured.
    pub time: Duration,
    /// CPU time of the watched processes while measuring.
    pub cpu: Duration,
    /// For how much of that time the load found nothing to do.
    pub idle: Duration,
    /// The time within which half of the answers came.
    pub p50: Duration,
    /// The time within which 99 % came.
    pub p99: Duration,
    /// The time within which 99.9 % came.
    pub p999: Duration,
    /// Memory of the watched processes before the first connection, in bytes.
    pub memory_before_bytes: u64,
    /// Their memory at the end, with all connections open.
    pub memory_after_bytes: u64,
    /// Kept when the order says so.
    pub capture: Option<Capture>,
}

/// One exchange, as both ends saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// The head of the answer as the client saw it; empty with HTTP/2, whose heads are packed.
    pub answer_head: String,
    /// The bytes of its body.
    pub answer_body_bytes: usize,
    /// Whether the body was what the upstream sent.
    pub answer_body_intact: bool,
    /// The head of the request as the upstream saw it.
    pub request_head: String,
    /// The bytes of its body.
    pub request_body_bytes: usize,
}

impl LoadProfile {
    /// One small GET of this path after the other over one plain connection, without a pause; it still wants
    /// its end.
    #[must_use]
    pub fn get(port: u16, paths: Vec<String>, answer: ResponseSize) -> Self {
        Self {
            port,
            protocol: Protocol::Plain,
            request: RequestShape {
                paths,
                answer,
                body_bytes: 0,
                browser: false,
            },
            connections: 1,
            streams: 1,
            pacing: Pacing::Closed,
            warm: Duration::ZERO,
            span: Span::Requests(1),
            spin: true,
            watch: Vec::new(),
            capture: false,
            may_close: false,
        }
    }
}

impl ResponseSize {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    /// The answer that a path asks for.
    #[must_use]
    pub fn of(path: &[u8]) -> Self {
        match path.last() {
            Some(b'm') => Self::Medium,
            Some(b'l') => Self::Large,
            _ => Self::Small,
        }
    }

    /// The last letter of paths that ask for it.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Small | Self::Any => 's',
            Self::Medium => 'm',
            Self::Large => 'l',
        }
    }

    /// The bytes of its body; 0 for any.
    #[must_use]
    pub fn body_bytes(self) -> usize {
        match self {
            Self::Any => 0,
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
        for answer in ResponseSize::ALL {
            let path = format!("/r17/{}", answer.letter());
            assert_eq!(ResponseSize::of(path.as_bytes()), answer);
        }
        assert_eq!(ResponseSize::of(b"/"), ResponseSize::Small);
    }
}
