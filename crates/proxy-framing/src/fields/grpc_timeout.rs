//! Parsing and writing of `grpc-timeout`.

use std::time::Duration;

/// Parses at most eight digits and a unit; `None` for any other text.
#[must_use]
pub fn read_grpc_timeout(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    // Tested before the unit is applied: more digits would overflow a `Duration`, which panics.
    if !(1..=8).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match unit {
        b'H' => Duration::from_hours(number),
        b'M' => Duration::from_mins(number),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

/// Writes `time` in the smallest unit that takes at most eight digits, rounded down.
#[must_use]
pub fn write_grpc_timeout(time: Duration) -> String {
    const MAX_AMOUNT: u128 = 99_999_999;
    let units = [
        (time.as_nanos(), 'n'),
        (time.as_micros(), 'u'),
        (time.as_millis(), 'm'),
        (u128::from(time.as_secs()), 'S'),
    ];
    let fitting = units.into_iter().find(|(number, _)| *number <= MAX_AMOUNT);
    let (number, unit) = fitting.unwrap_or((MAX_AMOUNT, 'S'));
    format!("{number}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_up_to_eight_digits_and_a_unit() {
        for (text, time) in [
            ("1H", Some(Duration::from_hours(1))),
            ("2M", Some(Duration::from_mins(2))),
            ("3S", Some(Duration::from_secs(3))),
            ("100m", Some(Duration::from_millis(100))),
            ("5u", Some(Duration::from_micros(5))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("0m", Some(Duration::ZERO)),
            ("100000000n", None),
            ("9999999999999999999H", None),
            ("m", None),
            ("", None),
            ("-1m", None),
            ("1.5S", None),
            ("1", None),
            ("1x", None),
        ] {
            assert_eq!(read_grpc_timeout(text.as_bytes()), time, "{text}");
        }
    }

    #[test]
    fn writes_are_read_back_and_nothing_more() {
        for time in [
            Duration::ZERO,
            Duration::from_nanos(99_999_999),
            Duration::from_nanos(100_000_001),
            Duration::from_millis(123_456),
            Duration::from_secs(200_000),
            Duration::MAX,
        ] {
            let back = read_grpc_timeout(write_grpc_timeout(time).as_bytes()).unwrap();
            let lost = time.checked_sub(back).unwrap();
            assert!(
                lost < Duration::from_secs(1) || time == Duration::MAX,
                "{time:?}"
            );
        }
    }
}
