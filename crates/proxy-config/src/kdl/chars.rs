//! Character classes. [KDL 2.0 §3.17–3.19]

use super::tree::Dialect;

pub(super) const fn is_space(c: char) -> bool {
    matches!(
        c,
        '\t' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

pub(crate) const fn is_newline(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Characters refused anywhere: control characters, and ones that change the direction of text, so
/// that a file reads as displayed.
pub(crate) const fn is_forbidden(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{8}'
            | '\u{e}'..='\u{1f}'
            | '\u{7f}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
    )
}

pub(super) const fn is_bare_char(c: char, dialect: Dialect) -> bool {
    // Most characters of a configuration.
    if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
        return true;
    }
    let special = match dialect {
        Dialect::V1 => matches!(
            c,
            '\\' | '/' | '(' | ')' | '{' | '}' | '<' | '>' | ';' | '[' | ']' | '=' | ',' | '"'
        ),
        Dialect::V2 => matches!(
            c,
            '\\' | '/' | '(' | ')' | '{' | '}' | ';' | '[' | ']' | '=' | '"' | '#'
        ),
    };
    !special && !is_space(c) && !is_newline(c) && !is_forbidden(c)
}
