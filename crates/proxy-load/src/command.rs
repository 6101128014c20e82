//! Commands of the load process and its replies, one line of JSON each.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A command of the load process.
#[derive(Debug, Serialize, Deserialize)]
pub enum Command {
    /// Runs clients and upstream, and measures.
    Run(Box<LoadProfile>),
    /// Runs the upstream only, for this time.
    Respond(Duration),
}

/// The load on a proxy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadProfile {
    /// The proxy's port on loopback.
    pub port: u16,
    /// Protocol of the connections.
    pub protocol: Protocol,
    /// The requests.
    pub request: RequestShape,
    /// Number of concurrent connections.
    pub connections: u32,
    /// Requests in flight on each connection; more than one with HTTP/2 only.
    pub streams: u32,
    /// The time at which the next request is sent.
    pub pacing: Pacing,
    /// Time before the measurement begins.
    pub warm: Duration,
    /// The end of the load.
    pub span: Span,
    /// True if the process polls without sleeping.
    pub spin: bool,
    /// Processes to measure the CPU time and memory of.
    pub watch: Vec<i32>,
    /// True if one exchange is captured.
    pub capture: bool,
    /// True if the server may close a connection between two responses [RFC 9112 §9.3.1]; a client
    /// then ends without a failure if its connection is refused.
    pub may_close: bool,
}

/// The protocol of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// HTTP/1.1 over TCP.
    Plain,
    /// HTTP/1.1 over TLS 1.3.
    Tls,
    /// HTTP/2 over TLS 1.3.
    Http2,
}

/// The requests of a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestShape {
    /// The paths, in rotation.
    pub paths: Vec<String>,
    /// The upstream's response for these paths.
    pub answer: ResponseSize,
    /// Size of the body in bytes; 0 for a GET, otherwise a POST.
    pub body_bytes: usize,
    /// True if requests have a browser's headers.
    pub browser: bool,
}

/// The upstream's response, selected by the last letter of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResponseSize {
    /// 100 bytes; for any other letter.
    Small,
    /// 10 KiB; for `m`.
    Medium,
    /// 1 MiB; for `l`.
    Large,
    /// Any `Content-Length`, for servers other than our upstream.
    Any,
}

/// The time at which the next request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pacing {
    /// After the last response, on the same connection.
    Closed,
    /// At this rate per second, whether or not responses arrive; the time of a late request counts
    /// from when it was due.
    PerSecond(u32),
    /// After the last connection is closed, on a new one.
    Fresh,
    /// Once on each connection, which then stays idle.
    Once,
}

/// The end of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Span {
    /// This time after the warm-up, with a response on every connection.
    Time(Duration),
    /// After this many requests, including those before the measurement.
    Requests(u64),
}

/// The reply to a command.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The result of a load.
    Measured(Box<Sample>),
    /// Its time as an upstream has ended.
    Responded,
    /// The command failed, for this reason.
    Failed(String),
}

/// The result of a load.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Correctly answered requests during the measurement.
    pub answered: u64,
    /// Failed requests since the first connection.
    pub failed: u64,
    /// Description of the first failure.
    pub failure: Option<String>,
    /// Length of the measurement.
    pub time: Duration,
    /// CPU time of the watched processes during the measurement.
    pub cpu: Duration,
    /// Part of that time in which the load generator was idle.
    pub idle: Duration,
    /// Median of the response times.
    pub p50: Duration,
    /// 99th percentile of the response times.
    pub p99: Duration,
    /// 99.9th percentile of the response times.
    pub p999: Duration,
    /// Memory of the watched processes before the first connection, in bytes.
    pub memory_before_bytes: u64,
    /// Their memory at the end, with all connections open, in bytes.
    pub memory_after_bytes: u64,
    /// The captured exchange, if requested.
    pub capture: Option<Capture>,
}

/// One exchange at both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// The response's head at the client; empty for HTTP/2, because heads are compressed.
    pub answer_head: String,
    /// Size of the response's body, in bytes.
    pub answer_body_bytes: usize,
    /// True if the body arrived as the upstream sent it.
    pub answer_body_intact: bool,
    /// The request's head at the upstream.
    pub request_head: String,
    /// Size of the request's body, in bytes.
    pub request_body_bytes: usize,
}

impl LoadProfile {
    /// Small GET requests one after the other on one plaintext connection, without a pause; the
    /// caller sets the end.
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
    /// All sizes except [`Self::Any`].
    pub const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    /// The response for a path.
    #[must_use]
    pub fn for_path(path: &[u8]) -> Self {
        match path.last() {
            Some(b'm') => Self::Medium,
            Some(b'l') => Self::Large,
            _ => Self::Small,
        }
    }

    /// The last letter of paths for this response.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Small | Self::Any => 's',
            Self::Medium => 'm',
            Self::Large => 'l',
        }
    }

    /// Size of the body, in bytes; 0 for [`Self::Any`].
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
            assert_eq!(ResponseSize::for_path(path.as_bytes()), answer);
        }
        assert_eq!(ResponseSize::for_path(b"/"), ResponseSize::Small);
    }
}
