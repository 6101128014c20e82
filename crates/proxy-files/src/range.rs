//! Byte ranges of `Range`. [RFC 9110 §14]

use std::ops::Range;

/// The bytes to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All bytes: there is no range, an unknown unit, or several ranges.
    Whole,
    /// These bytes.
    Some(Range<u64>),
    /// The file has none of the requested bytes.
    Nowhere,
}

/// The part of a file of `size_bytes` that `range` requests.
pub(crate) fn part(range: Option<&str>, size_bytes: u64) -> Part {
    let Some(members) = range.and_then(in_bytes) else {
        return Part::Whole;
    };
    let mut found = Part::Nowhere;
    for member in members.split(',').map(str::trim) {
        if member.is_empty() {
            continue;
        }
        let Some((first, last)) = member.split_once('-') else {
            return Part::Whole;
        };
        let Some(asked) = span(first.trim(), last.trim(), size_bytes) else {
            return Part::Whole;
        };
        if asked.is_empty() {
            continue;
        }
        if found != Part::Nowhere {
            return Part::Whole;
        }
        found = Part::Some(asked);
    }
    found
}

/// The ranges, if the unit is `bytes`.
fn in_bytes(range: &str) -> Option<&str> {
    let (unit, members) = range.split_once('=')?;
    let has_some = members.bytes().any(|byte| byte == b'-');
    (unit.trim().eq_ignore_ascii_case("bytes") && has_some).then_some(members)
}

/// The bytes of one range, which may be empty; `None` if it is malformed.
fn span(first: &str, last: &str, size_bytes: u64) -> Option<Range<u64>> {
    match (first, last) {
        ("", last) => Some(size_bytes.saturating_sub(number(last)?)..size_bytes),
        (first, "") => Some(number(first)?..size_bytes),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then(|| first..last.saturating_add(1).min(size_bytes))
        }
    }
}

/// Parses digits; a number that is too large is the maximum.
fn number(digits: &str) -> Option<u64> {
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_names_bytes_of_the_file() {
        for (range, expected) in [
            ("bytes=0-0", Part::Some(0..1)),
            ("bytes=0-", Part::Some(0..10)),
            ("Bytes = 2-5", Part::Some(2..6)),
            ("bytes=5-99", Part::Some(5..10)),
            ("bytes=-3", Part::Some(7..10)),
            ("bytes=-99", Part::Some(0..10)),
            ("bytes=9-99999999999999999999999", Part::Some(9..10)),
            ("bytes=20-30, 1-2", Part::Some(1..3)),
            ("bytes=10-", Part::Nowhere),
            ("bytes=10-20", Part::Nowhere),
            ("bytes=-0", Part::Nowhere),
            ("bytes=99999999999999999999999-", Part::Nowhere),
            ("bytes=0-1,3-4", Part::Whole),
            ("bytes=3-2", Part::Whole),
            ("bytes=a-b", Part::Whole),
            ("bytes=+1-2", Part::Whole),
            ("bytes=5", Part::Whole),
            ("bytes=-", Part::Whole),
            ("bytes=", Part::Whole),
            ("lines=1-2", Part::Whole),
            ("1-2", Part::Whole),
        ] {
            assert_eq!(part(Some(range), 10), expected, "{range}");
        }
        assert_eq!(part(None, 10), Part::Whole);
        assert_eq!(part(Some("bytes=0-"), 0), Part::Nowhere);
    }
}
