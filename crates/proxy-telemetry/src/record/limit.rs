//! The record of a reached limit.

use super::error::Level;
use super::json::Line;
use super::timestamp::TimestampText;
use proxy_errors::LimitType;
use std::net::IpAddr;
use std::time::Duration;

/// A limit that a request or connection reached.
#[derive(Clone, Copy, Debug)]
pub struct LimitRecord<'a> {
    /// Time of the event, since the Unix epoch.
    pub at: Duration,
    /// Description.
    pub message: &'a str,
    /// Number of records of one limit and one client that were not logged, up to and including this
    /// record; 0 for a single record.
    pub repeated: u64,
    /// Type of the limit; `None` for the memory limit.
    pub limit_type: Option<LimitType>,
    /// Configured maximum.
    pub limit: u64,
    /// The value that exceeded it.
    pub actual: u64,
    /// The client's address, as limits see it.
    pub client_ip: IpAddr,
    /// ID of the request's trace, or else its correlation ID; `None` for a connection without one.
    pub trace_id: Option<&'a str>,
    /// Correlation ID of the request; `None` in a summary of several.
    pub correlation_id: Option<&'a str>,
    /// The setting of the limit; `None` for a fixed limit.
    pub setting: Option<&'static str>,
}

impl LimitRecord<'_> {
    /// Appends the record to `batch` as one line.
    pub(crate) fn write(&self, batch: &mut Vec<u8>, clock: &mut TimestampText) {
        let mut line = Line(batch);
        line.text("{\"level\":\"", Level::Warn.name().as_bytes());
        line.time(",\"timestamp\":\"", clock, self.at);
        line.open(",\"message\":\"", self.message.as_bytes());
        line.repetitions(self.repeated);
        line.optional(",\"limit_type\":\"", self.limit_type.map(LimitType::as_str));
        line.number(",\"limit\":", self.limit);
        line.number(",\"actual\":", self.actual);
        line.text(",\"client_ip\":\"", self.client_ip.to_string().as_bytes());
        line.optional(",\"trace_id\":\"", self.trace_id);
        line.optional(",\"correlation_id\":\"", self.correlation_id);
        line.optional(",\"setting\":\"", self.setting);
        line.end();
    }
}
