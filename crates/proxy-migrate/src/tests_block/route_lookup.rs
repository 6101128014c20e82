//! Index of routes by their conditions: finds the routes that may take a request without comparing
//! all of them.

use crate::site::{Listener, Path, Route, Site};
use crate::work;
use regex_automata::meta::Regex;
use std::collections::HashMap;

/// Name in place of a wildcard, and segment below a path prefix.
pub(super) const SAMPLE: &str = "sample";

/// Maximum length of a path to look up; longer ones may be taken by any route.
const MAX_PATH_BYTES: usize = 512;
/// Maximum number of keys of all routes. Routes beyond it are assumed to take every request.
const MAX_KEYS: usize = 400_000;

/// Maximum number of compiled expressions. If there are more, only routes with exact paths get
/// tests.
const MAX_REGEXES: usize = 200;

/// Rank of an exact match of a path or host.
const EXACT_RANK: usize = usize::MAX;

/// Order in which routes are tried: by priority, host, and path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    priority: u32,
    host: usize,
    path: usize,
}

/// Hash key of a condition on paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PathKey<'s> {
    Any,
    Exact(&'s str),
    /// Prefix of whole segments, without a slash at the end.
    Within(&'s str),
    Beginning(&'s str),
}

/// Conditions of a route, all of which must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key<'s> {
    /// `None` for every listener.
    listener: Option<&'s str>,
    /// Host or wildcard; `None` for every host.
    host: Option<&'s str>,
    path: PathKey<'s>,
}

/// Two routes with the highest ranks.
#[derive(Clone, Copy, Debug, Default)]
struct TopTwo {
    first: Option<(Rank, usize)>,
    second: Option<(Rank, usize)>,
}

impl TopTwo {
    fn add(&mut self, rank: Rank, route: usize) {
        match self.first {
            Some((_, first)) if first == route => self.first = self.first.max(Some((rank, route))),
            Some((highest, _)) if rank <= highest => {
                self.second = self.second.max(Some((rank, route)));
            }
            _ => (self.second, self.first) = (self.first, Some((rank, route))),
        }
    }

    /// Returns the highest rank of another route than `route`.
    fn highest_except(&self, route: usize) -> Option<Rank> {
        let both = [self.first, self.second].into_iter().flatten();
        let others = both.filter(|(_, it)| *it != route);
        others.map(|(rank, _)| rank).max()
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sample<'r> {
    pub(super) listener: &'r Listener,
    pub(super) host: &'r str,
    pub(super) path: &'r str,
}

/// Index of a site's routes by their conditions.
#[derive(Debug)]
pub(super) struct RoutesByCondition<'s> {
    by_key: HashMap<Key<'s>, TopTwo>,
    /// Routes that have too many conditions for keys.
    anywhere: TopTwo,
    /// Routes with compiled expressions.
    regexes: Vec<(usize, Regex, &'s Route)>,
    /// Whether there are expressions that were not compiled.
    has_more_regexes: bool,
    has_beginnings: bool,
    keys: usize,
}

impl<'s> RoutesByCondition<'s> {
    pub(super) fn new(site: &'s Site) -> Self {
        let mut lookup = Self {
            by_key: HashMap::new(),
            anywhere: TopTwo::default(),
            regexes: Vec::new(),
            has_more_regexes: false,
            has_beginnings: false,
            keys: 0,
        };
        for (position, route) in site.routes.iter().enumerate() {
            lookup.add(position, route);
        }
        lookup
    }

    fn add(&mut self, position: usize, route: &'s Route) {
        for path in &route.paths {
            let Path::Regex(text) = path else {
                continue;
            };
            match Regex::new(text) {
                Ok(regex) if self.regexes.len() < MAX_REGEXES => {
                    self.regexes.push((position, regex, route));
                }
                Ok(_) | Err(_) => self.has_more_regexes = true,
            }
        }
        let paths: Vec<(PathKey<'s>, usize)> = match route.paths.as_slice() {
            [] => vec![(PathKey::Any, 0)],
            paths => paths.iter().filter_map(path_key).collect(),
        };
        let listeners: Vec<Option<&str>> = match route.listeners.as_slice() {
            [] => vec![None],
            names => names.iter().map(|name| Some(name.as_str())).collect(),
        };
        let hosts: Vec<Option<&str>> = match route.hosts.as_slice() {
            [] => vec![None],
            hosts => hosts.iter().map(|host| Some(host.as_str())).collect(),
        };
        let priority = priority(route);
        let keys = paths.len().saturating_mul(listeners.len());
        self.keys = self.keys.saturating_add(keys.saturating_mul(hosts.len()));
        if self.keys > MAX_KEYS {
            let rank = Rank {
                priority,
                host: EXACT_RANK,
                path: EXACT_RANK,
            };
            self.anywhere.add(rank, position);
            return;
        }
        for (path, path_rank) in paths {
            self.has_beginnings |= matches!(path, PathKey::Beginning(_));
            for listener in &listeners {
                for host in &hosts {
                    work::step();
                    let rank = Rank {
                        priority,
                        host: host.map_or(0, host_rank),
                        path: path_rank,
                    };
                    let key = Key {
                        listener: *listener,
                        host: *host,
                        path,
                    };
                    self.by_key.entry(key).or_default().add(rank, position);
                }
            }
        }
    }

    /// Returns true if another route takes the request of the route at `position`, or possibly
    /// does.
    pub(super) fn may_be_shadowed(
        &self,
        position: usize,
        route: &Route,
        sample: Sample<'_>,
    ) -> bool {
        if sample.path.len() > MAX_PATH_BYTES || sample.host.len() > MAX_PATH_BYTES {
            return true;
        }
        let own = own_rank(route, sample);
        let mut highest = self.anywhere.highest_except(position);
        let listener = Some(sample.listener.name.as_str());
        // Routes without a listener take requests, but no relayed connections.
        let all = sample.listener.relay.is_none().then_some(None);
        let paths = self.paths_of(sample.path);
        for host in hosts_of(sample.host) {
            for listener in [Some(listener), all].into_iter().flatten() {
                for path in &paths {
                    work::step();
                    let key = Key {
                        listener,
                        host: host.as_deref(),
                        path: *path,
                    };
                    let best = self.by_key.get(&key);
                    highest = highest.max(best.and_then(|best| best.highest_except(position)));
                }
            }
        }
        highest.is_some_and(|rank| rank >= own) || self.may_match(position, own, sample)
    }

    /// Returns true if another route's expression matches the request with the same rank or a
    /// higher one.
    fn may_match(&self, position: usize, own: Rank, sample: Sample<'_>) -> bool {
        let is_exact = own.path == EXACT_RANK;
        if self.has_more_regexes && !is_exact {
            return true;
        }
        let listener = sample.listener.name.as_str();
        self.regexes.iter().any(|(other, regex, route)| {
            work::step();
            let hosts = route.hosts.iter();
            let host = hosts.filter(|host| host_matches(host, sample.host));
            let host = match route.hosts.as_slice() {
                [] => Some(0),
                _ => host.map(|host| host_rank(host)).max(),
            };
            let is_of_listener =
                route.listeners.is_empty() || route.listeners.iter().any(|it| it == listener);
            *other != position
                && is_of_listener
                && host.is_some_and(|host| {
                    let rank = Rank {
                        priority: priority(route),
                        host,
                        path: EXACT_RANK - 1,
                    };
                    rank >= own
                })
                && regex.is_match(sample.path)
        })
    }

    /// Returns the keys that a path matches.
    fn paths_of<'p>(&self, path: &'p str) -> Vec<PathKey<'p>> {
        let mut keys = vec![PathKey::Any, PathKey::Exact(path), PathKey::Within(path)];
        for (at, c) in path.char_indices() {
            let (before, _) = path.split_at(at);
            if c == '/' {
                keys.push(PathKey::Within(before));
            }
            if self.has_beginnings {
                keys.push(PathKey::Beginning(before));
            }
        }
        keys.push(PathKey::Beginning(path));
        keys
    }
}

