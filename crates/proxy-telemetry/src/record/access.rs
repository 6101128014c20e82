//! The access record of a finished request.

mod format;
mod head;
mod line_format;

pub use format::{AccessFormat, LineSyntax, OptionalField};
pub(crate) use head::HeadBufferPool;
pub use head::{AccessLogHead, AccessLogRequest};
pub use line_format::LineFormat;

use super::digits;
use super::escape::MAX_TEXT_BYTES;
use super::escaped_fields::EscapedField;
use super::json::Line;
use super::timestamp::TimestampText;
use crate::vocabulary::Protocol;
use head::CombinedHead;
use std::time::Duration;

/// The data of one request apart from its [`AccessLogHead`]. `None` is omitted from the line.
#[derive(Clone, Debug)]
pub struct AccessRecord<'a> {
    /// End of the request, since the Unix epoch.
    pub at: Duration,
    /// Correlation ID, of `[A-Za-z0-9._-]`; written without escaping.
    pub correlation_id: &'a [u8],
    /// The matched route, if any.
    pub route: Option<EscapedField<'a>>,
    /// Upstream and target of the last attempt, if any.
    pub target: Option<EscapedField<'a>>,
    /// The client's address as text, as limits see it; written without escaping.
    pub client_ip: &'a [u8],
    /// Status sent, 100–999; 499 if the client disconnected before there was one.
    pub status: u16,
    /// From the first byte of the request to the last of the response.
    pub took: Duration,
    /// Body bytes received from the client.
    pub bytes_in: u64,
    /// Body bytes sent to the client.
    pub bytes_out: u64,
    /// The client's protocol.
    pub protocol: Protocol,
    /// The reason's name, for a failed request.
    pub reason: Option<&'a str>,
    /// The error type's name, for a failed request.
    pub error_type: Option<&'a str>,
    /// Attempts after the first; left out if 0.
    pub retries: u32,
    /// Cause of the last retry, as in `retry { on }`.
    pub retry_cause: Option<&'a str>,
    /// True if the upstream's retry budget refused a retry. Left out if false.
    pub is_retry_refused: bool,
    /// Time in the queue of requests, for an in-flight permit.
    pub queued: Option<Duration>,
    /// Time spent on connections to targets, of all attempts: a place in the pool, TCP, TLS.
    pub connecting: Option<Duration>,
    /// From the last attempt's start, with its connection, to the head of its response.
    pub upstream_took: Option<Duration>,
    /// Effect of the cache on the request, on routes that cache; written without escaping.
    pub cache: Option<&'a str>,
    /// The trace that the request belongs to, of `[0-9a-f]`; written without escaping.
    pub trace_id: Option<&'a [u8]>,
    /// Decisions of agents, if any were called.
    pub agent: Option<AgentFields<'a>>,
}

/// Decisions of agents about a request.
#[derive(Clone, Debug)]
pub struct AgentFields<'a> {
    /// The last agent that was called.
    pub agent: &'a str,
    /// The agent's decision, or `failed` or `failed_open`.
    pub decision: &'a str,
    /// Time spent on waiting for all agents.
    pub took: Duration,
    /// Metadata of agents for the log, grouped by agent. Entries beyond 8 KiB are left out.
    pub metadata: Vec<AgentMetadata<'a>>,
}

/// One entry of an agent's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentMetadata<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// Key, as the agent sent it.
    pub key: &'a str,
    /// Value, as the agent sent it.
    pub value: &'a str,
}

impl AgentFields<'_> {
    fn write(&self, line: &mut Line<'_>) {
        let Self {
            agent,
            decision,
            took,
            metadata,
        } = self;
        line.text(",\"agent\":\"", agent.as_bytes());
        line.text(",\"agent_decision\":\"", decision.as_bytes());
        line.millis(",\"agent_ms\":", *took);
        if !metadata.is_empty() {
            write_metadata(metadata, line);
        }
    }
}

