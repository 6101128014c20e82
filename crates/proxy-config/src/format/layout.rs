//! Line breaks and indentation.

use kdl::{KdlDocument, KdlDocumentFormat, KdlEntry, KdlNode};

/// Indentation of one level.
const INDENT: &str = "    ";

/// Lays out a whole document.
pub(super) fn apply(document: &mut KdlDocument) {
    block(document, 0);
    if let Some(format) = document.format_mut() {
        format.leading = comment_lines(&format.leading, 0, LeadingBlankLine::Dropped);
        format.trailing = comment_lines(&format.trailing, 0, LeadingBlankLine::Kept);
    }
}

/// Treatment of an empty line before the first comment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeadingBlankLine {
    Kept,
    Dropped,
}

/// The nodes of a document or of a node's children.
fn block(document: &mut KdlDocument, level: usize) {
    for (index, node) in document.nodes_mut().iter_mut().enumerate() {
        let gap = if index == 0 {
            LeadingBlankLine::Dropped
        } else {
            LeadingBlankLine::Kept
        };
        self::node(node, level, gap);
    }
}

fn node(node: &mut KdlNode, level: usize, gap: LeadingBlankLine) {
    for entry in node.entries_mut() {
        self::entry(entry);
    }
    if let Some(format) = node.format_mut() {
        format.leading = comment_lines(&format.leading, level, gap) + &INDENT.repeat(level);
        format.before_children = match format.before_children.trim() {
            "" => " ".to_owned(),
            comment => format!(" {comment} "),
        };
        format.terminator = line_end(&[
            &format.before_terminator,
            &format.terminator,
            &format.trailing,
        ]);
        format.before_terminator.clear();
        format.trailing.clear();
    }
    if let Some(children) = node.children_mut() {
        block(children, level + 1);
        let is_empty = children.nodes().is_empty();
        if let Some(KdlDocumentFormat { leading, trailing }) = children.format_mut() {
            let comments = comment_lines(leading, level + 1, LeadingBlankLine::Dropped)
                + &comment_lines(trailing, level + 1, LeadingBlankLine::Dropped);
            let is_bare = is_empty && comments.is_empty();
            *leading = if is_bare {
                String::new()
            } else {
                "\n".to_owned()
            };
            *trailing = if is_bare {
                String::new()
            } else {
                comments + &INDENT.repeat(level)
            };
        }
    }
}

/// A value or a property: one space before it, unless a comment or a line continuation precedes it.
fn entry(entry: &mut KdlEntry) {
    if let Some(format) = entry.format_mut() {
        if format.leading.trim().is_empty() {
            " ".clone_into(&mut format.leading);
        }
        if format.trailing.trim().is_empty() {
            format.trailing.clear();
        }
    }
}

/// The end of a node's line: a semicolon is removed, comments are preserved.
fn line_end(parts: &[&str]) -> String {
    let mut end = String::new();
    for part in parts {
        let comment = part.trim().trim_start_matches(';').trim();
        if !comment.is_empty() {
            end.push(' ');
            end.push_str(comment);
        }
    }
    end.push('\n');
    end
}

/// The comments of `text`, each on lines of its own, at most one empty line between two. Lines that
/// go on with a comment keep their place relative to its first.
fn comment_lines(text: &str, level: usize, gap: LeadingBlankLine) -> String {
    let indent = INDENT.repeat(level);
    let mut lines = String::new();
    let mut is_gap = false;
    let mut shift = 0;
    for (index, line) in text.split('\n').enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            is_gap |= index + 1 < text.split('\n').count();
            continue;
        }
        if is_gap && (gap == LeadingBlankLine::Kept || !lines.is_empty()) {
            lines.push('\n');
        }
        is_gap = false;
        let depth = line.len() - line.trim_start().len();
        if ["//", "/*", "/-"]
            .iter()
            .any(|mark| trimmed.starts_with(mark))
        {
            shift = depth;
            lines.push_str(&indent);
        } else {
            lines.push_str(&indent);
            lines.push_str(&" ".repeat(depth.saturating_sub(shift)));
        }
        lines.push_str(trimmed);
        lines.push('\n');
    }
    if is_gap && (gap == LeadingBlankLine::Kept || !lines.is_empty()) {
        lines.push('\n');
    }
    lines
}
