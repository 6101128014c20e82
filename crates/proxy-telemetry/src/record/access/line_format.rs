//! Lines of the access log in a format of the configuration, made of a record in JSON.

use crate::record::timestamp::TimestampText;
use std::time::Duration;

/// Text of a field that the record lacks, as in the Common Log Format.
const ABSENT: &[u8] = b"-";

/// The format of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineFormat {
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Text(Box<str>),
    /// A key of the record.
    Field(&'static str),
    CommonTime,
}

impl LineFormat {
    /// Appends text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.with(Segment::Text(text.into()))
    }

    /// Appends the value of a record's field; `-` where a record lacks it. A quote within a value
    /// has a backslash before it.
    #[must_use]
    pub fn field(self, key: &'static str) -> Self {
        self.with(Segment::Field(key))
    }

    /// Appends the end of the request in the Common Log Format.
    #[must_use]
    pub fn common_time(self) -> Self {
        self.with(Segment::CommonTime)
    }

    fn with(mut self, segment: Segment) -> Self {
        self.segments.push(segment);
        self
    }

    /// Replaces the record in JSON from `start` on by a line.
    pub(super) fn replace(
        &self,
        batch: &mut Vec<u8>,
        start: usize,
        clock: &mut TimestampText,
        at: Duration,
    ) {
        let record = batch.split_off(start);
        for segment in &self.segments {
            match segment {
                Segment::Text(text) => batch.extend_from_slice(text.as_bytes()),
                Segment::Field(key) => {
                    let mut fields = RecordFields::new(&record);
                    let value = fields.find(|(own, _)| *own == key.as_bytes());
                    batch.extend_from_slice(value.map_or(ABSENT, |(_, value)| value));
                }
                Segment::CommonTime => clock.push_common(batch, at),
            }
        }
        batch.push(b'\n');
    }
}

/// Keys and values of a record; strings without their quotes, still escaped. Objects are left out.
struct RecordFields<'a> {
    rest: &'a [u8],
}

impl<'a> RecordFields<'a> {
    fn new(record: &'a [u8]) -> Self {
        let rest = record.strip_prefix(b"{").unwrap_or_default();
        Self { rest }
    }

    fn step(&mut self) -> Option<(&'a [u8], Option<&'a [u8]>)> {
        let rest = self.rest.strip_prefix(b",").unwrap_or(self.rest);
        let (key, rest) = string(rest.strip_prefix(b"\"")?)?;
        let rest = rest.strip_prefix(b":")?;
        if let Some(rest) = rest.strip_prefix(b"{") {
            self.rest = behind_object(rest)?;
            return Some((key, None));
        }
        if let Some(rest) = rest.strip_prefix(b"\"") {
            let (value, rest) = string(rest)?;
            self.rest = rest;
            return Some((key, Some(value)));
        }
        let end = rest.iter().position(|byte| matches!(byte, b',' | b'}'))?;
        let (value, rest) = rest.split_at_checked(end)?;
        self.rest = rest;
        Some((key, Some(value)))
    }
}

impl<'a> Iterator for RecordFields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let (key, Some(value)) = self.step()? {
                return Some((key, value));
            }
        }
    }
}

/// Splits behind the quote that ends a string.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut is_escaped = false;
    let end = text.iter().position(|byte| match (is_escaped, byte) {
        (true, _) => {
            is_escaped = false;
            false
        }
        (false, b'\\') => {
            is_escaped = true;
            false
        }
        (false, byte) => *byte == b'"',
    })?;
    Some((text.get(..end)?, text.get(end + 1..)?))
}

/// The text behind an object, without its opening brace.
fn behind_object(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    let mut depth = 1_usize;
    while depth > 0 {
        let (first, after) = rest.split_first()?;
        rest = after;
        match first {
            b'"' => rest = string(rest)?.1,
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(format: &LineFormat, record: &str) -> String {
        let mut batch = b"before\n".to_vec();
        let start = batch.len();
        batch.extend_from_slice(record.as_bytes());
        let at = Duration::from_secs(1_700_000_000);
        format.replace(&mut batch, start, &mut TimestampText::default(), at);
        let text = String::from_utf8(batch).unwrap();
        text.strip_prefix("before\n").unwrap().to_owned()
    }

    #[test]
    fn fields_are_found_whatever_is_between_them() {
        let format = LineFormat::default()
            .field("path")
            .text(" ")
            .field("status")
            .text(" ")
            .field("reason")
            .text(" ")
            .field("referer");
        let record = concat!(
            r#"{"path":"/\"},\"status\":1","status":200,"is":true,"#,
            r#""agent_metadata":{"a":{"referer":"x}"}},"referer":"r\\"}"#,
            "\n"
        );
        assert_eq!(
            line(&format, record),
            "/\\\"},\\\"status\\\":1 200 - r\\\\\n"
        );
    }

    #[test]
    fn the_time_has_the_common_form() {
        let format = LineFormat::default().text("[").common_time().text("]");
        assert_eq!(line(&format, "{}\n"), "[14/Nov/2023:22:13:20 +0000]\n");
    }
}
