//! A JSON object on one line, written directly into a batch.

use super::timestamp::TimestampText;
use super::{digits, escape, short};
use std::time::Duration;

/// A line being written.
///
/// Keys include all punctuation around them, so that each is one copy of a length known to the
/// compiler.
pub(crate) struct Line<'batch>(pub(crate) &'batch mut Vec<u8>);

impl Line<'_> {
    /// Appends text without escaping.
    #[inline]
    pub(crate) fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Appends a time; `key` ends in the opening quote.
    #[inline]
    pub(crate) fn time(&mut self, key: &str, clock: &mut TimestampText, at: Duration) {
        self.raw(key);
        clock.push(self.0, at);
        self.0.push(b'"');
    }

    /// Appends a string without its closing quote, which is part of the next key; `key` ends in the
    /// opening quote.
    #[inline]
    pub(crate) fn open(&mut self, key: &str, value: &[u8]) {
        self.raw(key);
        escape::push(self.0, value);
    }

    /// Like [`Self::open`], for text that needs no escaping.
    #[inline]
    pub(crate) fn plain(&mut self, key: &str, value: &[u8]) {
        debug_assert!(escape::is_plain(value), "{}", value.escape_ascii());
        self.raw(key);
        short::push(self.0, value);
    }

    /// Appends a string; `key` ends in the opening quote.
    #[inline]
    pub(crate) fn text(&mut self, key: &str, value: &[u8]) {
        self.open(key, value);
        self.0.push(b'"');
    }

    /// Appends a string, if there is one; `key` ends in the opening quote.
    #[inline]
    pub(crate) fn optional(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value.as_bytes());
        }
    }

    /// Appends a whole number; `key` ends in the colon.
    #[inline]
    pub(crate) fn number(&mut self, key: &str, value: u64) {
        self.raw(key);
        digits::push(self.0, value);
    }

    /// Appends milliseconds with three decimals; `key` ends in the colon.
    #[inline]
    pub(crate) fn millis(&mut self, key: &str, time: Duration) {
        self.raw(key);
        digits::push_millis(self.0, time);
    }

    /// Ends an open message of a record that represents this many further ones; 0 for a single one.
    pub(crate) fn repetitions(&mut self, repeated: u64) {
        if repeated == 0 {
            return self.raw("\"");
        }
        self.number(" … repeated ", repeated);
        self.number(" times\",\"repeated\":", repeated);
    }

    /// Ends the object and the line.
    #[inline]
    pub(crate) fn end(self) {
        self.0.extend_from_slice(b"}\n");
    }
}
