//! What is written down about a request when it is over.

use super::json::Line;
use super::redact;
use super::timestamp::TimestampText;
use crate::vocabulary::Protocol;
use std::time::Duration;

/// The facts of one request. What is none is left out of the line.
///
/// `Authorization` and `Cookie` have no place here, whatever a configuration asks for.
#[derive(Clone, Copy, Debug)]
pub struct AccessRecord<'a> {
    /// When the request was over, since the Unix epoch.
    pub at: Duration,
    /// Name shared by response, log and upstream.
    pub correlation_id: &'a str,
    /// Route taken, if one matched.
    pub route: Option<&'a str>,
    /// Upstream asked, if any.
    pub upstream: Option<&'a str>,
    /// Address of the target asked last, `host:port`.
    pub target: Option<&'a str>,
    /// The client's address, as limits see it.
    pub client_ip: &'a str,
    /// The method, as sent.
    pub method: &'a [u8],
    /// The host asked for, as sent.
    pub host: Option<&'a [u8]>,
    /// Path and query, as sent.
    pub path: &'a [u8],
    /// Status sent, 100–999; 499 when the client left before there was one.
    pub status: u16,
    /// From the first byte of the request to the last of the response.
    pub took: Duration,
    /// Body bytes received from the client.
    pub bytes_in: u64,
    /// Body bytes sent to the client.
    pub bytes_out: u64,
    /// The client's protocol.
    pub protocol: Protocol,
    /// Why it failed: the reason's word.
    pub reason: Option<&'a str>,
    /// What failed: the error type.
    pub error_type: Option<&'a str>,
    /// Attempts on the upstream after the first; left out when 0.
    pub retries: u32,
    /// From the last attempt's start to the head of its response.
    pub upstream_took: Option<Duration>,
    /// The field `User-Agent`, written where [`AccessFormat`] says so.
    pub user_agent: Option<&'a [u8]>,
    /// The field `Referer`, written where [`AccessFormat`] says so.
    pub referer: Option<&'a [u8]>,
}

/// A field that is written only where the configuration asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionalField {
    /// `user_agent`.
    UserAgent,
    /// `referer`, with the same query values redacted as in `path`.
    Referer,
}

/// How access records are written. Part of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessFormat {
    /// Optional fields to write.
    pub fields: Vec<OptionalField>,
    /// Names of query parameters whose values are replaced by `REDACTED`; without case.
    pub redact_query: Vec<String>,
}

impl AccessRecord<'_> {
    /// Appends the record to `batch` as one line.
    pub(crate) fn write(
        &self,
        batch: &mut Vec<u8>,
        clock: &mut TimestampText,
        format: &AccessFormat,
    ) {
        let AccessFormat {
            fields,
            redact_query,
        } = format;
        let mut line = Line(batch);
        line.time("{\"timestamp\":\"", clock, self.at);
        line.text(",\"correlation_id\":\"", self.correlation_id.as_bytes());
        line.optional(",\"route\":\"", self.route);
        line.optional(",\"upstream\":\"", self.upstream);
        line.optional(",\"target\":\"", self.target);
        line.text(",\"client_ip\":\"", self.client_ip.as_bytes());
        line.text(",\"method\":\"", self.method);
        if let Some(host) = self.host {
            line.text(",\"host\":\"", host);
        }
        line.raw(",\"path\":\"");
        redact::push_path(line.0, self.path, redact_query);
        line.number("\",\"status\":", u64::from(self.status));
        line.millis(",\"duration_ms\":", self.took);
        line.number(",\"bytes_in\":", self.bytes_in);
        line.number(",\"bytes_out\":", self.bytes_out);
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
        self.write_optional(&mut line, fields, redact_query);
        line.end();
    }

    fn write_optional(&self, line: &mut Line<'_>, fields: &[OptionalField], redact: &[String]) {
        for field in fields {
            match (field, self.user_agent, self.referer) {
                (OptionalField::UserAgent, Some(agent), _) => {
                    line.text(",\"user_agent\":\"", agent);
                }
                (OptionalField::Referer, _, Some(referer)) => {
                    line.raw(",\"referer\":\"");
                    redact::push_path(line.0, referer, redact);
                    line.raw("\"");
                }
                (OptionalField::UserAgent, None, _) | (OptionalField::Referer, _, None) => {}
            }
        }
    }
}
