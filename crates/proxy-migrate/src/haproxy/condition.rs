//! Conditions of rules, from access lists.

use super::parser::{Line, Section};
use crate::kdl::Node;
use crate::site::{Path, Route};

/// The condition of a rule on requests.
#[derive(Clone, Default)]
pub(super) struct Condition {
    pub(super) hosts: Vec<String>,
    pub(super) paths: Vec<Path>,
    pub(super) matches: Vec<Node>,
    /// Networks of clients.
    pub(super) sources: Vec<String>,
    /// Only without TLS.
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
}

/// The alternatives of a rule's condition, one without conditions for a rule that has none; `None` if a
/// part of it has no counterpart.
pub(super) fn rule_conditions(line: &Line, section: &Section) -> Option<Vec<Condition>> {
    let start = line
        .words
        .iter()
        .position(|word| word == "if" || word == "unless");
    let Some(start) = start else {
        return Some(vec![Condition::default()]);
    };
    if line.words.get(start).is_some_and(|word| word == "unless") {
        return None;
    }
    let words = line.words.get(start + 1..)?;
    let mut alternatives = Vec::new();
    for terms in words.split(|word| word == "||" || word == "or") {
        let mut condition = Condition::default();
        let mut terms = terms.iter();
        while let Some(term) = terms.next() {
            let (is_negated, term) = match term.strip_prefix('!') {
                Some(rest) => (true, rest),
                None => (false, term.as_str()),
            };
            if term == "{" {
                let inner: Vec<String> = terms
                    .by_ref()
                    .take_while(|it| *it != "}")
                    .cloned()
                    .collect();
                add(&mut condition, &inner, is_negated)?;
                continue;
            }
            let lists = section.lines("acl").filter(|line| line.word(1) == term);
            let mut is_known = false;
            for list in lists {
                is_known = true;
                add(&mut condition, list.words.get(2..)?, is_negated)?;
            }
            if !is_known {
                return None;
            }
        }
        alternatives.push(condition);
    }
    Some(alternatives)
}

/// Adds a test such as `path_beg /api`.
fn add(condition: &mut Condition, words: &[String], is_negated: bool) -> Option<()> {
    let kind = words.first()?.as_str();
    let values = words
        .iter()
        .skip(1)
        .filter(|word| !matches!(word.as_str(), "-i" | "-m" | "str" | "--"));
    let values: Vec<&str> = values.map(String::as_str).collect();
    if is_negated {
        condition.is_plain = kind == "ssl_fc";
        return condition.is_plain.then_some(());
    }
    match kind {
        "hdr(host)" | "req.hdr(host)" | "hdr_host" => {
            condition
                .hosts
                .extend(values.iter().map(|it| (*it).to_owned()));
        }
        "hdr_end(host)" => {
            for value in values {
                let is_below = value.starts_with('.');
                condition.hosts.push(is_below.then(|| format!("*{value}"))?);
            }
        }
        "path" => condition
            .paths
            .extend(values.iter().map(|it| Path::Exact((*it).to_owned()))),
        "path_beg" => {
            for value in values {
                condition.paths.push(beginning(value)?);
            }
        }
        "path_end" => {
            for value in values {
                let dots = value.replace('.', "\\.");
                condition.paths.push(Path::Regex(format!("{dots}$")));
            }
        }
        "path_reg" => condition
            .paths
            .extend(values.iter().map(|it| Path::Regex((*it).to_owned()))),
        "method" => condition
            .matches
            .extend(values.iter().map(|it| Node::text("method", it))),
        "src" => condition
            .sources
            .extend(values.iter().map(|it| (*it).to_owned())),
        _ => return None,
    }
    Some(())
}

/// A beginning of paths, also in the middle of a segment.
fn beginning(value: &str) -> Option<Path> {
    if value.ends_with('/') {
        return Some(Path::Prefix(value.to_owned()));
    }
    let is_plain = value
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"/-_".contains(&b));
    is_plain.then(|| Path::Regex(format!("^{value}")))
}
