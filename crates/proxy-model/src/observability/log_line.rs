//! Formats of the access log that a configuration makes of fields: `{client_ip} {status}`.

use crate::policies::request_value::name_in_braces;
use std::fmt;

/// The field of a line with the end of the request in the Common Log Format:
/// `14/Nov/2023:22:13:20 +0000`. Not in records in JSON.
pub const COMMON_TIME: &str = "time_common";

/// The fields of a line: those of a record in JSON outside of agents' metadata, and [`COMMON_TIME`].
pub const LOG_FIELDS: [&str; 30] = [
    "timestamp",
    COMMON_TIME,
    "correlation_id",
    "route",
    "upstream",
    "target",
    "client_ip",
    "method",
    "host",
    "path",
    "status",
    "duration_ms",
    "bytes_in",
    "bytes_out",
    "protocol",
    "user_agent",
    "referer",
    "reason",
    "error_type",
    "retries",
    "retry_cause",
    "retry_refused",
    "queue_ms",
    "connect_ms",
    "upstream_ms",
    "cache",
    "trace_id",
    "agent",
    "agent_decision",
    "agent_ms",
];

/// The format of a line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogLine {
    /// The format as written.
    text: Box<str>,
    parts: Vec<LogLinePart>,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LogLinePart {
    /// Text that each line has.
    Text(Box<str>),
    /// A field, of [`LOG_FIELDS`].
    Field(&'static str),
}

impl LogLine {
    /// Parses a format. A word in braces is a field; other text in braces is kept.
    ///
    /// # Errors
    /// A field is unknown, there is none, or the text has control characters.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains(char::is_control) {
            return Err("a line has no control characters".to_owned());
        }
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, from_brace) = rest.split_at(at);
            literal.push_str(before);
            let Some((name, after)) = name_in_braces(from_brace) else {
                literal.push('{');
                rest = from_brace.get(1..).unwrap_or_default();
                continue;
            };
            let field = LOG_FIELDS.into_iter().find(|field| *field == name);
            let field = field.ok_or_else(|| format!("access records have no field `{name}`"))?;
            if !literal.is_empty() {
                parts.push(LogLinePart::Text(std::mem::take(&mut literal).into()));
            }
            parts.push(LogLinePart::Field(field));
            rest = after;
        }
        if parts.is_empty() {
            return Err(
                "it is neither `json`, `combined`, nor a line with fields such as `{client_ip}`"
                    .to_owned(),
            );
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(LogLinePart::Text(literal.into()));
        }
        Ok(Self {
            text: text.into(),
            parts,
        })
    }

    /// Its parts, in order.
    #[must_use]
    pub fn parts(&self) -> &[LogLinePart] {
        &self.parts
    }
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_text_and_fields() {
        let line = LogLine::parse("{client_ip} [{time_common}] {\"{status}\"}").unwrap();
        let text = |text: &str| LogLinePart::Text(text.into());
        let expected = [
            LogLinePart::Field("client_ip"),
            text(" ["),
            LogLinePart::Field(COMMON_TIME),
            text("] {\""),
            LogLinePart::Field("status"),
            text("\"}"),
        ];
        assert_eq!(line.parts(), expected);
        assert_eq!(
            line.to_string(),
            "{client_ip} [{time_common}] {\"{status}\"}"
        );
    }

    #[test]
    fn unknown_fields_and_lines_without_one_are_faults() {
        for (text, part) in [
            ("{statuss}", "no field `statuss`"),
            ("jsn", "neither `json`"),
            ("", "neither `json`"),
            ("{status}\n", "control characters"),
        ] {
            let fault = LogLine::parse(text).unwrap_err();
            assert!(fault.contains(part), "{text}: {fault}");
        }
    }
}
