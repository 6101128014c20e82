//! Converts the matchers of a rule to conditions of routes.

use super::rule::Matcher;
use crate::kdl::Node;
use crate::site::{Path, Route, escaped};
use std::fmt::Write as _;

/// Maximum number of pairs of hosts or paths that are compared.
const MAX_PAIRS: usize = 4_096;

/// Conditions of different kinds must all hold; those of one kind are alternatives.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    pub(super) hosts: Vec<String>,
    pub(super) paths: Vec<Path>,
    methods: Vec<String>,
    /// Names and values of header fields.
    headers: Vec<(String, Option<String>)>,
    queries: Vec<(String, Option<String>)>,
    /// Set if a condition has no counterpart, so that more requests match than by the rule.
    pub(super) is_wider: bool,
}

impl Conditions {
    /// Conditions for a matcher without a counterpart.
    pub(super) fn unknown() -> Self {
        Self {
            is_wider: true,
            ..Self::default()
        }
    }

    /// Conditions of a matcher without negation.
    pub(super) fn from_matcher(matcher: &Matcher) -> Self {
        let mut conditions = Self::default();
        let arguments = matcher.arguments.as_slice();
        let is_whole = match matcher.name.as_str() {
            "Host" | "HostHeader" => {
                let names = arguments.iter().map(|name| name.to_ascii_lowercase());
                conditions.hosts = names
                    .map(|name| name.trim_end_matches('.').to_owned())
                    .collect();
                conditions.hosts.iter().all(|host| is_host(host))
            }
            "HostRegexp" => conditions.host_expressions(arguments),
            "Path" => conditions.paths(arguments, |path| Path::Exact(path.to_owned()), true),
            "PathPrefix" => conditions.paths(arguments, beginning, false),
            "PathRegexp" => {
                conditions.paths = arguments.iter().cloned().map(Path::Regex).collect();
                true
            }
            "Method" => {
                conditions.methods = arguments.to_vec();
                true
            }
            "Header" | "Headers" => match arguments {
                [name, value] => {
                    conditions.headers = vec![(name.to_ascii_lowercase(), Some(value.clone()))];
                    true
                }
                _ => false,
            },
            "Query" => match arguments {
                [name, value] => {
                    conditions.queries = vec![(name.clone(), Some(value.clone()))];
                    true
                }
                [pair] => {
                    let (name, value) = pair
                        .split_once('=')
                        .map_or((&**pair, None), |(a, b)| (a, Some(b)));
                    conditions.queries = vec![(name.to_owned(), value.map(str::to_owned))];
                    true
                }
                _ => false,
            },
            _ => false,
        };
        conditions.is_wider = !is_whole;
        conditions
    }

