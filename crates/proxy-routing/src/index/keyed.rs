//! Rules of one host and path, indexed by methods, headers or query parameters.

use super::candidate::Candidate;
use super::hash::Hash;
use super::table::Table;
use crate::head::Head;
use crate::rule::Rule;
use crate::rule::header_condition::HeaderCondition;
use crate::rule::query_condition::{QueryCondition, decoded, pairs};
use http::{HeaderMap, HeaderName, Method};
use std::collections::{BTreeMap, HashMap};

/// Candidates indexed by one kind of their conditions: of the kinds that a rule has, the one with
/// the smallest lists.
///
/// A rule is in the list of each alternative of that kind, so every request that matches it leads
/// to one of them. Lists are identified by hash alone; a false match costs one comparison.
#[derive(Debug)]
pub(crate) struct Keyed {
    table: Table,
    lists: Vec<(u64, Vec<Candidate>)>,
    header_names: Vec<HeaderName>,
    by_listener: bool,
    by_method: bool,
    by_query: bool,
}

/// The hashes of all alternatives of one kind of condition.
#[derive(Debug)]
struct Keys {
    hashes: Vec<u64>,
    kind: IndexKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndexKind {
    Header,
    Query,
    Method,
    Listener,
}

impl Keyed {
    /// Indexes candidates, which must all have conditions.
    pub(super) fn new(candidates: Vec<Candidate>, rules: &[Rule]) -> Self {
        let rule_of = |candidate: &Candidate| rules.get(candidate.bound.rule());
        let mut shared: HashMap<u64, usize> = HashMap::new();
        for keys in candidates.iter().filter_map(rule_of).flat_map(kinds_of) {
            for hash in keys.hashes {
                *shared.entry(hash).or_default() += 1;
            }
        }
        let mut lists: BTreeMap<u64, Vec<Candidate>> = BTreeMap::new();
        let (mut header_names, mut by_listener) = (Vec::new(), false);
        let (mut by_method, mut by_query) = (false, false);
        for candidate in candidates {
            let Some(rule) = rule_of(&candidate) else {
                continue;
            };
            let sharers =
                |keys: &Keys| keys.hashes.iter().filter_map(|hash| shared.get(hash)).sum();
            let Some(keys) = kinds_of(rule).min_by_key(|keys| -> usize { sharers(keys) }) else {
                continue;
            };
            match keys.kind {
                IndexKind::Header => {
                    header_names.extend(rule.headers.iter().map(|c| c.name().clone()));
                }
                IndexKind::Query => by_query = true,
                IndexKind::Method => by_method = true,
                IndexKind::Listener => by_listener = true,
            }
            for hash in keys.hashes {
                lists.entry(hash).or_default().push(candidate);
            }
        }
        header_names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        header_names.dedup();
        let hashes: Vec<u64> = lists.keys().copied().collect();
        Self {
            table: Table::new(&hashes),
            lists: lists.into_iter().collect(),
            header_names,
            by_listener,
            by_method,
            by_query,
        }
    }

