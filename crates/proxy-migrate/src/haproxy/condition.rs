//! Converts conditions of rules, which refer to access lists.

use super::parser::{Line, Section};
use crate::kdl::Node;
use crate::site::{Path, Route, escaped};

/// Maximum number of alternatives per rule.
const MAX_ALTERNATIVES: usize = 64;

/// A condition on requests.
#[derive(Clone, Default)]
pub(super) struct Condition {
    pub(super) hosts: Vec<String>,
    pub(super) paths: Vec<Path>,
    pub(super) matches: Vec<Node>,
    /// Networks of the clients.
    pub(super) sources: Vec<String>,
    /// Set if the condition requires a request without TLS.
    pub(super) is_plain: bool,
}

impl Condition {
    pub(super) fn write(self, route: &mut Route) {
        route.hosts = self.hosts;
        route.paths = self.paths;
        route.matches = self.matches;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.paths.is_empty() && self.matches.is_empty() && !self.is_plain
    }

    /// Returns true if the only condition is a request without TLS.
    pub(super) fn is_only_plain(&self) -> bool {
        let Self {
            hosts,
            paths,
            matches,
            sources,
            is_plain,
        } = self;
        let is_any = hosts.is_empty() && paths.is_empty() && matches.is_empty();
        *is_plain && is_any && sources.is_empty()
    }

    /// Combines two conditions that must both hold; `None` if both test the same thing, which a
    /// route cannot express.
    fn and(mut self, other: Self) -> Option<Self> {
        let is_twice = !(self.hosts.is_empty() || other.hosts.is_empty())
            || !(self.paths.is_empty() || other.paths.is_empty())
            || !(self.matches.is_empty() || other.matches.is_empty())
            || !(self.sources.is_empty() || other.sources.is_empty());
        self.hosts.extend(other.hosts);
        self.paths.extend(other.paths);
        self.matches.extend(other.matches);
        self.sources.extend(other.sources);
        self.is_plain |= other.is_plain;
        (!is_twice).then_some(self)
    }
}

/// Alternatives of a rule's condition; a rule without one has a single empty alternative. `None` if
/// a part has no counterpart.
pub(super) fn rule_conditions(line: &Line, section: &Section) -> Option<Vec<Condition>> {
    let start = line
        .words
        .iter()
        .position(|word| word == "if" || word == "unless");
    let Some(start) = start else {
        return Some(vec![Condition::default()]);
    };
    let mut words = line.words.get(start + 1..)?.to_vec();
    if line.words.get(start).is_some_and(|word| word == "unless") {
        negate(&mut words)?;
    }
    let mut alternatives = Vec::new();
    for terms in words.split(|word| word == "||" || word == "or") {
        alternatives.extend(all_of(terms, section)?);
    }
    (alternatives.len() <= MAX_ALTERNATIVES).then_some(alternatives)
}

/// Negates the words of a single term; `None` for several terms.
fn negate(words: &mut [String]) -> Option<()> {
    let (first, rest) = words.split_first_mut()?;
    let is_block = first.ends_with('{');
    let ends = rest.iter().position(|word| word == "}");
    let is_one = if is_block {
        ends.map(|at| at + 1) == Some(rest.len())
    } else {
        rest.is_empty()
    };
    *first = match first.strip_prefix('!') {
        Some(positive) => positive.to_owned(),
        None => format!("!{first}"),
    };
    is_one.then_some(())
}

/// Alternatives for terms that must all hold.
fn all_of(terms: &[String], section: &Section) -> Option<Vec<Condition>> {
    let mut all = vec![Condition::default()];
    let mut terms = terms.iter();
    while let Some(term) = terms.next() {
        let (is_negated, term) = match term.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, term.as_str()),
        };
        let tests = if term == "{" {
            let inner = terms.by_ref().take_while(|it| *it != "}");
            let inner: Vec<String> = inner.cloned().collect();
            vec![test(&inner, is_negated, section)?]
        } else {
            acl_conditions(term, is_negated, section)?
        };
        let mut joined = Vec::new();
        for condition in &all {
            for test in &tests {
                joined.push(condition.clone().and(test.clone())?);
            }
        }
        if joined.len() > MAX_ALTERNATIVES {
            return None;
        }
        all = joined;
    }
    Some(all)
}

/// Alternatives of an access list: one per line.
fn acl_conditions(name: &str, is_negated: bool, section: &Section) -> Option<Vec<Condition>> {
    let tests: Option<Vec<Condition>> = section
        .list(name)
        .map(|line| test(line.words.get(2..)?, is_negated, section))
        .collect();
    // A negated list requires that all of its lines fail.
    tests.filter(|tests| !tests.is_empty() && (!is_negated || tests.len() == 1))
}

