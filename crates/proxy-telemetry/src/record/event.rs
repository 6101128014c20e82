//! The record of an event of the process: a start, a reload, a fault outside of requests.

use super::escape;
use super::json::Line;
use super::timestamp::TimestampText;
use std::fmt::Display;
use std::io::Write;
use std::time::Duration;

/// An event of the process.
#[derive(Clone, Copy, Debug)]
pub struct EventRecord<'a> {
    /// Level: `ERROR`, `WARN`, `INFO`, `DEBUG` or `TRACE`.
    pub level: &'a str,
    /// Time of the event, since the Unix epoch.
    pub at: Duration,
    /// Description.
    pub message: &'a str,
    /// Number of repetitions that were not logged; 0 for a single event.
    pub repeated: u64,
    /// Further fields.
    pub fields: &'a EventFields,
}

/// Names and values, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventFields(Vec<u8>);

impl EventFields {
    /// Adds a text.
    pub fn text(&mut self, name: &str, value: &str) {
        self.key(name);
        self.0.push(b'"');
        escape::push(&mut self.0, value.as_bytes());
        self.0.push(b'"');
    }

    /// Adds a number or a Boolean, in its display form.
    pub fn plain(&mut self, name: &str, value: impl Display) {
        self.key(name);
        // Writing to a vector cannot fail.
        write!(self.0, "{value}").unwrap_or_default();
    }

    fn key(&mut self, name: &str) {
        self.0.extend_from_slice(b",\"");
        escape::push(&mut self.0, name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }
}

impl EventRecord<'_> {
    /// The record as one line.
    pub fn line(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(160 + self.fields.0.len());
        self.write(&mut line, &mut TimestampText::default());
        line
    }

    /// Appends the record to `batch` as one line.
    pub(crate) fn write(&self, batch: &mut Vec<u8>, clock: &mut TimestampText) {
        let mut line = Line(batch);
        line.text("{\"level\":\"", self.level.as_bytes());
        line.time(",\"timestamp\":\"", clock, self.at);
        line.open(",\"message\":\"", self.message.as_bytes());
        line.repetitions(self.repeated);
        line.0.extend_from_slice(&self.fields.0);
        line.end();
    }
}