fn priority(route: &Route) -> u32 {
    route.priority.unwrap_or(50)
}

/// Returns the keys that a host matches: none, itself, and wildcards above it.
fn hosts_of(host: &str) -> Vec<Option<String>> {
    let dots = host.char_indices().filter(|(_, c)| *c == '.');
    let below = dots.filter_map(|(at, _)| host.get(at..));
    let wildcards = below.map(|rest| Some(format!("*{rest}")));
    [None, Some(host.to_owned())]
        .into_iter()
        .chain(wildcards)
        .collect()
}

fn host_rank(host: &str) -> usize {
    if host.contains('*') {
        host.len()
    } else {
        EXACT_RANK
    }
}

/// Returns the key and rank of a condition on paths; `None` for an expression.
fn path_key(path: &Path) -> Option<(PathKey<'_>, usize)> {
    Some(match path {
        Path::Exact(path) => (PathKey::Exact(path), EXACT_RANK),
        Path::Beginning(text) => (PathKey::Beginning(text), EXACT_RANK - 1),
        Path::Prefix(prefix) => {
            let stem = prefix.trim_end_matches('/');
            (PathKey::Within(stem), prefix.len())
        }
        Path::Regex(_) => return None,
    })
}

/// Returns true if a host matches a condition.
fn host_matches(condition: &str, host: &str) -> bool {
    let below = condition.strip_prefix('*');
    below.map_or(condition == host, |it| host.ends_with(it))
}

