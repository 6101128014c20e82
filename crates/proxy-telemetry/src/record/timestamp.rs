//! RFC 3339 timestamps, cached from one record to the next.

use super::digits;
use jiff::Timestamp;
use std::time::Duration;

/// Names of months in the Common Log Format.
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Writes times as RFC 3339, UTC, with milliseconds.
#[derive(Debug)]
pub(crate) struct TimestampText {
    second: u64,
    millis: u32,
    text: [u8; 24],
}

impl Default for TimestampText {
    fn default() -> Self {
        Self {
            second: 0,
            millis: 0,
            text: *b"1970-01-01T00:00:00.000Z",
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
        if at.subsec_millis() != self.millis {
            self.move_on(at.subsec_millis());
        }
        out.extend_from_slice(&self.text);
    }

    /// Appends the time `at` after the Unix epoch in the Common Log Format: `14/Nov/2023:22:13:20
    /// +0000`.
    pub(crate) fn push_common(&mut self, out: &mut Vec<u8>, at: Duration) {
        if at.as_secs() != self.second {
            self.turn(at.as_secs());
        }
        let [
            y1,
            y2,
            y3,
            y4,
            _,
            m1,
            m2,
            _,
            d1,
            d2,
            _,
            time @ ..,
            _,
            _,
            _,
            _,
            _,
        ] = &self.text;
        let month = MONTHS.get(usize::from(m1 - b'0') * 10 + usize::from(m2 - b'0') - 1);
        out.extend_from_slice(&[*d1, *d2, b'/']);
        out.extend_from_slice(month.unwrap_or(&"---").as_bytes());
        out.extend_from_slice(&[b'/', *y1, *y2, *y3, *y4, b':']);
        out.extend_from_slice(time);
        out.extend_from_slice(b" +0000");
    }

    #[cold]
    fn turn(&mut self, second: u64) {
        let signed = i64::try_from(second).unwrap_or(i64::MAX);
        // Every time after the year 9999 is shown as the last that can be represented.
        let stamp = Timestamp::from_second(signed).unwrap_or(Timestamp::MAX);
        let text = stamp.to_string();
        for (slot, byte) in self.text.iter_mut().zip(text.bytes().take(19)) {
            *slot = byte;
        }
        self.second = second;
    }

    #[inline]
    fn move_on(&mut self, millis: u32) {
        let [a, b, c, ..] = digits::three(u64::from(millis)).to_le_bytes();
        let [.., hundreds, tens, ones, _zulu] = &mut self.text;
        (*hundreds, *tens, *ones) = (a, b, c);
        self.millis = millis;
    }
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

    #[test]
    fn times_are_written_in_the_common_log_format() {
        let mut clock = TimestampText::default();
        let cases = [
            (0, "01/Jan/1970:00:00:00 +0000"),
            (1_700_000_000, "14/Nov/2023:22:13:20 +0000"),
            (1_703_980_799, "30/Dec/2023:23:59:59 +0000"),
        ];
        for (second, written) in cases {
            let mut out = Vec::new();
            clock.push_common(&mut out, Duration::from_secs(second));
            assert_eq!(String::from_utf8(out).unwrap(), written);
        }
    }
}