fn write_metadata(metadata: &[AgentMetadata<'_>], line: &mut Line<'_>) {
    let mut room = MAX_TEXT_BYTES;
    let mut last_agent = None;
    line.raw(",\"agent_metadata\":{");
    for AgentMetadata { agent, key, value } in metadata {
        let Some(left) = room.checked_sub(agent.len() + key.len() + value.len()) else {
            continue;
        };
        room = left;
        if last_agent == Some(agent) {
            line.raw(",");
        } else {
            let separator = if last_agent.is_some() { "},\"" } else { "\"" };
            line.text(separator, agent.as_bytes());
            line.raw(":{");
            last_agent = Some(agent);
        }
        line.text("\"", key.as_bytes());
        line.text(":\"", value.as_bytes());
    }
    line.raw(if last_agent.is_some() { "}}" } else { "}" });
}

impl AccessRecord<'_> {
    /// Appends the record to `batch` as one line.
    #[inline]
    pub(crate) fn write(
        &self,
        batch: &mut Vec<u8>,
        clock: &mut TimestampText,
        access_head: &AccessLogHead,
    ) {
        if let Some(head) = access_head.combined() {
            return self.write_combined(Line(batch), clock, &head);
        }
        if let Some(format) = access_head.line_format() {
            return self.write_line(batch, clock, access_head, format);
        }
        self.write_json(Line(batch), clock, access_head);
    }

    /// Writes a line in a format of the configuration.
    #[cold]
    fn write_line(
        &self,
        batch: &mut Vec<u8>,
        clock: &mut TimestampText,
        access_head: &AccessLogHead,
        format: &LineFormat,
    ) {
        let start = batch.len();
        self.write_json(Line(batch), clock, access_head);
        format.replace(batch, start, clock, self.at);
    }

    #[inline]
    fn write_json(
        &self,
        mut line: Line<'_>,
        clock: &mut TimestampText,
        access_head: &AccessLogHead,
    ) {
        line.raw("{\"timestamp\":\"");
        clock.push(line.0, self.at);
        line.plain("\",\"correlation_id\":\"", self.correlation_id);
        if let Some(EscapedField(route)) = self.route {
            line.0.extend_from_slice(route);
        }
        if let Some(EscapedField(target)) = self.target {
            line.0.extend_from_slice(target);
        }
        line.plain("\",\"client_ip\":\"", self.client_ip);
        line.0.extend_from_slice(access_head.usual());
        digits::push(line.0, u64::from(self.status));
        line.millis(",\"duration_ms\":", self.took);
        // Most requests have no body.
        if self.bytes_in == 0 {
            line.number(",\"bytes_in\":0,\"bytes_out\":", self.bytes_out);
        } else {
            line.number(",\"bytes_in\":", self.bytes_in);
            line.number(",\"bytes_out\":", self.bytes_out);
        }
        line.raw(match self.protocol {
            Protocol::Http10 => ",\"protocol\":\"HTTP/1.0\"",
            Protocol::Http11 => ",\"protocol\":\"HTTP/1.1\"",
            Protocol::Http2 => ",\"protocol\":\"HTTP/2\"",
            Protocol::Http3 => ",\"protocol\":\"HTTP/3\"",
            Protocol::Tcp => ",\"protocol\":\"TCP\"",
        });
        line.optional(",\"reason\":\"", self.reason);
        line.optional(",\"error_type\":\"", self.error_type);
        if self.retries > 0 {
            line.number(",\"retries\":", u64::from(self.retries));
        }
        line.optional(",\"retry_cause\":\"", self.retry_cause);
        if self.is_retry_refused {
            line.raw(",\"retry_refused\":\"budget\"");
        }
        if let Some(took) = self.queued {
            line.millis(",\"queue_ms\":", took);
        }
        if let Some(took) = self.connecting {
            line.millis(",\"connect_ms\":", took);
        }
        if let Some(took) = self.upstream_took {
            line.millis(",\"upstream_ms\":", took);
        }
        if let Some(cache) = self.cache {
            line.plain(",\"cache\":\"", cache.as_bytes());
            line.raw("\"");
        }
        if let Some(id) = self.trace_id {
            line.plain(",\"trace_id\":\"", id);
            line.raw("\"");
        }
        if let Some(agent) = &self.agent {
            agent.write(&mut line);
        }
        line.0.extend_from_slice(access_head.optional());
        line.end();
    }

    /// Writes a line of the Combined Log Format: the client, two names that are unknown, the end of
    /// the request, its first line, the status, the size of the response's body, `Referer` and
    /// `User-Agent`.
    #[cold]
    fn write_combined(
        &self,
        mut line: Line<'_>,
        clock: &mut TimestampText,
        head: &CombinedHead<'_>,
    ) {
        line.plain("", self.client_ip);
        line.raw(" - - [");
        clock.push_common(line.0, self.at);
        line.raw("] ");
        line.0.extend_from_slice(head.request);
        line.raw(match self.protocol {
            Protocol::Http10 => " HTTP/1.0\" ",
            Protocol::Http11 => " HTTP/1.1\" ",
            Protocol::Http2 => " HTTP/2.0\" ",
            Protocol::Http3 => " HTTP/3.0\" ",
            Protocol::Tcp => " TCP\" ",
        });
        digits::push(line.0, u64::from(self.status));
        line.number(" ", self.bytes_out);
        line.0.extend_from_slice(head.fields);
        line.raw("\n");
    }
}
