//! A request of a sampled trace, with its attempts at targets, for export as spans.

use super::redact;
use crate::vocabulary::{Protocol, SpanId, TraceId};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Maximum size of an attribute's text, in bytes; the rest is cut.
const MAX_ATTRIBUTE_BYTES: usize = 1_024;

/// The span of a request, with the spans of its attempts. All times are since 1970.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestSpan {
    /// Trace that the request belongs to.
    pub trace_id: TraceId,
    /// Identifier of this span.
    pub span_id: SpanId,
    /// The span that sent the request; `None` if the trace begins here.
    pub parent_id: Option<SpanId>,
    /// Beginning of the request.
    pub started: Duration,
    /// End of the response.
    pub ended: Duration,
    /// Method, as sent.
    pub method: Box<str>,
    /// True if the client's connection has TLS.
    pub is_tls: bool,
    /// Path of the target, without the query.
    pub path: Box<str>,
    /// Query of the target, redacted.
    pub query: Option<Box<str>>,
    /// Host and port as sent by the client.
    pub authority: Option<Box<str>>,
    /// `User-Agent`.
    pub user_agent: Option<Box<str>>,
    /// The client's protocol.
    pub protocol: Protocol,
    /// The client, behind trusted proxies.
    pub client_ip: IpAddr,
    /// The peer of the connection.
    pub peer_ip: IpAddr,
    /// The ID in logs and in the response.
    pub correlation_id: Box<str>,
    /// The route's ID; `None` if no route matched.
    pub route: Option<Arc<str>>,
    /// The last upstream, or the route's.
    pub upstream: Option<Box<str>>,
    /// Status of the response; `None` if there was none.
    pub status: Option<u16>,
    /// The reason's name, for a failed request.
    pub reason: Option<&'static str>,
    /// True if the failure is not the client's.
    pub is_error: bool,
    /// Body bytes from the client.
    pub bytes_in: u64,
    /// Body bytes to the client.
    pub bytes_out: u64,
    /// Time in the queue for a place among the requests in flight.
    pub queued: Option<Duration>,
    /// Time spent on connections to targets, of all attempts.
    pub connecting: Option<Duration>,
    /// From the last attempt's start to the head of its response.
    pub upstream_took: Option<Duration>,
    /// Attempts at targets, in order.
    pub attempts: Vec<AttemptSpan>,
}

/// The span of an attempt at a target.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptSpan {
    /// ID of the attempt, which the target gets as parent.
    pub span_id: SpanId,
    /// Beginning of the attempt, including the connection.
    pub started: Duration,
    /// End of the attempt, by the clock of `started`.
    pub ended: Duration,
    /// Name of the upstream.
    pub upstream: Box<str>,
    /// Address of the target, `host:port`.
    pub target: Box<str>,
    /// Status of the target's response; `None` without one.
    pub status: Option<u16>,
    /// Cause of the failure.
    pub error: Option<&'static str>,
}

impl RequestSpan {
    /// Number of spans, including attempts.
    pub fn spans(&self) -> usize {
        1 + self.attempts.len()
    }

    /// Time from the request's beginning to its response's end.
    pub fn took(&self) -> Duration {
        self.ended.saturating_sub(self.started)
    }

    /// `text` as the value of an attribute: at most 1 KiB, with other bytes than UTF-8 replaced.
    pub fn attribute(text: &[u8]) -> Box<str> {
        let cut = text.get(..MAX_ATTRIBUTE_BYTES).unwrap_or(text);
        String::from_utf8_lossy(cut).into()
    }

    /// Path and query of a request's target, with the query values of `names` redacted.
    pub fn path_and_query(target: &[u8], names: &[String]) -> (Box<str>, Option<Box<str>>) {
        let target = redact::redacted(target, names);
        let mut parts = target.splitn(2, |byte| *byte == b'?');
        let path = Self::attribute(parts.next().unwrap_or_default());
        (path, parts.next().map(Self::attribute))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_split_and_redacted() {
        let names = ["token".to_owned()];
        let parts = |target: &str| {
            let (path, query) = RequestSpan::path_and_query(target.as_bytes(), &names);
            (path.into_string(), query.map(str::into_string))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(parts("/a"), ("/a".to_owned(), None));
        assert_eq!(parts("/a?"), ("/a".to_owned(), some("")));
        assert_eq!(
            parts("/a?b=\"&TOKEN=s3cret&c?d"),
            ("/a".to_owned(), some("b=\"&TOKEN=REDACTED&c?d"))
        );
        let (path, _) = RequestSpan::path_and_query(&[b'a'; 5_000], &names);
        assert_eq!(path.len(), MAX_ATTRIBUTE_BYTES);
    }
}
