//! The access record of a finished request.

use super::access_log_head::AccessLogHead;
use super::digits;
use super::escaped_fields::EscapedField;
use super::json::Line;
use super::timestamp::TimestampText;
use crate::vocabulary::Protocol;
use std::time::Duration;

/// The data of one request apart from its [`AccessLogHead`]. `None` is left out of the line.
#[derive(Clone, Copy, Debug)]
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
    /// From the last attempt's start to the head of its response.
    pub upstream_took: Option<Duration>,
}

/// A field that is written only if the configuration requests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionalField {
    /// `user_agent`.
    UserAgent,
    /// `referer`, with the same query values redacted as in `path`.
    Referer,
}

/// The format of access records. Part of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessFormat {
    /// Optional fields to write.
    pub fields: Vec<OptionalField>,
    /// Names of query parameters with values to be replaced by `REDACTED`, ignoring case.
    pub redact_query: Vec<String>,
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
        let mut line = Line(batch);
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
        });
        line.optional(",\"reason\":\"", self.reason);
        line.optional(",\"error_type\":\"", self.error_type);
        if self.retries > 0 {
            line.number(",\"retries\":", u64::from(self.retries));
        }
        if let Some(took) = self.upstream_took {
            line.millis(",\"upstream_ms\":", took);
        }
        line.0.extend_from_slice(access_head.optional());
        line.end();
    }
}
