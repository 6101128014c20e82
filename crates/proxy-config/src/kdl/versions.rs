//! Parsing of a text without a declared KDL version.

use super::chars::is_forbidden;
use super::parser::{Parsed, parse_within};
use super::syntax_error::{SyntaxError, SyntaxErrorKind};
use super::tree::{Dialect, Node, Span};

/// Reads a text as KDL 2, then as KDL 1. If it is neither, the errors are KDL 2's, unless the text
/// is KDL 1 up to its first error. Subtracts the nodes, arguments and properties from `items_left`,
/// and reads no more.
pub(crate) fn read(text: &str, items_left: &mut usize) -> Result<Vec<Node>, Vec<SyntaxError>> {
    let Parsed {
        nodes,
        faults: second,
        items,
        ..
    } = parse_within(text, Dialect::V2, *items_left);
    if second.is_empty() {
        *items_left -= items;
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
        items,
        ..
    } = parse_within(text, Dialect::V1, *items_left);
    match (first.first(), second.first()) {
        (None, _) => {
            *items_left -= items;
            Ok(nodes)
        }
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
