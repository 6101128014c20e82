//! The order in which Caddy tries the directives of a block.

use super::matcher;
use super::parser::Directive;

/// Priority of the directives of a site that come first; the next kinds have one step less each.
const FIRST: u32 = 1_000;
const STEP: u32 = 100;

/// Position of a kind of content in Caddy's order of directives.
pub(super) fn rank(name: &str) -> Option<u32> {
    Some(match name {
        "redir" => 0,
        "handle" | "handle_path" => 1,
        "route" => 2,
        "abort" | "error" => 3,
        "respond" => 4,
        "reverse_proxy" => 5,
        "php_fastcgi" => 6,
        "file_server" => 7,
        _ => return None,
    })
}

/// Returns true if a directive holds for some requests of its block only.
pub(super) fn has_matcher(directive: &Directive) -> bool {
    let first = directive.word(1);
    let is_target = directive.name() == "redir" && directive.words.len() < 3;
    matcher::is_matcher(first) && first != "*" && !is_target
}

/// The contents of a block in the order in which they are tried: by kinds, or as written in a `route`.
pub(super) fn contents(block: &[Directive], is_written_order: bool) -> Vec<&Directive> {
    let mut contents: Vec<&Directive> = block
        .iter()
        .filter(|it| rank(it.name()).is_some())
        .collect();
    if !is_written_order {
        contents.sort_by_key(|it| rank(it.name()));
    }
    contents
}

/// Returns true if a directive for some requests stands after one of another kind that may take them before it. Routes
/// of one priority are tried by their conditions.
pub(super) fn matters(contents: &[&Directive], is_written_order: bool) -> bool {
    let mut first = None;
    let mut are_mixed = false;
    for directive in contents {
        let rank = rank(directive.name());
        let is_behind = first.is_some_and(|it| is_written_order || are_mixed || it != rank);
        if is_behind && has_matcher(directive) {
            return true;
        }
        are_mixed |= first.is_some_and(|it| it != rank);
        first = first.or(Some(rank));
    }
    false
}

/// The priority of a site's directive.
pub(super) fn priority(name: &str) -> Option<u32> {
    Some(FIRST.saturating_sub(STEP * rank(name)?))
}
