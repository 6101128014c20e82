//! A route while the middlewares of its router are read.

use crate::kdl::Node;
use crate::site::{Route, Site};
use crate::traefik::document::{Entry, Value};
use std::collections::HashSet;

/// A route while the middlewares of its router are read.
#[derive(Debug)]
pub(crate) struct Draft<'s> {
    pub(crate) route: Route,
    pub(crate) is_tls: bool,
    /// The routes that come before it, for a part of its requests.
    pub(crate) before: Vec<Route>,
    /// Agents of the site.
    pub(crate) agents: &'s mut Agents,
    /// True if a redirect takes every request.
    pub(crate) is_answered: bool,
    pub(super) has_users: bool,
    pub(crate) count: usize,
}

/// Agents by their names, as nodes.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    pub(crate) nodes: Vec<Node>,
    pub(super) names: HashSet<String>,
}

/// A middleware cannot be converted: the way to do without it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unwritten(pub(super) &'static str);

/// A middleware of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Middleware<'d> {
    pub(crate) name: &'d str,
    pub(crate) kind: &'d Entry,
}

impl Middleware<'_> {
    pub(crate) fn settings(&self) -> &Value {
        &self.kind.value
    }

    pub(crate) fn note(&self, site: &mut Site, key: &str, advice: &str) {
        let shown = format!("{}: {} {key}", self.name, self.kind.key);
        site.note(&self.kind.place(), &shown, advice);
    }

    /// The value of the first key that is present.
    pub(crate) fn first_of(&self, keys: &[&'static str]) -> Option<&'static str> {
        let mut keys = keys.iter();
        keys.find(|key| self.settings().get(key).is_some()).copied()
    }
}

impl<'s> Draft<'s> {
    pub(crate) fn new(route: Route, is_tls: bool, agents: &'s mut Agents) -> Self {
        Self {
            route,
            is_tls,
            before: Vec::new(),
            agents,
            is_answered: false,
            has_users: false,
            count: 0,
        }
    }
}
