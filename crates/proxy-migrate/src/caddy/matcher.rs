//! Converts matchers to conditions of routes.

use super::parser::Directive;
use crate::kdl::Node;
use crate::site::{Path, Route};
use crate::work;
use std::collections::HashMap;
use std::rc::Rc;

/// Conditions of a matcher.
#[derive(Clone, Default)]
pub(super) struct Conditions {
    pub(super) paths: Vec<Path>,
    pub(super) hosts: Vec<String>,
    pub(super) matches: Vec<Node>,
}

impl Conditions {
    /// Combines the conditions of a block with those of a block within it; `None` if a route cannot
    /// express both. Within `handle_path`, inner paths are relative to `stripped`.
    pub(super) fn within(&self, mut inner: Self, stripped: Option<&str>) -> Option<Self> {
        if let Some(prefix) = stripped {
            for path in &mut inner.paths {
                match path {
                    Path::Exact(text) | Path::Prefix(text) => text.insert_str(0, prefix),
                    Path::Beginning(_) | Path::Regex(_) => return None,
                }
            }
        }
        if inner.paths.is_empty() {
            inner.paths.clone_from(&self.paths);
        } else if !self.paths.is_empty() {
            let is_inside = |path: &Path| self.paths.iter().any(|outer| is_within(path, outer));
            if !inner.paths.iter().all(is_inside) {
                return None;
            }
        }
        if inner.hosts.is_empty() {
            inner.hosts.clone_from(&self.hosts);
        } else if !self.hosts.is_empty() && inner.hosts.iter().any(|it| !self.hosts.contains(it)) {
            return None;
        }
        // A route treats conditions of the same kind as alternatives.
        if !self.matches.is_empty() && !inner.matches.is_empty() {
            return None;
        }
        inner.matches.extend(self.matches.iter().cloned());
        Some(inner)
    }

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

fn is_within(path: &Path, outer: &Path) -> bool {
    match (path, outer) {
        (Path::Exact(path) | Path::Prefix(path), Path::Prefix(outer)) => path.starts_with(outer),
        (path, outer) => path == outer,
    }
}

/// Definitions of matchers that are visible at a place, by name.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    own: HashMap<String, Vec<Directive>>,
    /// Definitions of the enclosing blocks.
    outer: Option<Rc<Definitions>>,
}

impl Definitions {
    /// Definitions visible in a block, including those of the blocks around it.
    pub(super) fn within(outer: &Rc<Self>, block: &[Directive]) -> Rc<Self> {
        let mut own: HashMap<String, Vec<Directive>> = HashMap::new();
        for directive in block.iter().filter(|it| it.name().starts_with('@')) {
            let name = directive.name().to_owned();
            own.entry(name).or_default().push(directive.clone());
        }
        if own.is_empty() {
            return Rc::clone(outer);
        }
        Rc::new(Self {
            own,
            outer: Some(Rc::clone(outer)),
        })
    }

    /// Words of the single condition with a name; `None` if the definition has several lines.
    pub(super) fn only(&self, name: &str) -> Option<&[String]> {
        let definitions = self.named(name);
        let [definition] = definitions.as_slice() else {
            return None;
        };
        match definition.block.as_slice() {
            [line] if definition.words.len() == 1 && !line.has_block => Some(&line.words),
            [] => definition.words.get(1..),
            _ => None,
        }
    }

    /// Definitions with a name, outermost first.
    fn named(&self, name: &str) -> Vec<&Directive> {
        work::step();
        let outer = self.outer.as_ref();
        let mut found = outer.map(|outer| outer.named(name)).unwrap_or_default();
        found.extend(self.own.get(name).into_iter().flatten());
        found
    }
}

/// Returns true if a word refers to a matcher.
pub(super) fn is_matcher(word: &str) -> bool {
    word == "*" || word.starts_with('/') || word.starts_with('@')
}

/// Conditions of a matcher that is visible at this place; `None` if they have no counterpart.
pub(super) fn conditions(word: &str, definitions: &Definitions) -> Option<Conditions> {
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
    let mut is_defined = false;
    for definition in definitions.named(word) {
        is_defined = true;
        if definition.has_block {
            for line in &definition.block {
                add(&mut found, line.name(), line.arguments())?;
            }
        } else {
            add(&mut found, definition.word(1), definition.words.get(2..)?)?;
        }
    }
    let is_route = one_name(&found.matches, "header") && one_name(&found.matches, "query-param");
    (is_defined && is_route).then_some(found)
}

/// Returns true if all conditions of a kind have the same name. With several names, Caddy requires
/// all, but a route any of them.
fn one_name(matches: &[Node], kind: &str) -> bool {
    let mut of_kind = matches.iter().filter(|it| it.is(kind));
    let Some(first) = of_kind.next() else {
        return true;
    };
    of_kind.all(|it| it.first() == first.first())
}

fn add(found: &mut Conditions, kind: &str, words: &[String]) -> Option<()> {
    // A placeholder has a value for each request or each start.
    let is_placeholder = |word: &String| match kind {
        "path_regexp" => has_placeholder(word),
        _ => word.contains('{'),
    };
    if words.iter().any(is_placeholder) {
        return None;
    }
    match kind {
        "path" if found.paths.is_empty() => {
            for word in words {
                found.paths.push(path(word)?);
            }
        }
        "path_regexp" if found.paths.is_empty() => {
            found.paths.push(Path::Regex(words.last()?.clone()));
        }
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

/// Returns true if an expression has a brace that starts no number of repetitions.
fn has_placeholder(regex: &str) -> bool {
    let mut after = regex.split('{').skip(1);
    after.any(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Converts a path such as `/a`, `/a*` or `/a/*`; `None` for one with a placeholder.
pub(super) fn path(word: &str) -> Option<Path> {
    if word.contains('{') {
        return None;
    }
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