/// Converts a test such as `path_beg -i /api`; `None` if it has no counterpart.
fn test(words: &[String], is_negated: bool, section: &Section) -> Option<Condition> {
    let mut condition = Condition::default();
    let (kind, words) = words.split_first()?;
    if section.is_relayed() {
        let words = Words::read(words).filter(|_| !is_negated)?;
        condition.hosts = server_names(kind, &words)?;
        return Some(condition);
    }
    if is_negated {
        condition.is_plain = kind == "ssl_fc";
        return condition.is_plain.then_some(condition);
    }
    let Words {
        method,
        ignores_case,
        values,
    } = Words::read(words)?;
    let (kind, method) = match (kind.as_str(), method) {
        (kind, None) => match kind.split_once('_') {
            Some(("path", method)) => ("path", method),
            Some(("hdr", "host")) => ("host", "str"),
            Some(("hdr", method)) if method.ends_with("(host)") => {
                ("host", method.strip_suffix("(host)")?)
            }
            _ => (kind, "str"),
        },
        (kind, Some(method)) => (kind, method),
    };
    match kind {
        "hdr(host)" | "req.hdr(host)" | "host" => {
            for value in values {
                condition.hosts.push(match method {
                    "str" => value.to_owned(),
                    "end" if value.starts_with('.') => format!("*{value}"),
                    _ => return None,
                });
            }
        }
        "path" => {
            for value in values {
                condition.paths.push(path(method, value, ignores_case)?);
            }
        }
        "method" if method == "str" => {
            let methods = values.iter().map(|it| Node::text("method", it));
            condition.matches.extend(methods);
        }
        "src" if method == "str" || method == "ip" => {
            let sources = values.iter().map(|it| (*it).to_owned());
            condition.sources.extend(sources);
        }
        _ => return None,
    }
    Some(condition)
}

/// Server names in a test of the TLS handshake; empty for a test that every handshake passes.
fn server_names(kind: &str, words: &Words<'_>) -> Option<Vec<String>> {
    let is_first = words.method.is_none_or(|method| method == "int");
    let method = match kind {
        "req.ssl_hello_type" | "req_ssl_hello_type" => {
            return (is_first && words.values == ["1"]).then(Vec::new);
        }
        "req.ssl_sni" | "req_ssl_sni" | "ssl_fc_sni" => words.method,
        "ssl_fc_sni_end" => Some("end"),
        _ => return None,
    };
    let name = |value: &&str| match method {
        None | Some("str") => Some((*value).to_owned()),
        // Without a leading dot, `-m end` also matches within a label.
        Some("end") => value.starts_with('.').then(|| format!("*{value}")),
        Some(_) => None,
    };
    words.values.iter().map(name).collect()
}

/// Words of a test after its kind.
struct Words<'w> {
    /// Argument of `-m`.
    method: Option<&'w str>,
    ignores_case: bool,
    values: Vec<&'w str>,
}

impl<'w> Words<'w> {
    /// Parses the words; `None` if a flag has no counterpart, or there is no value.
    fn read(words: &'w [String]) -> Option<Self> {
        let mut read = Self {
            method: None,
            ignores_case: false,
            values: Vec::new(),
        };
        let mut rest = words.iter().map(String::as_str);
        while let Some(word) = rest.next() {
            match word {
                "-i" => read.ignores_case = true,
                "-m" => read.method = Some(rest.next()?),
                "--" => {
                    read.values.extend(rest.by_ref());
                }
                word if word.starts_with('-') && read.values.is_empty() => return None,
                word => read.values.push(word),
            }
        }
        (!read.values.is_empty()).then_some(read)
    }
}

fn path(method: &str, value: &str, ignores_case: bool) -> Option<Path> {
    let regex = match method {
        "str" if !ignores_case => return Some(Path::Exact(value.to_owned())),
        "beg" if !ignores_case && value.ends_with('/') => {
            return Some(Path::Prefix(value.to_owned()));
        }
        "str" => format!("^{}$", escaped(value)),
        "beg" => format!("^{}", escaped(value)),
        "end" => format!("{}$", escaped(value)),
        "sub" => escaped(value),
        "reg" => value.to_owned(),
        _ => return None,
    };
    let flag = if ignores_case { "(?i)" } else { "" };
    Some(Path::Regex(format!("{flag}{regex}")))
}
