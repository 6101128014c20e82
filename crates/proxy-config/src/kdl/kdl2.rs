//! Conversion of KDL 1 to KDL 2.

use crate::kdl::{self, Dialect, Span, Value};
use std::borrow::Cow;

/// A text as KDL 2.
#[derive(Debug)]
pub(crate) struct Kdl2<'t> {
    pub(crate) text: Cow<'t, str>,
    /// The given text was KDL 1.
    pub(crate) is_converted: bool,
    /// The ends of values in `text` that were written on several lines and are now on one, each
    /// with the number of lines removed up to there.
    joined: Vec<(usize, u32)>,
}

impl<'t> Kdl2<'t> {
    /// The text unchanged if it is KDL 2, else converted; `None` if it is neither KDL 2 nor KDL 1.
    pub(crate) fn convert(text: &'t str) -> Option<Self> {
        if kdl::parse(text, Dialect::V2).faults.is_empty() {
            return Some(Self {
                text: Cow::Borrowed(text),
                is_converted: false,
                joined: Vec::new(),
            });
        }
        let (parsed, words) = kdl::parse_with_words(text);
        let converted = parsed.faults.is_empty().then(|| respell(text, &words))?;
        let is_kdl_2 = kdl::parse(&converted.text, Dialect::V2).faults.is_empty();
        is_kdl_2.then_some(converted)
    }

    /// The number of lines that the given text had more than `text`, up to the byte at `at`.
    pub(crate) fn joined_lines(&self, at: usize) -> u32 {
        let passed = self.joined.partition_point(|(end, _)| *end <= at);
        let last = passed.checked_sub(1).and_then(|last| self.joined.get(last));
        last.map_or(0, |(_, lines)| *lines)
    }
}

/// Rewrites all names and values of KDL 1 in the syntax of KDL 2, also ones commented out by `/-`,
/// which the `kdl` crate's own conversion does not change.
fn respell(text: &str, words: &[(Span, Value)]) -> Kdl2<'static> {
    let mut converted = String::with_capacity(text.len() + text.len() / 8);
    let mut joined = Vec::new();
    let mut lines = 0;
    let mut at = 0;
    let mut version = None;
    for (span, value) in words {
        let written = slice(text, *span);
        let instead = if version == Some(*span) {
            Some("2".to_owned())
        } else {
            respelt(written, value)
        };
        // `/- kdl-version 1` declares a file's version.
        let follows = Span::new(span.end() + 1, span.end() + 2);
        let is_version = written == "kdl-version" && slice(text, follows) == "1";
        version = is_version.then_some(follows);
        let Some(instead) = instead else {
            continue;
        };
        converted.push_str(text.get(at..span.start()).unwrap_or_default());
        converted.push_str(&instead);
        at = span.end();
        let removed = written.matches('\n').count();
        if removed > 0 {
            lines += u32::try_from(removed).unwrap_or(u32::MAX);
            joined.push((converted.len(), lines));
        }
    }
    converted.push_str(text.get(at..).unwrap_or_default());
    Kdl2 {
        text: Cow::Owned(converted),
        is_converted: true,
        joined,
    }
}

fn slice(text: &str, span: Span) -> &str {
    text.get(span.start()..span.end()).unwrap_or_default()
}

/// A value of KDL 1 in the syntax of KDL 2; `None` if the two are the same.
fn respelt(written: &str, value: &Value) -> Option<String> {
    match value {
        Value::Flag(_) | Value::Null => Some(format!("#{written}")),
        Value::Integer(_) | Value::Decimal(_) => None,
        Value::Text(text) if written.starts_with('"') => {
            let differs = written.contains(kdl::is_newline) || written.contains("\\/");
            differs.then(|| kdl::quoted(text))
        }
        Value::Text(text) => {
            let Some(raw) = raw_of(written) else {
                return (!kdl::is_bare(text, Dialect::V2)).then(|| kdl::quoted(text));
            };
            let plain = !text.contains(kdl::is_newline) && !text.starts_with('"');
            let hashed = if raw.starts_with('"') {
                format!("#{raw}#")
            } else {
                raw.to_owned()
            };
            Some(if plain { hashed } else { kdl::quoted(text) })
        }
    }
}

/// The rest of raw text in KDL 1 after its `r`.
fn raw_of(written: &str) -> Option<&str> {
    let raw = written.strip_prefix('r')?;
    raw.trim_start_matches('#').starts_with('"').then_some(raw)
}
