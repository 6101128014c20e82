//! Converts nginx's search order of locations to paths of routes.
//!
//! nginx prefers an exact path, then the longest prefix, unless an expression matches that is tried
//! for this prefix: first those of its own block, then those of the enclosing blocks, and none
//! beyond a prefix with `^~`. The proxy tries exact paths, then expressions in their order, then
//! the longest prefix. Therefore a prefix with expressions of its own becomes an expression as
//! well.

use crate::site::{Path, escaped};
use crate::work;
use std::collections::{HashMap, HashSet};

/// Maximum number of expressions within prefixes; a server's count for each of its prefixes.
const MAX_PATHS: usize = 100_000;

/// How a location compares paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathComparison {
    Exact,
    /// `^~`: a prefix after which no expressions are tried.
    PrefixFirst,
    Regex,
    Prefix,
}

/// A location with its parent.
#[derive(Clone, Debug)]
pub(super) struct Matcher {
    pub(super) kind: PathComparison,
    /// Path or expression.
    pub(super) text: String,
    /// Position of the enclosing location.
    pub(super) parent: Option<usize>,
}

/// A path with the position of the location that answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ordered {
    pub(super) path: Path,
    pub(super) location: usize,
    /// False if another location may answer the request; it cannot be determined which.
    pub(super) is_known: bool,
}

impl Ordered {
    fn new(path: Path, location: usize) -> Self {
        Self {
            path,
            location,
            is_known: true,
        }
    }
}

/// Paths of all locations, in the order in which the proxy tries routes.
pub(super) fn ordered(matchers: &[Matcher]) -> Vec<Ordered> {
    let mut found: Vec<Ordered> = Vec::new();
    let mut prefixes: Vec<(usize, &Matcher)> = Vec::new();
    let mut regexes = Regexes::new();
    for (at, matcher) in matchers.iter().enumerate() {
        work::step();
        match matcher.kind {
            PathComparison::Exact => {
                found.push(Ordered::new(Path::Exact(matcher.text.clone()), at));
            }
            PathComparison::Regex => regexes.entry(matcher.parent).or_default().push(at),
            PathComparison::Prefix | PathComparison::PrefixFirst => prefixes.push((at, matcher)),
        }
    }
    let is_first = |(at, matcher): &&(usize, &Matcher)| {
        let mut around = std::iter::successors(Some(*at), |it| parent(matchers, *it));
        let has_own = around.any(|it| regexes.contains_key(&Some(it)));
        has_own || (matcher.kind == PathComparison::PrefixFirst && !regexes.is_empty())
    };
    let first = prefixes.iter().filter(is_first);
    let first: HashSet<&str> = first.map(|(_, it)| it.text.as_str()).collect();
    let is_below = |text: &str| {
        let mut ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
        ends.any(|end| text.get(..end).is_some_and(|it| first.contains(it)))
    };
    let (mut before, after): (Vec<(usize, &Matcher)>, Vec<_>) =
        prefixes.into_iter().partition(|(_, it)| is_below(&it.text));
    before.sort_by_key(|(_, it)| std::cmp::Reverse(it.text.len()));
    for (at, matcher) in before {
        with_regexes(matchers, &regexes, at, matcher, &mut found);
    }
    for at in regexes.get(&None).into_iter().flatten() {
        if let Some(matcher) = matchers.get(*at) {
            found.push(Ordered::new(Path::Regex(matcher.text.clone()), *at));
        }
    }
    for (at, matcher) in after {
        found.push(Ordered::new(Path::Prefix(matcher.text.clone()), at));
    }
    found
}

/// Positions of expressions, by enclosing location.
type Regexes = HashMap<Option<usize>, Vec<usize>>;

fn parent(matchers: &[Matcher], at: usize) -> Option<usize> {
    matchers.get(at)?.parent
}

/// Adds the expressions that are tried for a prefix, restricted to it, and then the prefix.
fn with_regexes(
    matchers: &[Matcher],
    regexes: &Regexes,
    at: usize,
    prefix: &Matcher,
    found: &mut Vec<Ordered>,
) {
    let whole = Path::Regex(beginning(&prefix.text));
    let mut block = Some(at);
    let mut are_tried = true;
    loop {
        let own = regexes.get(&block).filter(|_| are_tried);
        for regex_at in own.into_iter().flatten() {
            work::step();
            let regex = matchers.get(*regex_at).map_or("", |it| &it.text);
            match within(&prefix.text, regex) {
                Within::Regex(text) if found.len() < MAX_PATHS => {
                    found.push(Ordered::new(Path::Regex(text), *regex_at));
                }
                Within::Nothing => {}
                Within::Regex(_) | Within::Unknown => {
                    found.push(Ordered {
                        path: whole,
                        location: at,
                        is_known: false,
                    });
                    return;
                }
            }
        }
        let Some(position) = block else {
            break;
        };
        let kind = matchers.get(position).map(|it| it.kind);
        are_tried = kind != Some(PathComparison::PrefixFirst);
        block = parent(matchers, position);
    }
    found.push(Ordered::new(whole, at));
}

/// Expression for the paths that begin with a text. Its group prevents it from counting as a plain
/// prefix, which would be tried after all expressions.
fn beginning(prefix: &str) -> String {
    format!("^(?:{})", escaped(prefix))
}

