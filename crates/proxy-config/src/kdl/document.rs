//! The `kdl` crate's document tree of a text, from which the same text can be written again.

pub(crate) mod edits;

use crate::kdl::{self, Dialect, is_newline};
use ::kdl::{KdlDocument, KdlNode};

/// Maximum nesting of parts commented out by `/-`. The crate takes twice as long for each level.
const MAX_DISABLED_DEPTH: usize = 8;

/// The tree of a text of KDL 2. `None` if the crate does not read the text, or if its tree does not
/// hold every byte of it.
pub(crate) fn parse(text: &str) -> Option<KdlDocument> {
    // This crate's reader bounds depth and size; the `kdl` crate does not.
    let read = kdl::parse(text, Dialect::V2);
    if !read.faults.is_empty() || read.disabled_depth > MAX_DISABLED_DEPTH {
        return None;
    }
    let mut document = KdlDocument::parse_v2(text).ok()?;
    restore(&mut document, text);
    (document.to_string() == text).then_some(document)
}

/// Adds the parts that the crate omits from its tree: spaces, a terminator and a comment after a
/// block's `}`.
fn restore(document: &mut KdlDocument, text: &str) {
    for node in document.nodes_mut() {
        let Some(children) = node.children_mut() else {
            continue;
        };
        restore(children, text);
        restore_end(node, text);
    }
}

fn restore_end(node: &mut KdlNode, text: &str) {
    let span = node.span();
    let (start, end) = (span.offset(), span.offset() + span.len());
    let leading = node.format().map_or(0, |format| format.leading.len());
    let known = node.to_string().len() - leading;
    let Some(format) = node.format_mut().filter(|it| it.terminator.is_empty()) else {
        return;
    };
    let spaces = text.get(start + known..end).unwrap_or_default();
    format.before_terminator.push_str(spaces);
    terminator(text.get(end..).unwrap_or_default()).clone_into(&mut format.terminator);
}

/// The end of a node at the beginning of `text`: a semicolon, a line end, or a comment with its
/// line end.
fn terminator(text: &str) -> &str {
    let after_newline = |at: usize| {
        let rest = text.get(at..).unwrap_or_default();
        let end = rest.strip_prefix("\r\n").map(str::len).or_else(|| {
            let mut chars = rest.chars();
            chars.next().filter(|c| is_newline(*c))?;
            Some(chars.as_str().len())
        });
        end.map(|after| text.len() - after)
    };
    let end = if text.starts_with(';') {
        Some(1)
    } else if text.starts_with("//") {
        let comment = text.find(is_newline).unwrap_or(text.len());
        after_newline(comment).or(Some(comment))
    } else {
        after_newline(0)
    };
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_behind_a_block_are_part_of_the_tree() {
        for text in [
            "a { } // one\nb 1\n",
            "a {\n  b { c 1 } /* two */; d 2 } // three",
            "a {} /- {}  // four\r\n\r\nb {}\t\n",
            "a {\n}\n// five\n",
            "a { b {};c {} ;}",
        ] {
            let document = parse(text);
            assert_eq!(document.map(|it| it.to_string()).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_text_that_the_tree_would_change_has_no_tree() {
        assert!(parse("( /* why */ size)a 1\n").is_none());
        assert!(parse("a {").is_none());
    }

    #[test]
    fn parts_disabled_within_disabled_parts_have_a_bound() {
        let nested = |depth| format!("{}b 1{}\n", "/- a { ".repeat(depth), " }".repeat(depth));
        assert!(parse(&nested(MAX_DISABLED_DEPTH)).is_some());
        assert!(parse(&nested(MAX_DISABLED_DEPTH + 1)).is_none());
        assert!(parse(&"/- a { b 1 }\n".repeat(MAX_DISABLED_DEPTH + 1)).is_some());
    }
}
