//! Deserialization of times in RFC 3339 only: jiff also accepts ISO 8601 and RFC 9557.

use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, Error};

const OFFSET_BYTES: usize = 6;
const FORM: &str = "is not a time of RFC 3339 up to the year 9999, such as 2030-01-31T12:00:00Z";

/// Deserializes a time; for `#[serde(deserialize_with)]`.
///
/// # Errors
///
/// The text is not a time of RFC 3339.
pub fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| D::Error::custom(FORM))
}

/// Deserializes a time or null; for `#[serde(deserialize_with)]`.
///
/// # Errors
///
/// The text is not a time of RFC 3339.
pub fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let time = text.map(|text| parse(&text).ok_or_else(|| D::Error::custom(FORM)));
    time.transpose()
}

fn parse(text: &str) -> Option<Timestamp> {
    let (local, offset) = if let Some(local) = text.strip_suffix(['Z', 'z']) {
        (local, None)
    } else {
        let (local, offset) = text.split_at_checked(text.len().checked_sub(OFFSET_BYTES)?)?;
        (local, Some(offset))
    };
    let (whole, fraction) = local.split_once('.').unwrap_or((local, "0"));
    let has_form = has_form(whole, "dddd-dd-ddTdd:dd:dd")
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
        && offset.is_none_or(is_offset);
    has_form.then(|| text.parse().ok()).flatten()
}

fn is_offset(offset: &str) -> bool {
    let hours = offset.get(1..3).and_then(|hours| hours.parse::<u8>().ok());
    (has_form(offset, "+dd:dd") || has_form(offset, "-dd:dd"))
        && hours.is_some_and(|hours| hours < 24)
}

/// Compares with a pattern: `d` stands for a digit, `T` for `T` or `t`.
fn has_form(text: &str, form: &str) -> bool {
    let fits = |(byte, form): (u8, u8)| match form {
        b'd' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b't'),
        form => byte == form,
    };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_rfc_3339_is_read() {
        for (text, utc) in [
            ("2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z"),
            ("2030-01-01t00:00:00.5z", "2030-01-01T00:00:00.5Z"),
            ("2030-01-01T01:00:00+02:00", "2029-12-31T23:00:00Z"),
            ("2030-01-01T00:00:00.25-00:30", "2030-01-01T00:30:00.25Z"),
        ] {
            assert_eq!(
                parse(text).map(|time| time.to_string()).as_deref(),
                Some(utc)
            );
        }
    }

    #[test]
    fn other_notations_of_a_time_are_refused() {
        for text in [
            "",
            "tomorrow",
            "2030-01-01",
            "2030-01-01T00:00:00",
            "2030-01-01 00:00:00Z",
            "2030-01-01T00:00Z",
            "20300101T000000Z",
            "+002030-01-01T00:00:00Z",
            "2030-01-01T00:00:00Z[UTC]",
            "2030-01-01T00:00:00,5Z",
            "2030-01-01T00:00:00.Z",
            "2030-01-01T00:00:00+02",
            "2030-01-01T00:00:00+25:00",
            "2030-02-30T00:00:00Z",
            "2030-01-01T00:00:00é:00",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