/// An expression, restricted to paths that begin with a prefix.
#[derive(Debug, PartialEq, Eq)]
enum Within {
    Regex(String),
    Nothing,
    Unknown,
}

fn within(prefix: &str, regex: &str) -> Within {
    let (flag, bare) = match regex.strip_prefix("(?i)") {
        Some(bare) => ("(?i)", bare),
        None => ("", regex),
    };
    if flag.is_empty()
        && let Some(anchored) = bare.strip_prefix('^')
    {
        let literal = literal(anchored);
        return if literal.starts_with(prefix) {
            Within::Regex(regex.to_owned())
        } else if prefix.starts_with(&literal) {
            Within::Unknown
        } else {
            Within::Nothing
        };
    }
    let literal = literal(bare);
    // An expression that starts within the prefix could match across its end.
    let mut ends = prefix.char_indices().filter_map(|(at, _)| prefix.get(at..));
    let may_cross = |end: &str| literal.starts_with(end) && end != "/";
    if bare.starts_with('^') || has_alternatives(bare) || ends.any(may_cross) {
        return Within::Unknown;
    }
    match prefix.strip_suffix('/') {
        Some(stem) if literal.starts_with('/') => {
            Within::Regex(format!("^{}(?:/.*)?{flag}{bare}", escaped(stem)))
        }
        _ => Within::Regex(format!("^{}.*{flag}{bare}", escaped(prefix))),
    }
}

/// Returns true if an expression has alternatives outside of groups, which could match anywhere.
fn has_alternatives(regex: &str) -> bool {
    let (mut depth, mut is_escaped) = (0_u32, false);
    for c in regex.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

/// Literal text at the start of an expression.
fn literal(regex: &str) -> String {
    let mut text = String::new();
    let mut chars = regex.chars().peekable();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next() {
                Some(c) if c.is_ascii_punctuation() => c,
                _ => break,
            },
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '|' | '^' | '$' => break,
            c => c,
        };
        if matches!(chars.peek(), Some('*' | '?' | '{')) {
            break;
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher(kind: PathComparison, text: &str, parent: Option<usize>) -> Matcher {
        Matcher {
            kind,
            text: text.to_owned(),
            parent,
        }
    }

    /// Paths with the positions of their locations.
    fn shown(matchers: &[Matcher]) -> Vec<String> {
        let ordered = ordered(matchers);
        let shown = ordered.iter().map(|it| {
            let path = match &it.path {
                Path::Exact(path) => format!("= {path}"),
                Path::Prefix(path) | Path::Beginning(path) => path.clone(),
                Path::Regex(regex) => format!("~ {regex}"),
            };
            let known = if it.is_known { "" } else { " ?" };
            format!("{path} {}{known}", it.location)
        });
        shown.collect()
    }

    #[test]
    fn prefixes_stay_without_expressions() {
        let matchers = [
            matcher(PathComparison::PrefixFirst, "/a/", None),
            matcher(PathComparison::Prefix, "/", None),
            matcher(PathComparison::Exact, "/b", None),
        ];
        assert_eq!(shown(&matchers), ["= /b 2", "/a/ 0", "/ 1"]);
    }

    #[test]
    fn the_longest_prefix_decides_before_an_expression_is_tried() {
        let matchers = [
            matcher(PathComparison::PrefixFirst, "/a/", None),
            matcher(PathComparison::PrefixFirst, "/a/b/", None),
            matcher(PathComparison::Prefix, "/a/c/", None),
            matcher(PathComparison::Regex, r"\.php$", None),
            matcher(PathComparison::Prefix, "/", None),
        ];
        assert_eq!(
            shown(&matchers),
            [
                "~ ^(?:/a/b/) 1",
                r"~ ^/a/c/.*\.php$ 3",
                "~ ^(?:/a/c/) 2",
                "~ ^(?:/a/) 0",
                r"~ \.php$ 3",
                "/ 4"
            ]
        );
    }

    #[test]
    fn expressions_of_a_block_hold_within_it_only() {
        let matchers = [
            matcher(PathComparison::Prefix, "/a/", None),
            matcher(PathComparison::Regex, r"/\.", Some(0)),
            matcher(PathComparison::Regex, r"\.php$", None),
            matcher(PathComparison::Prefix, "/", None),
        ];
        assert_eq!(
            shown(&matchers),
            [
                r"~ ^/a(?:/.*)?/\. 1",
                r"~ ^/a/.*\.php$ 2",
                "~ ^(?:/a/) 0",
                r"~ \.php$ 2",
                "/ 3"
            ]
        );
    }

    #[test]
    fn paths_of_an_expression_within_a_prefix() {
        for (prefix, regex, expected) in [
            ("/a/", r"^/a/b", Within::Regex("^/a/b".to_owned())),
            ("/a/", "^/b", Within::Nothing),
            ("/a/", "^/(a|b)/", Within::Unknown),
            ("/a/", "a/b", Within::Unknown),
            (
                "/a/",
                r"(?i)\.png$",
                Within::Regex(r"^/a/.*(?i)\.png$".to_owned()),
            ),
            ("/a", "/b", Within::Regex("^/a.*/b".to_owned())),
            (
                "/a/",
                r"\.(b|c)$",
                Within::Regex(r"^/a/.*\.(b|c)$".to_owned()),
            ),
            ("/a/", "b|c", Within::Unknown),
        ] {
            assert_eq!(within(prefix, regex), expected, "{prefix} {regex}");
        }
    }
}
