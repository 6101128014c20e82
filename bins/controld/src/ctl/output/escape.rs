//! Escapes of texts from nodes and other users, for terminals.

use std::borrow::Cow;

/// Escapes control characters, except line ends and tabs, and characters that change the writing
/// direction or end a line in some programs. Names and messages are from nodes and other users, and
/// could contain terminal commands.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    with_escapes(text, is_hazardous)
}

/// Escapes a value within a line, as [`escaped`] does, and its line ends too: a value could
/// otherwise imitate further lines of the output.
pub(crate) fn inline(value: &str) -> Cow<'_, str> {
    with_escapes(value, |sign| sign == '\n' || is_hazardous(sign))
}

fn with_escapes(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let shown = |sign: char| match sign {
        '\n' if is_escaped(sign) => "\\n".to_owned(),
        sign if is_escaped(sign) => sign.escape_unicode().to_string(),
        sign => sign.to_string(),
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Returns true for a character that [`escaped`] replaces.
pub(crate) fn is_hazardous(sign: char) -> bool {
    let turns = matches!(
        sign,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    let ends_line = matches!(sign, '\u{2028}' | '\u{2029}');
    turns || ends_line || sign.is_control() && !matches!(sign, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_its_lines_and_a_value_has_none() {
        for (given, page, value) in [
            ("one\n\ttwo ü", "one\n\ttwo ü", "one\\n\ttwo ü"),
            (
                "a\u{61c}\u{2028}\u{2029}b",
                "a\\u{61c}\\u{2028}\\u{2029}b",
                "a\\u{61c}\\u{2028}\\u{2029}b",
            ),
            ("a\r\nb", "a\\u{d}\nb", "a\\u{d}\\nb"),
        ] {
            assert_eq!(escaped(given), page);
            assert_eq!(inline(given), value);
        }
    }
}
