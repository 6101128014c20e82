//! One JSON object on one line, written straight into a batch.

use super::timestamp::TimestampText;
use super::{digits, escape, short};
use std::time::Duration;

/// A line being written.
///
/// Keys are given as they stand in the line, with all punctuation around them, so that each is
/// one copy of a length the compiler knows.
pub(crate) struct Line<'batch>(pub(crate) &'batch mut Vec<u8>);

impl Line<'_> {
    /// Text as it is.
    #[inline]
    pub(crate) fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// A time; `key` ends in the opening quote.
    #[inline]
    pub(crate) fn time(&mut self, key: &str, clock: &mut TimestampText, at: Duration) {
        self.raw(key);
        clock.push(self.0, at);
        self.0.push(b'"');
    }

    /// A string whose closing quote the next key brings; `key` ends in the opening quote.
    #[inline]
    pub(crate) fn open(&mut self, key: &str, value: &[u8]) {
        self.raw(key);
        escape::push(self.0, value);
    }

    /// The same of a text that needs no escaping, whoever sent it.
    #[inline]
    pub(crate) fn plain(&mut self, key: &str, value: &[u8]) {
        debug_assert!(escape::is_plain(value), "{}", value.escape_ascii());
        self.raw(key);
        short::push(self.0, value);
    }

    /// A string; `key` ends in the opening quote.
    #[inline]
    pub(crate) fn text(&mut self, key: &str, value: &[u8]) {
        self.open(key, value);
        self.0.push(b'"');
    }

    /// A string, if there is one; `key` ends in the opening quote.
    #[inline]
    pub(crate) fn optional(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value.as_bytes());
        }
    }

    /// A whole number; `key` ends in the colon.
    #[inline]
    pub(crate) fn number(&mut self, key: &str, value: u64) {
        self.raw(key);
        digits::push(self.0, value);
    }

    /// Milliseconds with three decimals; `key` ends in the colon.
    #[inline]
    pub(crate) fn millis(&mut self, key: &str, time: Duration) {
        self.raw(key);
        digits::push_millis(self.0, time);
    }

    /// The end of the object and of the line.
    #[inline]
    pub(crate) fn end(self) {
        self.0.extend_from_slice(b"}\n");
    }
}
