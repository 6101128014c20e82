//! Routers, services and other parts of all documents, by name.

use super::document::{Entry, Value};
use std::collections::{HashMap, HashSet};

/// Parts of one kind, in the order of the files.
#[derive(Debug, Default)]
pub(super) struct Parts<'d> {
    by_name: HashMap<&'d str, &'d Entry>,
    in_order: Vec<&'d Entry>,
    /// Names that several files define, which Traefik drops.
    twice: HashSet<&'d str>,
}

impl<'d> Parts<'d> {
    fn read(documents: &'d [Value], keys: &[&str]) -> Self {
        let mut parts = Self::default();
        for document in documents {
            let entries = document.at(keys).map_or(&[][..], Value::entries);
            for entry in entries {
                if parts.by_name.insert(&entry.key, entry).is_none() {
                    parts.in_order.push(entry);
                } else {
                    parts.twice.insert(&entry.key);
                }
            }
        }
        parts
    }

    /// The part that a reference such as `name` or `name@file` names; `None` for a name that several
    /// files define.
    pub(super) fn get(&self, reference: &str) -> Option<&'d Entry> {
        let name = reference.strip_suffix("@file").unwrap_or(reference);
        let found = self.by_name.get(name).copied();
        found.filter(|_| !self.is_twice(name))
    }

    pub(super) fn is_twice(&self, name: &str) -> bool {
        self.twice.contains(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'d Entry> {
        self.in_order.iter().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.in_order.is_empty()
    }
}

/// Parts of the given file and of the files that it names.
#[derive(Debug)]
pub(super) struct Configuration<'d> {
    pub(super) documents: &'d [Value],
    pub(super) routers: Parts<'d>,
    pub(super) services: Parts<'d>,
    pub(super) middlewares: Parts<'d>,
    pub(super) transports: Parts<'d>,
    pub(super) tcp_routers: Parts<'d>,
    pub(super) tcp_services: Parts<'d>,
    pub(super) tcp_middlewares: Parts<'d>,
    pub(super) tls_options: Parts<'d>,
    pub(super) entry_points: Parts<'d>,
    pub(super) resolvers: Parts<'d>,
}

impl<'d> Configuration<'d> {
    pub(super) fn new(documents: &'d [Value]) -> Self {
        let parts = |keys: &[&str]| Parts::read(documents, keys);
        Self {
            documents,
            routers: parts(&["http", "routers"]),
            services: parts(&["http", "services"]),
            middlewares: parts(&["http", "middlewares"]),
            transports: parts(&["http", "serversTransports"]),
            tcp_routers: parts(&["tcp", "routers"]),
            tcp_services: parts(&["tcp", "services"]),
            tcp_middlewares: parts(&["tcp", "middlewares"]),
            tls_options: parts(&["tls", "options"]),
            entry_points: parts(&["entryPoints"]),
            resolvers: parts(&["certificatesResolvers"]),
        }
    }
}
