//! Parsing of a text without a declared KDL version.

use super::chars::is_forbidden;
use super::parser::{Parsed, parse};
use super::syntax_error::{SyntaxError, SyntaxErrorKind};
use super::tree::{Dialect, Node, Span};

/// Reads a text as KDL 2, then as KDL 1. If it is neither, the errors are KDL 2's, unless the text
/// is KDL 1 up to its first error.
pub(crate) fn read(text: &str) -> Result<Vec<Node>, Vec<SyntaxError>> {
    let Parsed {
        nodes,
        faults: second,
        ..
    } = parse(text, Dialect::V2);
    if second.is_empty() {
        return Ok(nodes);
    }
    drop(nodes);
    let ended_it = |fault: &SyntaxError| {
        matches!(
            fault.kind,
            SyntaxErrorKind::TooDeep | SyntaxErrorKind::TooMany
        )
    };
    if second.iter().any(ended_it) {
        return Err(second);
    }
    let Parsed {
        nodes,
        faults: first,
        ..
    } = parse(text, Dialect::V1);
    match (first.first(), second.first()) {
        (None, _) => Ok(nodes),
        (Some(in_first), Some(in_second))
            if in_second.kind == SyntaxErrorKind::OtherDialect
                && in_first.kind != SyntaxErrorKind::OtherDialect
                && in_first.span.start() > in_second.span.start() =>
        {
            Err(first)
        }
        _ => Err(second),
    }
}

/// The first forbidden character. A byte order mark may begin the text.
pub(crate) fn forbidden(text: &str) -> Option<Span> {
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let rest = text.get(start..)?;
    let is_usual = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t');
    if rest.as_bytes().iter().all(is_usual) {
        return None;
    }
    let (at, c) = rest.char_indices().find(|(_, c)| is_forbidden(*c))?;
    Some(Span::new(start + at, start + at + c.len_utf8()))
}