    /// Converts expressions such as `^.+\.example\.com$` to wildcards; returns true if they match
    /// the same hosts.
    fn host_expressions(&mut self, expressions: &[String]) -> bool {
        let mut is_whole = true;
        let mut wildcards = Vec::new();
        for expression in expressions {
            let (below, is_all) = match expression.split_once('}') {
                Some((variable, rest)) if variable.starts_with('{') => {
                    let is_all = variable.ends_with(":.+") || variable.ends_with(":.*");
                    (Some(rest.to_owned()), is_all)
                }
                _ => {
                    let rest = expression.strip_prefix('^').unwrap_or(expression);
                    let rest = rest.trim_end_matches('$');
                    let at = rest.find("\\.");
                    let (first, below) = rest.split_at(at.unwrap_or(rest.len()));
                    let is_plain = !below
                        .replace("\\.", "")
                        .contains(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
                    let is_anchored = expression.starts_with('^') && expression.ends_with('$');
                    let below = below.replace("\\.", ".");
                    let is_all = is_anchored && matches!(first, ".+" | ".*");
                    (is_plain.then_some(below), is_all)
                }
            };
            let below = below.filter(|it| it.strip_prefix('.').is_some_and(is_host));
            let Some(below) = below else {
                // Every host may match.
                self.hosts.clear();
                return false;
            };
            wildcards.push(format!("*{}", below.to_ascii_lowercase()));
            is_whole &= is_all;
        }
        self.hosts = wildcards;
        is_whole
    }

    /// Converts paths; variables of older versions become expressions.
    fn paths(&mut self, texts: &[String], plain: impl Fn(&str) -> Path, is_end: bool) -> bool {
        let end = if is_end { "$" } else { "" };
        for text in texts {
            if !text.contains('{') {
                self.paths.push(plain(text));
                continue;
            }
            let Some(expression) = with_variables(text) else {
                self.paths.clear();
                return false;
            };
            self.paths.push(Path::Regex(format!("^{expression}{end}")));
        }
        true
    }

    /// Combines two sets of conditions that must both hold; `None` if no request can meet both.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        let mut is_wider = self.is_wider || other.is_wider;
        let mut both = Self {
            hosts: common(&self.hosts, &other.hosts, &mut is_wider, common_host)?,
            paths: common(&self.paths, &other.paths, &mut is_wider, common_path)?,
            methods: common(&self.methods, &other.methods, &mut is_wider, equal)?,
            headers: joined(&self.headers, &other.headers, &mut is_wider),
            queries: joined(&self.queries, &other.queries, &mut is_wider),
            is_wider: false,
        };
        both.is_wider = is_wider;
        Some(both)
    }

    pub(super) fn write(&self, route: &mut Route) {
        route.hosts.clone_from(&self.hosts);
        route.paths.clone_from(&self.paths);
        let methods = self.methods.iter().map(|it| Node::text("method", it));
        let pair = |kind: &str, (name, value): &(String, Option<String>)| {
            let node = Node::text(kind, name);
            match value {
                Some(value) => node.arg(value),
                None => node,
            }
        };
        let headers = self.headers.iter().map(|it| pair("header", it));
        let queries = self.queries.iter().map(|it| pair("query-param", it));
        route.matches = methods.chain(headers).chain(queries).collect();
    }
}

fn is_host(text: &str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty() && bytes.all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
}

/// Every path that starts with a text.
fn beginning(text: &str) -> Path {
    if text.ends_with('/') {
        Path::Prefix(text.to_owned())
    } else {
        Path::Beginning(text.to_owned())
    }
}

