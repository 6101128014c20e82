//! A route during the conversion of its router's middlewares.

use crate::kdl::Node;
use crate::site::{Route, Site};
use crate::traefik::document::{Entry, Value};
use std::collections::HashSet;

/// A route during the conversion of its router's middlewares.
#[derive(Debug)]
pub(crate) struct Draft<'s> {
    pub(crate) route: Route,
    pub(crate) is_tls: bool,
    /// Routes that must precede it, for some of its requests.
    pub(crate) before: Vec<Route>,
    /// Agents of the site.
    pub(crate) agents: &'s mut Agents,
    /// Set if a redirect answers every request.
    pub(crate) is_answered: bool,
    pub(super) has_users: bool,
    pub(crate) count: usize,
}

/// Agents by name, as nodes.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    pub(crate) nodes: Vec<Node>,
    pub(super) names: HashSet<String>,
}

/// Advice for a middleware that cannot be converted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unwritten(pub(super) &'static str);

/// A middleware with its kind.
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

    /// The first of `keys` that is present.
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
