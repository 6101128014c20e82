//! Classification of `http-request` rules.

use super::parser::Line;
use crate::site::Rewrite;

/// Returns true if a rule answers requests, and so becomes a route.
pub(super) fn is_decision(line: &Line) -> bool {
    line.word(0) == "http-request" && matches!(line.word(1), "deny" | "redirect" | "return")
}

/// Rewrite of a rule without a condition: to a fixed path, or of a prefix.
pub(super) fn rewrite(line: &Line) -> Option<Rewrite> {
    if line.word(0) != "http-request" || line.has("if") || line.has("unless") {
        return None;
    }
    match line.word(1) {
        "set-path" => {
            let path = line.word(2);
            (!path.contains('%')).then(|| Rewrite::Path(path.to_owned()))
        }
        "replace-path" => replaced_prefix(line.word(2), line.word(3)),
        _ => None,
    }
}

/// Rewrite for `^/a/(.*)` to `/b/\1`, or `^/a(/.*)?` to `/b\1`.
fn replaced_prefix(regex: &str, format: &str) -> Option<Rewrite> {
    let regex = regex.strip_prefix('^').unwrap_or(regex);
    let regex = regex.strip_suffix('$').unwrap_or(regex);
    let forms = [("/(.*)", "/\\1"), ("(/.*)?", "\\1")];
    let (from, to) = forms
        .iter()
        .find_map(|(end, group)| regex.strip_suffix(end).zip(format.strip_suffix(group)))?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_~".contains(c);
    let is_path = |path: &str| path.chars().all(is_plain) && !path.ends_with('/');
    let is_below = to.is_empty() || to.starts_with('/');
    if !(from.starts_with('/') && is_below && is_path(from) && is_path(to)) {
        return None;
    }
    Some(if to.is_empty() {
        Rewrite::Strip(from.to_owned())
    } else {
        Rewrite::Replace(from.to_owned(), to.to_owned())
    })
}
