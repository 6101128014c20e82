//! The error record of a failure.

use super::access::AccessLogHead;
use super::json::Line;
use super::timestamp::TimestampText;
use std::time::Duration;

/// The level of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A limit was reached, or the process recovered from a fault.
    Warn,
    /// An operator has to act.
    Error,
}

/// A failure with all details. `None` is omitted from the line.
#[derive(Clone, Copy, Debug)]
pub struct ErrorRecord<'a> {
    /// Level.
    pub level: Level,
    /// Time of the failure, since the Unix epoch.
    pub at: Duration,
    /// Correlation ID of the response and of the access record.
    pub correlation_id: &'a str,
    /// The error type's name.
    pub error_type: &'a str,
    /// Status of the response.
    pub http_status: u16,
    /// Description, with details that the client does not get.
    pub message: &'a str,
    /// The reason's name.
    pub reason: &'a str,
    /// The upstream, if any.
    pub upstream: Option<&'a str>,
    /// The target of the last attempt, if any.
    pub target: Option<&'a str>,
    /// The matched route, if any.
    pub route: Option<&'a str>,
    /// The client's address, as limits see it.
    pub client_ip: &'a str,
    /// Method, host and path, if they are known.
    pub head: Option<&'a AccessLogHead>,
    /// Time since the beginning of the request.
    pub took: Duration,
    /// The header field that caused the failure, if any.
    pub field: Option<&'a str>,
    /// The setting of the reached limit.
    pub setting: Option<&'a str>,
}

impl Level {
    /// The word in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

impl ErrorRecord<'_> {
    /// Appends the record to `batch` as one line.
    pub(crate) fn write(&self, batch: &mut Vec<u8>, clock: &mut TimestampText) {
        let mut line = Line(batch);
        line.text("{\"level\":\"", self.level.name().as_bytes());
        line.time(",\"timestamp\":\"", clock, self.at);
        line.text(",\"correlation_id\":\"", self.correlation_id.as_bytes());
        line.text(",\"error_type\":\"", self.error_type.as_bytes());
        line.number(",\"http_status\":", u64::from(self.http_status));
        line.text(",\"message\":\"", self.message.as_bytes());
        line.text(",\"reason\":\"", self.reason.as_bytes());
        line.optional(",\"upstream\":\"", self.upstream);
        line.optional(",\"target\":\"", self.target);
        line.optional(",\"route\":\"", self.route);
        line.open(",\"client_ip\":\"", self.client_ip.as_bytes());
        if let Some(head) = self.head {
            line.0.extend_from_slice(head.request());
        }
        line.raw("\"");
        line.millis(",\"duration_ms\":", self.took);
        line.optional(",\"field\":\"", self.field);
        line.optional(",\"setting\":\"", self.setting);
        line.end();
    }
}
