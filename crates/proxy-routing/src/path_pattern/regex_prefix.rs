//! Recognition of regexes that are equivalent to a prefix.

use crate::path::{PathError, forgiving_path};
use crate::path_pattern::parse_regex;
use regex_syntax::hir::{Dot, Hir, HirKind, Look};

/// The `path-prefix` that matches exactly the paths that `regex` matches: `/api` for `^/api(/.*)?$`
/// or `^/api(/|$)`, `/api/` for `^/api/` or `^/api/.*$`. `None` if there is none or the regex is
/// malformed; `^/api` has none, because it matches `/apix` too.
#[must_use]
pub fn regex_is_a_prefix(regex: &str) -> Option<String> {
    let tree = bare(&parse_regex(regex)?);
    let HirKind::Concat(parts) = tree.kind() else {
        return None;
    };
    let [start, literal, rest @ ..] = parts.as_slice() else {
        return None;
    };
    let HirKind::Literal(literal) = literal.kind() else {
        return None;
    };
    let text = std::str::from_utf8(&literal.0).ok()?;
    let open_end = is_open(rest);
    let fits = if text.ends_with('/') {
        open_end
    } else {
        ends_segment(rest)
    };
    let canonical = matches!(
        forgiving_path(text),
        (path, None | Some(PathError::EncodedSlash | PathError::Backslash)) if path == text
    );
    (*start.kind() == HirKind::Look(Look::Start) && fits && canonical).then(|| text.to_owned())
}

/// Returns true for `(/.*)?$`, and for `(/|$)` followed by anything.
fn ends_segment(rest: &[Hir]) -> bool {
    let [ending, after @ ..] = rest else {
        return false;
    };
    if let HirKind::Alternation(choices) = ending.kind() {
        let [slash, end] = choices.as_slice() else {
            return false;
        };
        let either_way = is_slash(slash) && is_end(std::slice::from_ref(end));
        return either_way && is_open(after);
    }
    let HirKind::Repetition(repetition) = ending.kind() else {
        return false;
    };
    let HirKind::Concat(parts) = repetition.sub.kind() else {
        return false;
    };
    let [slash, any @ ..] = parts.as_slice() else {
        return false;
    };
    let once_or_not = repetition.min == 0 && repetition.max == Some(1);
    once_or_not && is_slash(slash) && is_anything(any) && is_end(after)
}

/// Returns true if the rest of the path may be anything.
fn is_open(rest: &[Hir]) -> bool {
    match rest {
        [] => true,
        [any, end @ ..] => {
            is_anything(std::slice::from_ref(any)) && (end.is_empty() || is_end(end))
        }
    }
}

/// Returns true for `.*`, greedy or not: a canonical path has no line feed, which `.` does not
/// match.
fn is_anything(parts: &[Hir]) -> bool {
    let [part] = parts else {
        return false;
    };
    let HirKind::Repetition(repetition) = part.kind() else {
        return false;
    };
    let mut dots = [Dot::AnyByteExceptLF, Dot::AnyByte].into_iter();
    let is_dot = dots.any(|dot| *repetition.sub == Hir::dot(dot));
    repetition.min == 0 && repetition.max.is_none() && is_dot
}

fn is_end(parts: &[Hir]) -> bool {
    matches!(parts, [end] if *end.kind() == HirKind::Look(Look::End))
}

fn is_slash(part: &Hir) -> bool {
    matches!(part.kind(), HirKind::Literal(literal) if *literal.0 == *b"/")
}

/// `tree` without its groups.
fn bare(tree: &Hir) -> Hir {
    match tree.kind() {
        HirKind::Capture(group) => bare(&group.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(bare).collect()),
        HirKind::Alternation(choices) => Hir::alternation(choices.iter().map(bare).collect()),
        HirKind::Repetition(repetition) => Hir::repetition(repetition.with(bare(&repetition.sub))),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => tree.clone(),
    }
}
