//! Matchers, as conditions of routes.

use super::parser::Directive;
use crate::kdl::Node;
use crate::site::{Path, Route};

/// Conditions of a matcher.
#[derive(Clone, Default)]
pub(super) struct Conditions {
    pub(super) paths: Vec<Path>,
    pub(super) hosts: Vec<String>,
    pub(super) matches: Vec<Node>,
}

impl Conditions {
    pub(super) fn write(self, route: &mut Route) {
        if !self.paths.is_empty() {
            route.paths = self.paths;
        }
        if !self.hosts.is_empty() {
            route.hosts = self.hosts;
        }
        route.matches.extend(self.matches);
    }
}

/// Whether a word is a matcher.
pub(super) fn is_matcher(word: &str) -> bool {
    word == "*" || word.starts_with('/') || word.starts_with('@')
}

/// The conditions of a matcher; `None` if they have no counterpart.
pub(super) fn conditions(word: &str, block: &[Directive]) -> Option<Conditions> {
    if word == "*" {
        return Some(Conditions::default());
    }
    if word.starts_with('/') {
        return Some(Conditions {
            paths: vec![path(word)?],
            ..Conditions::default()
        });
    }
    let mut found = Conditions::default();
    let defined = block.iter().filter(|it| it.name() == word);
    let mut is_defined = false;
    for definition in defined {
        is_defined = true;
        if definition.has_block {
            for line in &definition.block {
                add(&mut found, line.name(), line.arguments())?;
            }
        } else {
            add(&mut found, definition.word(1), definition.words.get(2..)?)?;
        }
    }
    is_defined.then_some(found)
}

fn add(found: &mut Conditions, kind: &str, words: &[String]) -> Option<()> {
    match kind {
        "path" => {
            for word in words {
                found.paths.push(path(word)?);
            }
        }
        "path_regexp" => found.paths.push(Path::Regex(words.last()?.clone())),
        "host" => found.hosts.extend(words.iter().cloned()),
        "method" => found
            .matches
            .extend(words.iter().map(|word| Node::text("method", word))),
        "header" => {
            let (name, value) = (words.first()?, words.get(1)?);
            if name.starts_with('!') || (value.contains('*') && value != "*") {
                return None;
            }
            let node = Node::text("header", name);
            found
                .matches
                .push(if value == "*" { node } else { node.arg(value) });
        }
        "query" => {
            for word in words {
                let (name, value) = word.split_once('=')?;
                let node = Node::text("query-param", name);
                found
                    .matches
                    .push(if value == "*" { node } else { node.arg(value) });
            }
        }
        _ => return None,
    }
    Some(())
}

/// `/a`, `/a*` and `/a/*`.
pub(super) fn path(word: &str) -> Option<Path> {
    let Some(stem) = word.strip_suffix('*') else {
        return (!word.contains('*')).then(|| Path::Exact(word.to_owned()));
    };
    if stem.contains('*') {
        return None;
    }
    if stem.ends_with('/') {
        return Some(Path::Prefix(stem.to_owned()));
    }
    let is_plain = stem
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"/-_".contains(&b));
    is_plain.then(|| Path::Regex(format!("^{stem}")))
}
