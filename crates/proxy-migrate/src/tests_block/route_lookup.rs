//! The routes that may take a request, found without a look at all of them.

use crate::site::{Listener, Path, Route, Site};
use crate::work;
use std::collections::HashMap;

/// A name below a wildcard, and a part of a path.
pub(super) const SAMPLE: &str = "sample";

/// Longest path that is looked up.
const MAX_PATH_BYTES: usize = 512;
/// Maximum number of keys of all routes. The rest counts as routes that take every request.
const MAX_KEYS: usize = 400_000;

/// Rank of conditions that are met as a whole.
const WHOLE: usize = usize::MAX;

/// The order in which routes are tried: priority, host, path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    priority: u32,
    host: usize,
    path: usize,
}

/// A condition on paths, as a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PathKey<'s> {
    Any,
    Exact(&'s str),
    /// Whole segments; without a slash at the end.
    Within(&'s str),
    Beginning(&'s str),
}

/// Conditions of a route that must all hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key<'s> {
    /// `None` for every listener.
    listener: Option<&'s str>,
    /// A host, a wildcard, or `None`.
    host: Option<&'s str>,
    path: PathKey<'s>,
}

/// The two routes of highest rank.
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

    /// The highest rank among other routes.
    fn besides(&self, route: usize) -> Option<Rank> {
        let both = [self.first, self.second].into_iter().flatten();
        let others = both.filter(|(_, it)| *it != route);
        others.map(|(rank, _)| rank).max()
    }
}

/// A request of a test.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample<'r> {
    pub(super) listener: &'r Listener,
    pub(super) host: &'r str,
    pub(super) path: &'r str,
}

/// The routes of a site by their conditions.
#[derive(Debug)]
pub(super) struct RoutesByCondition<'s> {
    by_key: HashMap<Key<'s>, TopTwo>,
    /// Routes with too many conditions for keys.
    anywhere: TopTwo,
    has_beginnings: bool,
    keys: usize,
}

impl<'s> RoutesByCondition<'s> {
    pub(super) fn new(site: &'s Site) -> Self {
        let mut lookup = Self {
            by_key: HashMap::new(),
            anywhere: TopTwo::default(),
            has_beginnings: false,
            keys: 0,
        };
        for (position, route) in site.routes.iter().enumerate() {
            lookup.add(position, route);
        }
        lookup
    }

    fn add(&mut self, position: usize, route: &'s Route) {
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
                host: WHOLE,
                path: WHOLE,
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

    /// Returns true if another route than that at `position` takes a request of it, or may do so.
    pub(super) fn takes(&self, position: usize, route: &Route, sample: Sample<'_>) -> bool {
        if sample.path.len() > MAX_PATH_BYTES || sample.host.len() > MAX_PATH_BYTES {
            return true;
        }
        let own = own_rank(route, sample);
        let mut highest = self.anywhere.besides(position);
        let listener = Some(sample.listener.name.as_str());
        // Routes without a listener take requests, not relayed connections.
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
                    highest = highest.max(best.and_then(|best| best.besides(position)));
                }
            }
        }
        highest.is_some_and(|rank| rank >= own)
    }

    /// The conditions that a path meets.
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

/// The conditions that a host meets: none, itself, and the wildcards that it is below.
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
        WHOLE
    }
}

/// A condition on paths with its rank; `None` for an expression, which is taken to match no sample.
fn path_key(path: &Path) -> Option<(PathKey<'_>, usize)> {
    Some(match path {
        Path::Exact(path) => (PathKey::Exact(path), WHOLE),
        Path::Beginning(text) => (PathKey::Beginning(text), WHOLE - 1),
        Path::Prefix(prefix) => {
            let stem = prefix.trim_end_matches('/');
            (PathKey::Within(stem), prefix.len())
        }
        Path::Regex(_) => return None,
    })
}

/// The rank of a route for a request of its own.
fn own_rank(route: &Route, sample: Sample<'_>) -> Rank {
    let is_met = |host: &&String| {
        let below = host.strip_prefix('*');
        below.map_or(host.as_str() == sample.host, |it| sample.host.ends_with(it))
    };
    let hosts = route.hosts.iter().filter(is_met);
    let paths = route.paths.iter().filter_map(|it| matched(it, sample.path));
    Rank {
        priority: priority(route),
        host: hosts.map(|host| host_rank(host)).max().unwrap_or(0),
        path: paths.max().unwrap_or(0),
    }
}

/// The rank of a condition that a path meets.
fn matched(condition: &Path, path: &str) -> Option<usize> {
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
            let taken = lookup.takes(own, &site.routes[own], sample);
            assert_eq!(taken, expected, "{host} {path:?}");
        }
    }

    #[test]
    fn a_look_up_takes_as_many_steps_among_many_routes() {
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
            work::steps_of(|| lookup.takes(7, &site.routes[7], sample)).0
        };
        assert_eq!(steps(10), steps(1_000));
    }
}
