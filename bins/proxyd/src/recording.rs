//! Recorded requests from a file: lines of an access log, or of the same form.

use jiff::Timestamp;
use proxy_plan::diff::replay::RecordedHead;
use serde_json::Value;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

/// The requests of a file in the order of their times.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) heads: Vec<RecordedHead>,
    /// Lines that are no requests.
    pub(crate) skipped: usize,
}

impl Recording {
    /// Reads a file of JSON lines. A line without a `timestamp` has the time of the one before.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn read(file: &Path) -> io::Result<Self> {
        let mut lines = BufReader::new(File::open(file)?);
        let mut recording = Self {
            heads: Vec::new(),
            skipped: 0,
        };
        let mut line = Vec::new();
        let mut at = Duration::ZERO;
        loop {
            line.clear();
            if lines.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let value: Option<Value> = serde_json::from_slice(&line).ok();
            at = value.as_ref().and_then(time).unwrap_or(at);
            match value.and_then(|value| RecordedHead::from_json(&value, at)) {
                Some(head) => recording.heads.push(head),
                None => recording.skipped += 1,
            }
        }
        // An access log is in the order in which requests end.
        recording.heads.sort_by_key(|head| head.at);
        let first = recording.heads.first().map(|head| head.at);
        for head in &mut recording.heads {
            head.at = head.at.saturating_sub(first.unwrap_or_default());
        }
        Ok(recording)
    }
}

/// The time of a record since the Unix epoch, at its beginning where its duration is known.
fn time(record: &Value) -> Option<Duration> {
    let ended: Timestamp = record.get("timestamp")?.as_str()?.parse().ok()?;
    let ended = Duration::try_from(ended.as_duration()).ok()?;
    let took = record.get("duration_ms").and_then(Value::as_f64);
    let took = took.and_then(|millis| Duration::try_from_secs_f64(millis / 1_000.0).ok());
    Some(ended.saturating_sub(took.unwrap_or_default()))
}
