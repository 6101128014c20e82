//! Caddy's evaluation order of the directives in a block.

use super::matcher::{self, Definitions};
use super::parser::Directive;
use std::cmp::Reverse;

/// Priority of the directives that Caddy evaluates first; each further kind has one less.
const FIRST: u32 = 1_000;
const STEP: u32 = 100;

/// Position of a directive in Caddy's order; `None` if it produces no content.
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

/// Returns true if a directive applies to only some requests of its block.
pub(super) fn has_matcher(directive: &Directive) -> bool {
    let first = directive.word(1);
    let is_target = directive.name() == "redir" && directive.words.len() < 3;
    matcher::is_matcher(first) && first != "*" && !is_target
}

/// Returns true if a directive that Caddy evaluates after rewrites applies to only some requests.
pub(super) fn has_branches(block: &[Directive]) -> bool {
    let is_later = |it: &Directive| rank(it.name()).is_some_and(|rank| rank > 0);
    block
        .iter()
        .any(|it| is_later(it) && (has_matcher(it) || has_branches(&it.block)))
}

/// Directives with content in evaluation order: by kind, or as written within `route`.
pub(super) fn contents(block: &[Directive], is_written_order: bool) -> Vec<&Directive> {
    let mut contents: Vec<&Directive> = block
        .iter()
        .filter(|it| rank(it.name()).is_some())
        .collect();
    if !is_written_order {
        contents.sort_by_key(|it| {
            let path = Some(it.word(1)).filter(|word| word.starts_with('/') && has_matcher(it));
            let length = path.map_or(0, str::len);
            (rank(it.name()), Reverse(length), !has_matcher(it))
        });
    }
    contents
}

/// Returns true if two directives of one kind may apply to the same request, so that their order
/// decides: one has a matcher that is not a single path or hosts, or a check, which makes its route
/// a regular expression.
pub(super) fn is_mixed(contents: &[&Directive], definitions: &Definitions) -> bool {
    let mut with_matcher = contents.iter().filter(|it| has_matcher(it));
    let is_plain = |it: &&&Directive| {
        let word = it.word(1);
        word.starts_with('/') || definitions.only(word).is_some_and(is_plain_condition)
    };
    let is_any_mixed = with_matcher
        .clone()
        .any(|it| !is_plain(&it) || has_check(&it.block));
    is_any_mixed && with_matcher.nth(1).is_some()
}

fn has_check(block: &[Directive]) -> bool {
    block.iter().any(|it| {
        let is_refusal = matches!(it.name(), "respond" | "error" | "abort") && has_matcher(it);
        let is_login = matches!(it.name(), "basic_auth" | "basicauth" | "forward_auth");
        is_refusal || is_login || has_check(&it.block)
    })
}

fn is_plain_condition(words: &[String]) -> bool {
    match words {
        [kind, _] if kind == "path" => true,
        [kind, ..] => kind == "host",
        [] => false,
    }
}

/// Returns true if the order between kinds decides: a directive for some requests follows one of
/// another kind that may apply to the same requests. Routes of equal priority are ordered by their
/// conditions instead.
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

/// Priority of a site's directive, by its position in the evaluation order.
pub(super) fn priority(name: &str, position: usize) -> Option<u32> {
    let later = u32::try_from(position).unwrap_or(u32::MAX).min(STEP - 1);
    let first = FIRST.saturating_sub(STEP * rank(name)?);
    Some(first.saturating_sub(later))
}
