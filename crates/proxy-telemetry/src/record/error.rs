//! What is written down when something failed.

use super::json::Line;
use super::timestamp::TimestampText;
use std::time::Duration;

/// How much a record matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A limit was met, or a fault mended itself.
    Warn,
    /// An operator has to act.
    Error,
}

/// A failure, told in full. What is none is left out of the line.
#[derive(Clone, Copy, Debug)]
pub struct ErrorRecord<'a> {
    /// How much it matters.
    pub level: Level,
    /// When it happened, since the Unix epoch.
    pub at: Duration,
    /// Name shared by response, log and upstream.
    pub correlation_id: &'a str,
    /// What failed: the error type.
    pub error_type: &'a str,
    /// The status the client was answered with.
    pub http_status: u16,
    /// What happened, with the details the client was not told.
    pub message: &'a str,
    /// Why it failed: the reason's word.
    pub reason: &'a str,
    /// Upstream asked, if any.
    pub upstream: Option<&'a str>,
    /// Route taken, if one matched.
    pub route: Option<&'a str>,
    /// The client's address, as limits see it.
    pub client_ip: &'a str,
    /// How long the request had been under way.
    pub took: Duration,
    /// The header field that is to blame, if one is.
    pub field: Option<&'a str>,
    /// The setting that a limit was met of.
    pub setting: Option<&'a str>,
}

impl Level {
    /// The word as it stands in records.
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
        line.optional(",\"route\":\"", self.route);
        line.text(",\"client_ip\":\"", self.client_ip.as_bytes());
        line.millis(",\"duration_ms\":", self.took);
        line.optional(",\"field\":\"", self.field);
        line.optional(",\"setting\":\"", self.setting);
        line.end();
    }
}
