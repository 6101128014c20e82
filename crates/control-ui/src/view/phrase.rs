//! Wording of numbers, times and lists.

use jiff::{Timestamp, tz::TimeZone};
use std::fmt::Display;

/// Non-breaking space between groups of digits.
const GROUP_SPACE: char = '\u{a0}';

/// Formats a number, such as `48 210`.
pub(crate) fn number(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::new();
    if value < 0 {
        text.push('−');
    }
    for (index, digit) in digits.chars().enumerate() {
        let left = digits.len() - index;
        // Numbers of four digits have no separator.
        if 0 < index && left.is_multiple_of(3) && 4 < digits.len() {
            text.push(GROUP_SPACE);
        }
        text.push(digit);
    }
    text
}

/// Number and noun, such as `3 nodes`.
pub(crate) fn count(value: i64, noun: &str) -> String {
    let plural = match noun {
        _ if value == 1 => noun.to_owned(),
        "has" => "have".to_owned(),
        "is" => "are".to_owned(),
        "was" => "were".to_owned(),
        _ if noun.ends_with('y') && !noun.ends_with("ay") && !noun.ends_with("ey") => {
            format!("{}ies", noun.trim_end_matches('y'))
        }
        _ if noun.ends_with("ch") || noun.ends_with('s') => format!("{noun}es"),
        _ => format!("{noun}s"),
    };
    format!("{} {plural}", number(value))
}

/// Numbers up to twelve as words, larger ones in digits.
pub(crate) fn few(value: i64) -> String {
    const WORDS: [&str; 13] = [
        "none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    let index = usize::try_from(value).ok();
    let word = index.and_then(|index| WORDS.get(index));
    word.map_or_else(|| number(value), |word| (*word).to_owned())
}

/// Returns `one` for 1, otherwise `several`: for a noun's ending, or `is` and `are`.
pub(crate) fn pick<'a>(value: i64, one: &'a str, several: &'a str) -> &'a str {
    if value == 1 { one } else { several }
}

/// List such as `a, b and c`.
pub(crate) fn list_of<T: Display>(parts: &[T]) -> String {
    let texts: Vec<String> = parts.iter().map(ToString::to_string).collect();
    match texts.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// Adds a capital letter and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first: String = chars
        .next()
        .map(|c| c.to_uppercase().collect())
        .unwrap_or_default();
    let end = if text.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    format!("{first}{}{end}", chars.as_str())
}

/// Readable name of a field: `User name` for `user_name`, `Token URL` for `token_url`.
pub(crate) fn field(name: &str) -> String {
    let words = name.split(['_', '.']).map(|word| match word {
        "url" | "id" | "ip" | "pem" => word.to_uppercase(),
        _ => word.to_owned(),
    });
    let words = words.collect::<Vec<_>>().join(" ");
    let mut chars = words.chars();
    let first: String = chars
        .next()
        .map(|c| c.to_uppercase().collect())
        .unwrap_or_default();
    format!("{first}{}", chars.as_str())
}

/// Duration in the largest unit that fits, such as `4 minutes`.
pub(crate) fn duration(seconds: i64) -> String {
    let seconds = seconds.abs();
    match seconds {
        0..60 => count(seconds, "second"),
        60..3_600 => count(seconds / 60, "minute"),
        3_600..172_800 => count(seconds / 3_600, "hour"),
        _ => count(seconds / 86_400, "day"),
    }
}

/// Relative time, such as `4 minutes ago` or `in 2 days`.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - at.as_second();
    match seconds {
        0..2 => "just now".to_owned(),
        2.. => format!("{} ago", duration(seconds)),
        _ => format!("in {}", duration(seconds)),
    }
}

/// Time such as `14:12 UTC`, with the date unless it is today.
pub(crate) fn date_time(at: Timestamp, now: Timestamp) -> String {
    format!("{} UTC", minute(at, now))
}

/// Time such as `14:12`, with the date unless it is today.
pub(crate) fn minute(at: Timestamp, now: Timestamp) -> String {
    let (at, now) = (at.to_zoned(TimeZone::UTC), now.to_zoned(TimeZone::UTC));
    let format = if at.date() == now.date() {
        "%H:%M"
    } else {
        "%Y-%m-%d %H:%M"
    };
    at.strftime(format).to_string()
}

/// First characters of an identifier, to tell values with equal names apart.
pub(crate) fn short(id: impl Display) -> String {
    let text = id.to_string();
    let end = text.len().saturating_sub(6);
    text.get(end..).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_nouns_follow_them() {
        assert_eq!(number(48_210), "48\u{a0}210");
        assert_eq!(number(1_000), "1000");
        assert_eq!(number(-1_234_567), "−1\u{a0}234\u{a0}567");
        assert_eq!(count(1, "node"), "1 node");
        assert_eq!(count(0, "node"), "0 nodes");
        assert_eq!(count(2, "batch"), "2 batches");
        assert_eq!(count(2, "entry"), "2 entries");
        assert_eq!(count(2, "day"), "2 days");
        assert_eq!(few(3), "three");
        assert_eq!(few(13), "13");
        assert_eq!(list_of(&["a", "b", "c"]), "a, b and c");
        assert_eq!(list_of::<&str>(&[]), "");
    }

    #[test]
    fn times_are_relative_and_exact() {
        let now: Timestamp = "2026-11-23T14:12:08Z".parse().unwrap();
        for (at, reported, exact) in [
            ("2026-11-23T14:12:07Z", "just now", "14:12 UTC"),
            ("2026-11-23T14:08:00Z", "4 minutes ago", "14:08 UTC"),
            (
                "2026-11-22T13:12:08Z",
                "25 hours ago",
                "2026-11-22 13:12 UTC",
            ),
            ("2026-11-20T14:12:08Z", "3 days ago", "2026-11-20 14:12 UTC"),
            ("2026-11-23T14:13:08Z", "in 1 minute", "14:13 UTC"),
        ] {
            let at = at.parse().unwrap();
            assert_eq!(ago(at, now), reported);
            assert_eq!(date_time(at, now), exact);
        }
    }

    #[test]
    fn reasons_become_sentences() {
        assert_eq!(sentence("is taken"), "Is taken.");
        assert_eq!(sentence("Why?"), "Why?");
        assert_eq!(sentence(""), ".");
        assert_eq!(field("user_name"), "User name");
        assert_eq!(field("oidc.token_url"), "Oidc token URL");
    }
}
