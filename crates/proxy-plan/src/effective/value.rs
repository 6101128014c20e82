//! A setting's value without its type.

use proxy_model::show_size;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// A setting's value without its type.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Decimal(f64),
    /// Bytes.
    Size(u64),
    /// A time.
    Time(Duration),
    /// Text, a word among it.
    Text(String),
    /// Several words that were written as one value.
    Words(Vec<String>),
}

impl SettingValue {
    /// For programs. Sizes are bytes; times are seconds, or milliseconds where `name`, the
    /// setting's, ends in `-ms`.
    #[must_use]
    pub fn to_json(&self, name: &str) -> Value {
        match self {
            Self::Flag(flag) => (*flag).into(),
            Self::Whole(number) => (*number).into(),
            Self::Decimal(number) => (*number).into(),
            Self::Size(bytes) => (*bytes).into(),
            Self::Time(time) => in_unit(*time, name.ends_with("-ms")),
            Self::Text(text) => text.as_str().into(),
            Self::Words(words) => words.clone().into(),
        }
    }
}

fn in_unit(time: Duration, in_millis: bool) -> Value {
    let millis = time.as_millis();
    let whole = |number: u128| u64::try_from(number).unwrap_or(u64::MAX).into();
    match (in_millis, millis % 1000) {
        (true, _) => whole(millis),
        (false, 0) => whole(millis / 1000),
        (false, _) => time.as_secs_f64().into(),
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Whole(number) => number.fmt(f),
            Self::Decimal(number) => number.fmt(f),
            Self::Size(bytes) => f.write_str(&show_size(*bytes)),
            Self::Time(time) if time.subsec_nanos() == 0 => write!(f, "{}s", time.as_secs()),
            Self::Time(time) => write!(f, "{}ms", time.as_millis()),
            Self::Text(text) => f.write_str(text),
            Self::Words(words) => f.write_str(&words.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_are_told_to_programs_in_the_unit_of_their_name() {
        let time = SettingValue::Time(Duration::from_millis(1500));
        assert_eq!(time.to_json("timeouts.connect-secs"), json!(1.5));
        assert_eq!(time.to_json("timeout-ms"), json!(1500));

        let whole = SettingValue::Time(Duration::from_secs(30));
        assert_eq!(whole.to_json("timeouts.read-secs"), json!(30));
    }

    #[test]
    fn people_read_sizes_and_times_with_their_units() {
        let cases = [
            (SettingValue::Size(10_485_760), "10MiB"),
            (SettingValue::Size(8_191), "8191"),
            (SettingValue::Time(Duration::from_secs(5)), "5s"),
            (SettingValue::Time(Duration::from_millis(250)), "250ms"),
            (SettingValue::Flag(false), "false"),
        ];
        for (value, text) in cases {
            assert_eq!(value.to_string(), text);
        }
    }
}
