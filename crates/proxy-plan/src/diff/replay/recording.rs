//! Recorded requests: lines of an access log, of a recording, or of the same form.

use super::recorded_head::RecordedHead;
use jiff::Timestamp;
use serde::Deserialize;
use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;

/// Recorded requests in the order of their times. Their text is stored, and heads are parsed one by
/// one: a million of them at once would take gigabytes.
#[derive(Debug)]
pub struct Recording {
    text: Vec<u8>,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    /// Time since the first request.
    at: Duration,
    bytes: Range<usize>,
}

/// The parts of a line that its time follows from.
#[derive(Debug, Default, Deserialize)]
struct Times<'a> {
    #[serde(borrow)]
    timestamp: Option<Cow<'a, str>>,
    duration_ms: Option<f64>,
}

impl Recording {
    /// Parses JSON lines; empty ones are skipped. A line without a `timestamp` has the time of the
    /// one before.
    #[must_use]
    pub fn new(text: Vec<u8>) -> Self {
        let mut lines = Vec::new();
        let (mut begin, mut at) = (0, Duration::ZERO);
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let bytes = begin..begin + line.len();
            begin = bytes.end;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let times: Times<'_> = serde_json::from_slice(line).unwrap_or_default();
            at = times.begin().unwrap_or(at);
            lines.push(Line { at, bytes });
        }
        // An access log is in the order in which requests end.
        lines.sort_by_key(|line| line.at);
        let first = lines.first().map(|line| line.at).unwrap_or_default();
        for line in &mut lines {
            line.at = line.at.saturating_sub(first);
        }
        Self { text, lines }
    }

    /// Number of lines, those that are not requests included.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// The requests, parsed lazily; `None` for a line that is not a request.
    pub fn heads(&self) -> impl Iterator<Item = Option<RecordedHead>> {
        self.lines.iter().map(|line| {
            let text = self.text.get(line.bytes.clone())?;
            RecordedHead::from_json(&serde_json::from_slice(text).ok()?, line.at)
        })
    }
}

impl Times<'_> {
    /// The time of a record since the Unix epoch, at its beginning where its duration is known.
    fn begin(&self) -> Option<Duration> {
        let ended: Timestamp = self.timestamp.as_ref()?.parse().ok()?;
        let ended = Duration::try_from(ended.as_duration()).ok()?;
        let took = self.duration_ms;
        let took = took.and_then(|millis| Duration::try_from_secs_f64(millis / 1_000.0).ok());
        Some(ended.saturating_sub(took.unwrap_or_default()))
    }
}
