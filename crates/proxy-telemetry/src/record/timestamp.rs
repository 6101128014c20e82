//! Times of day as RFC 3339 text, the second kept from one record to the next.

use jiff::Timestamp;
use std::time::Duration;

/// A date and time up to the dot before the milliseconds.
type Second = [u8; 20];

/// Writes times as RFC 3339, UTC, with milliseconds.
#[derive(Debug)]
pub(crate) struct TimestampText {
    second: u64,
    text: Second,
}

impl Default for TimestampText {
    fn default() -> Self {
        Self {
            second: 0,
            text: *b"1970-01-01T00:00:00.",
        }
    }
}

impl TimestampText {
    /// Appends the time `at` after the Unix epoch.
    #[inline]
    pub(crate) fn push(&mut self, out: &mut Vec<u8>, at: Duration) {
        if at.as_secs() != self.second {
            self.turn(at.as_secs());
        }
        out.extend_from_slice(&self.text);
        push_three(out, at.subsec_millis());
        out.push(b'Z');
    }

    #[cold]
    fn turn(&mut self, second: u64) {
        let signed = i64::try_from(second).unwrap_or(i64::MAX);
        // Past the year 9999 every time is shown as the last that can be.
        let stamp = Timestamp::from_second(signed).unwrap_or(Timestamp::MAX);
        let text = stamp.to_string();
        let bytes = text.bytes().take(19).chain([b'.']);
        for (slot, byte) in self.text.iter_mut().zip(bytes) {
            *slot = byte;
        }
        self.second = second;
    }
}

/// Appends the last three digits of `number`.
#[inline]
pub(crate) fn push_three(out: &mut Vec<u8>, number: u32) {
    let digit = |place| b'0' + u8::try_from(number / place % 10).unwrap_or_default();
    out.extend_from_slice(&[digit(100), digit(10), digit(1)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_to_the_millisecond() {
        let mut clock = TimestampText::default();
        let cases = [
            (Duration::ZERO, "1970-01-01T00:00:00.000Z"),
            (
                Duration::from_millis(1_700_000_000_007),
                "2023-11-14T22:13:20.007Z",
            ),
            (
                Duration::from_millis(1_700_000_000_999),
                "2023-11-14T22:13:20.999Z",
            ),
            (
                Duration::from_secs(1_700_000_001),
                "2023-11-14T22:13:21.000Z",
            ),
            (Duration::MAX, "9999-12-30T22:00:00.999Z"),
        ];
        for (at, written) in cases {
            let mut out = Vec::new();
            clock.push(&mut out, at);
            assert_eq!(String::from_utf8(out).unwrap(), written);
        }
    }
}