/// Converts a path such as `/users/{id:[0-9]+}` to an expression.
fn with_variables(text: &str) -> Option<String> {
    let mut expression = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        expression.push_str(&escaped(before));
        let mut depth = 1_u32;
        let end = after.find(|c: char| {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        let (variable, behind) = after.split_at(end?);
        let pattern = variable.split_once(':').map_or("[^/]+", |(_, it)| it);
        _ = write!(expression, "(?:{pattern})");
        rest = behind.strip_prefix('}')?;
    }
    expression.push_str(&escaped(rest));
    Some(expression)
}

/// Intersection of two lists of alternatives; an empty list permits everything. `None` if the
/// intersection is empty. If it is unknown, keeps the first list and notes that.
fn common<T: Clone + PartialEq>(
    left: &[T],
    right: &[T],
    is_wider: &mut bool,
    both: impl Fn(&T, &T) -> Common<T>,
) -> Option<Vec<T>> {
    if left.is_empty() || right.is_empty() {
        return Some([left, right].concat());
    }
    if left.len().saturating_mul(right.len()) > MAX_PAIRS {
        *is_wider = true;
        return Some(left.to_vec());
    }
    let mut found: Vec<T> = Vec::new();
    for a in left {
        for b in right {
            match both(a, b) {
                Common::Nothing => {}
                Common::Is(part) if found.contains(&part) => {}
                Common::Is(part) => found.push(part),
                Common::Unknown => {
                    *is_wider = true;
                    return Some(left.to_vec());
                }
            }
        }
    }
    (!found.is_empty()).then_some(found)
}

enum Common<T> {
    Nothing,
    Is(T),
    Unknown,
}

fn equal(a: &String, b: &String) -> Common<String> {
    if a == b {
        Common::Is(a.clone())
    } else {
        Common::Nothing
    }
}

fn common_host(a: &String, b: &String) -> Common<String> {
    let is_below = |host: &str, wildcard: &str| {
        let below = wildcard.strip_prefix('*');
        below.is_some_and(|below| host.trim_start_matches('*').ends_with(below))
    };
    if a == b || is_below(a, b) {
        Common::Is(a.clone())
    } else if is_below(b, a) {
        Common::Is(b.clone())
    } else {
        Common::Nothing
    }
}

fn common_path(a: &Path, b: &Path) -> Common<Path> {
    let begins = |path: &str, with: &str| path.starts_with(with);
    match (a, b) {
        (a, b) if a == b => Common::Is(a.clone()),
        (Path::Regex(_), _) | (_, Path::Regex(_)) => Common::Unknown,
        (
            Path::Exact(path) | Path::Prefix(path) | Path::Beginning(path),
            Path::Prefix(with) | Path::Beginning(with),
        ) if begins(path, with) => Common::Is(a.clone()),
        (
            Path::Prefix(with) | Path::Beginning(with),
            Path::Exact(path) | Path::Prefix(path) | Path::Beginning(path),
        ) if begins(path, with) => Common::Is(b.clone()),
        _ => Common::Nothing,
    }
}

/// Combines conditions that must both hold, although a route treats those of one kind as
/// alternatives.
fn joined<T: Clone + PartialEq>(left: &[T], right: &[T], is_wider: &mut bool) -> Vec<T> {
    if left.is_empty() || left == right {
        return right.to_vec();
    }
    *is_wider |= !right.is_empty();
    left.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traefik::rule;

    fn conditions(rule: &str) -> Option<Conditions> {
        let alternatives = rule::parse(rule).unwrap();
        let mut matchers = alternatives[0].iter().map(Conditions::from_matcher);
        let first = matchers.next().unwrap();
        matchers.try_fold(first, |all, one| all.and(&one))
    }

    #[test]
    fn matchers_that_must_all_match_are_intersected() {
        for (rule, hosts, paths) in [
            ("Host(`A.test`) && Path(`/x`)", "a.test", "/x"),
            (
                "HostRegexp(`^.+\\.a\\.test$`) && Host(`b.a.test`)",
                "b.a.test",
                "",
            ),
            ("HostRegexp(`{sub:.+}.a.test`)", "*.a.test", ""),
            ("PathPrefix(`/a`) && PathPrefix(`/a/b`)", "", "/a/b"),
            ("PathPrefix(`/a`) && Path(`/ab`)", "", "/ab"),
            ("Path(`/u/{id:[0-9]{2}}`)", "", "^/u/(?:[0-9]{2})$"),
        ] {
            let found = conditions(rule).unwrap();
            assert!(!found.is_wider, "{rule}");
            assert_eq!(found.hosts.join(" "), hosts, "{rule}");
            let path = |path: &Path| match path {
                Path::Exact(text)
                | Path::Prefix(text)
                | Path::Beginning(text)
                | Path::Regex(text) => text.clone(),
            };
            let found: Vec<String> = found.paths.iter().map(path).collect();
            assert_eq!(found.join(" "), paths, "{rule}");
        }
        assert!(conditions("Host(`a`) && Host(`b`)").is_none());
        assert!(conditions("Path(`/a`) && PathPrefix(`/b`)").is_none());
    }

    #[test]
    fn matchers_without_a_counterpart_are_wider() {
        for rule in [
            "ClientIP(`10.0.0.0/8`)",
            "HostRegexp(`^[a-z]+\\.a\\.test$`)",
            "HostRegexp(`a`)",
            "HeaderRegexp(`X`, `y`)",
            "Header(`X`, `a`) && Header(`Y`, `b`)",
            "PathRegexp(`a`) && PathPrefix(`/b`)",
        ] {
            assert!(conditions(rule).unwrap().is_wider, "{rule}");
        }
    }
}