/// Returns the rank of a route for its own request.
fn own_rank(route: &Route, sample: Sample<'_>) -> Rank {
    let hosts = route
        .hosts
        .iter()
        .filter(|it| host_matches(it, sample.host));
    let paths = route
        .paths
        .iter()
        .filter_map(|it| matching_rank(it, sample.path));
    Rank {
        priority: priority(route),
        host: hosts.map(|host| host_rank(host)).max().unwrap_or(0),
        path: paths.max().unwrap_or(0),
    }
}

/// Returns the rank of a condition; `None` if the path does not match it.
fn matching_rank(condition: &Path, path: &str) -> Option<usize> {
    let (key, rank) = path_key(condition)?;
    let is_met = match key {
        PathKey::Any => true,
        PathKey::Exact(exact) => exact == path,
        PathKey::Beginning(text) => path.starts_with(text),
        PathKey::Within(stem) => {
            let rest = path.strip_prefix(stem);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
    };
    is_met.then_some(rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::Service;

    fn route(site: &mut Site, host: &str, path: Path) -> usize {
        let name = site.route_name("a");
        let mut route = Route::new(name, Service::not_migrated());
        route.hosts = vec![host.to_owned()];
        route.paths = vec![path];
        site.push_route(route);
        site.routes.len() - 1
    }

    #[test]
    fn a_route_of_higher_rank_takes_the_request() {
        let prefix = |text: &str| Path::Prefix(text.to_owned());
        for (host, path, expected) in [
            ("a.test", prefix("/a/b"), true),
            ("a.test", prefix("/"), false),
            ("a.test", prefix("/a"), true),
            ("a.test", Path::Beginning("/a/sam".to_owned()), true),
            ("a.test", Path::Exact("/a/sample".to_owned()), true),
            ("*.test", Path::Exact("/a/sample".to_owned()), false),
            ("b.test", Path::Exact("/a/sample".to_owned()), false),
        ] {
            let mut site = Site::default();
            let own = route(&mut site, "a.test", prefix("/a"));
            route(&mut site, host, path.clone());
            let listener = Listener::default();
            let path_of_sample = if path == prefix("/a/b") {
                "/a/b/sample"
            } else {
                "/a/sample"
            };
            let sample = Sample {
                listener: &listener,
                host: "a.test",
                path: path_of_sample,
            };
            let lookup = RoutesByCondition::new(&site);
            let taken = lookup.may_be_shadowed(own, &site.routes[own], sample);
            assert_eq!(taken, expected, "{host} {path:?}");
        }
    }

    #[test]
    fn a_look_up_takes_constant_steps_for_any_number_of_routes() {
        let steps = |count: usize| {
            let mut site = Site::default();
            for number in 0..count {
                route(&mut site, "a.test", Path::Prefix(format!("/{number}/")));
            }
            let listener = Listener::default();
            let sample = Sample {
                listener: &listener,
                host: "a.test",
                path: "/7/sample",
            };
            let lookup = RoutesByCondition::new(&site);
            work::steps_of(|| lookup.may_be_shadowed(7, &site.routes[7], sample)).0
        };
        assert_eq!(steps(10), steps(1_000));
    }
}
