//! Texts for a terminal: escaped, and of a width.

use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A text without terminal commands: control characters, and marks that are invisible or change the direction of writing,
/// are shown by their numbers. Names come from configurations, messages from targets.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hazardous) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for sign in text.chars() {
        if is_hazardous(sign) {
            shown.extend(sign.escape_unicode());
        } else {
            shown.push(sign);
        }
    }
    Cow::Owned(shown)
}

fn is_hazardous(sign: char) -> bool {
    sign.is_control()
        || matches!(
            sign,
            '\u{ad}'
                | '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Number of columns that an escaped text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The beginning of an escaped text in at most `columns`, with an ellipsis if it is cut.
pub(crate) fn fitted(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    let mut taken = 1;
    for sign in text.chars() {
        taken += sign.width().unwrap_or(0);
        if columns < taken {
            break;
        }
        shown.push(sign);
    }
    if 0 < columns {
        shown.push('…');
    }
    Cow::Owned(shown)
}

/// A rate or a count with three or more digits: `0`, `0.25`, `12.3`, `4567`, `1.2M`.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    match value {
        value if value < 10.0 && value.fract() != 0.0 => format!("{value:.2}"),
        value if value < 1_000.0 && value.fract() != 0.0 => format!("{value:.1}"),
        value if value < 100_000.0 => format!("{value:.0}"),
        value if value < 1e6 => format!("{:.0}K", value / 1e3),
        value if value < 1e9 => format!("{:.1}M", value / 1e6),
        value => format!("{:.1}G", value / 1e9),
    }
}

/// Bytes, with a unit of 1 024: `812B`, `3.4K`.
pub(crate) fn bytes(value: f64) -> String {
    let mut rest = value;
    for unit in ["B", "K", "M", "G"] {
        if rest < 1_024.0 {
            let digits = usize::from(unit != "B" && rest < 100.0);
            return format!("{rest:.digits$}{unit}");
        }
        rest /= 1_024.0;
    }
    format!("{rest:.1}T")
}

/// A time in seconds as `850µs`, `4.2ms`, `1.50s`; a dash without one.
pub(crate) fn duration(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".to_owned(),
        Some(time) if time < 0.001 => format!("{:.0}µs", time * 1e6),
        Some(time) if time < 0.1 => format!("{:.1}ms", time * 1e3),
        Some(time) if time < 1.0 => format!("{:.0}ms", time * 1e3),
        Some(time) => format!("{time:.2}s"),
    }
}

/// A time in seconds as `3d 4h`, `2h 5m`, `48s`.
pub(crate) fn age(seconds: f64) -> String {
    let whole = |unit: f64| (seconds / unit).floor();
    let rest = |unit: f64, of: f64| ((seconds % of) / unit).floor();
    match seconds {
        time if time < 60.0 => format!("{time:.0}s"),
        time if time < 3_600.0 => format!("{:.0}m {:.0}s", whole(60.0), rest(1.0, 60.0)),
        time if time < 86_400.0 => format!("{:.0}h {:.0}m", whole(3_600.0), rest(60.0, 3_600.0)),
        _ => format!("{:.0}d {:.0}h", whole(86_400.0), rest(3_600.0, 86_400.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_terminal_are_escaped() {
        assert_eq!(escaped("shop"), "shop");
        assert_eq!(escaped("a\x1b[2Jb\r\n\t"), "a\\u{1b}[2Jb\\u{d}\\u{a}\\u{9}");
        assert_eq!(
            escaped("a\u{202e}b\u{9b}c\u{200b}"),
            "a\\u{202e}b\\u{9b}c\\u{200b}"
        );
        assert_eq!(escaped("straße 東京"), "straße 東京");
    }

    #[test]
    fn texts_are_cut_by_columns() {
        assert_eq!(fitted("abcdef", 6), "abcdef");
        assert_eq!(fitted("abcdef", 4), "abc…");
        assert_eq!(fitted("東京都", 4), "東…");
        assert_eq!(fitted("abc", 0), "");
    }

    #[test]
    fn values_are_short() {
        assert_eq!(
            [0.0, 0.25, 12.34, 5.0, 4567.8, 250_000.0, 1.25e6, 2e9].map(number),
            ["0", "0.25", "12.3", "5", "4568", "250K", "1.2M", "2.0G"]
        );
        assert_eq!(
            [0.0, 812.0, 3_500.0, 2e6, 5e12].map(bytes),
            ["0B", "812B", "3.4K", "1.9M", "4.5T"]
        );
        let times = [Some(0.00085), Some(0.0042), Some(0.5), Some(1.5), None];
        assert_eq!(
            times.map(duration),
            ["850µs", "4.2ms", "500ms", "1.50s", "-"]
        );
        assert_eq!(
            [48.0, 125.0, 7_500.0, 273_600.0].map(age),
            ["48s", "2m 5s", "2h 5m", "3d 4h"]
        );
    }
}