    /// Calls `visit` with every list that may contain a rule for `head`; a list may be repeated.
    pub(crate) fn lists_for<'a>(&'a self, head: &Head<'_>, mut visit: impl FnMut(&'a [Candidate])) {
        let mut seen = VisitedLists::default();
        let mut look_up = |hash: Hash| {
            if let Some((id, list)) = self.list(hash)
                && seen.is_new(id)
            {
                visit(list);
            }
        };
        if self.by_listener {
            look_up(listener_key(head.listener));
        }
        if self.by_method {
            look_up(method_key(head.method));
        }
        self.header_keys(head.headers, &mut look_up);
        if self.by_query {
            for (name, value) in pairs(head.query) {
                look_up(query_key(decoded(name)));
                look_up(query_value_key(decoded(name), decoded(value)));
            }
        }
    }

    /// Lists that contain every rule that matches all requests of `rule`.
    pub(super) fn lists_around<'a>(
        &'a self,
        rule: &Rule,
    ) -> impl Iterator<Item = &'a [Candidate]> + use<'a> {
        let listener = rule.listeners.first().map(|name| listener_key(name));
        let method = rule.methods.first().map(method_key);
        let header = rule.headers.first();
        let query = rule.query_params.first();
        let keys = [
            listener,
            method,
            header.map(|condition| header_key(condition.name())),
            header.map(condition_of_header),
            query.map(|condition| query_key(condition.name().bytes())),
            query.map(condition_of_query),
        ];
        let lists = keys.into_iter().flatten();
        lists.filter_map(|hash| Some(self.list(hash)?.1))
    }

    /// All candidates, some of them repeatedly.
    pub(super) fn all(&self) -> impl Iterator<Item = &Candidate> {
        self.lists.iter().flat_map(|(_, list)| list)
    }

    /// Looks up the request's fields, or the rules' fields in the request, whichever are fewer.
    fn header_keys(&self, headers: &HeaderMap, look_up: &mut impl FnMut(Hash)) {
        if self.header_names.is_empty() {
            return;
        }
        if headers.len() < self.header_names.len() {
            for (name, value) in headers {
                look_up(header_key(name));
                look_up(header_value_key(name, value.as_bytes()));
            }
            return;
        }
        for name in &self.header_names {
            let mut lines = headers.get_all(name).iter().peekable();
            if lines.peek().is_some() {
                look_up(header_key(name));
            }
            for value in lines {
                look_up(header_value_key(name, value.as_bytes()));
            }
        }
    }

    fn list(&self, hash: Hash) -> Option<(u32, &[Candidate])> {
        let hash = hash.finish();
        let entry = |id| self.lists.get(usize::try_from(id).ok()?);
        let id = self
            .table
            .find(hash, |id| entry(id).is_some_and(|(own, _)| *own == hash))?;
        Some((id, &entry(id)?.1))
    }
}

/// Recently visited lists: a request that repeats a parameter a thousand times causes one visit.
#[derive(Debug)]
struct VisitedLists([u32; 32]);

impl VisitedLists {
    fn is_new(&mut self, id: u32) -> bool {
        let place = usize::try_from(id % 32).unwrap_or_default();
        let before = self
            .0
            .get_mut(place)
            .map(|slot| std::mem::replace(slot, id));
        before != Some(id)
    }
}

impl Default for VisitedLists {
    fn default() -> Self {
        Self([u32::MAX; 32])
    }
}

fn kinds_of(rule: &Rule) -> impl Iterator<Item = Keys> {
    let keys = |kind, hashes: Vec<Hash>| {
        let hashes = hashes.into_iter().map(Hash::finish).collect();
        Keys { hashes, kind }
    };
    let kinds = [
        keys(
            IndexKind::Header,
            rule.headers.iter().map(condition_of_header).collect(),
        ),
        keys(
            IndexKind::Query,
            rule.query_params.iter().map(condition_of_query).collect(),
        ),
        keys(
            IndexKind::Method,
            rule.methods.iter().map(method_key).collect(),
        ),
        keys(
            IndexKind::Listener,
            rule.listeners
                .iter()
                .map(|name| listener_key(name))
                .collect(),
        ),
    ];
    kinds.into_iter().filter(|keys| !keys.hashes.is_empty())
}

fn condition_of_header(condition: &HeaderCondition) -> Hash {
    match condition.value() {
        None => header_key(condition.name()),
        Some(value) => header_value_key(condition.name(), value.as_bytes()),
    }
}

fn condition_of_query(condition: &QueryCondition) -> Hash {
    let name = condition.name().bytes();
    match condition.value() {
        None => query_key(name),
        Some(value) => query_value_key(name, value.bytes()),
    }
}

fn listener_key(name: &str) -> Hash {
    Hash::from_bytes(*b"L").extend(name.bytes())
}

fn method_key(method: &Method) -> Hash {
    Hash::from_bytes(*b"M").extend(method.as_str().bytes())
}

fn header_key(name: &HeaderName) -> Hash {
    Hash::from_bytes(*b"H").extend(name.as_str().bytes())
}

fn header_value_key(name: &HeaderName, value: &[u8]) -> Hash {
    header_key(name).push(b':').extend(value.iter().copied())
}

fn query_key(name: impl Iterator<Item = u8>) -> Hash {
    Hash::from_bytes(*b"Q").extend(name)
}

fn query_value_key(name: impl Iterator<Item = u8>, value: impl Iterator<Item = u8>) -> Hash {
    query_key(name).push(b'=').extend(value)
}
