//! The block `tests`: one request for each route, as far as one can be made up.

use crate::kdl::Node;
use crate::site::{Listener, Path, Policies, Rewrite, Route, Service, Site};

/// A name below a wildcard, and a part of a path.
const SAMPLE: &str = "sample";

/// A test for each route with a plain path.
pub(crate) fn tests(site: &Site) -> Vec<Node> {
    let mut tests = Vec::new();
    for route in &site.routes {
        let bound = route.listeners.first();
        let mut listeners = site.listeners.iter();
        let listener = match bound {
            Some(name) => listeners.find(|it| it.name == *name),
            None => listeners.next(),
        };
        let path = match route.paths.first() {
            None => Some(format!("/{SAMPLE}")),
            Some(Path::Exact(path)) => Some(path.clone()),
            Some(Path::Prefix(prefix)) => {
                Some(format!("{}/{SAMPLE}", prefix.trim_end_matches('/')))
            }
            Some(Path::Regex(_)) => None,
        };
        let Some((listener, path)) = listener.zip(path) else {
            continue;
        };
        let host = host(route);
        let is_taken = |other: &Route| takes(other, route, listener, &host, &path);
        if !route.matches.is_empty() || site.routes.iter().any(is_taken) {
            continue;
        }
        tests.extend(test(route, listener, &host, &path));
    }
    tests
}

/// The host of a route's test.
fn host(route: &Route) -> String {
    match (&route.sample_host, route.hosts.first()) {
        (Some(host), _) | (None, Some(host)) => host.replace('*', SAMPLE),
        (None, None) => "other.test".to_owned(),
    }
}

/// Whether another route takes a request of `route`, or may do so.
fn takes(other: &Route, route: &Route, listener: &Listener, host: &str, path: &str) -> bool {
    let is_bound = other.listeners.is_empty() || other.listeners.contains(&listener.name);
    if other.name == route.name || !is_bound {
        return false;
    }
    let has_host = other.hosts.iter().any(|it| it.replace('*', SAMPLE) == host);
    let path_length = other.paths.iter().filter_map(|it| matched(it, path)).max();
    let is_for_it =
        (other.hosts.is_empty() || has_host) && (other.paths.is_empty() || path_length.is_some());
    let rank = |route: &Route, length: Option<usize>| {
        let is_named = !route.hosts.is_empty();
        (route.priority.unwrap_or(50), is_named, length.unwrap_or(0))
    };
    let own_length = route.paths.iter().filter_map(|it| matched(it, path)).max();
    is_for_it && rank(other, path_length) >= rank(route, own_length)
}

/// The length of what a condition matches of a path; an exact path counts more than any prefix.
fn matched(condition: &Path, path: &str) -> Option<usize> {
    match condition {
        Path::Exact(exact) => (exact == path).then_some(usize::MAX),
        Path::Prefix(prefix) => {
            let stem = prefix.trim_end_matches('/');
            let is_within = path == stem || path.starts_with(&format!("{stem}/"));
            is_within.then_some(prefix.len())
        }
        Path::Regex(_) => None,
    }
}

fn test(route: &Route, listener: &Listener, host: &str, path: &str) -> Option<Node> {
    let url = url(listener, host, path)?;
    let mut expect = Node::new("expect").child(Node::text("route", &route.name));
    let allowed = route.policies.allow.first();
    match &route.service {
        Service::Upstream(name) => {
            expect = expect.child(Node::text("upstream", name));
            if let Some(sent) = sent_path(&route.policies, path) {
                expect = expect.child(Node::text("upstream-path", &sent));
            }
        }
        Service::Redirect { status, .. } | Service::Respond { status, .. } => {
            expect = expect.child(Node::number("status", u64::from(*status)));
        }
        Service::Static { .. } => {}
    }
    let title = format!("{url} is of {}", route.name);
    let client = allowed.map(|network| {
        let address = network.split('/').next().unwrap_or_default();
        Node::text("client-ip", address)
    });
    Some(
        Node::text("test", &title)
            .child(Node::new("request").arg("GET").arg(&url))
            .child(Node::text("listener", &listener.name))
            .children(client)
            .child(expect),
    )
}

fn url(listener: &Listener, host: &str, path: &str) -> Option<String> {
    let (scheme, default) = if listener.is_tls {
        ("https", "443")
    } else {
        ("http", "80")
    };
    let (_, port) = listener.address.rsplit_once(':')?;
    let is_default = port == default || listener.address.starts_with("unix:");
    let port = if is_default {
        String::new()
    } else {
        format!(":{port}")
    };
    let is_plain = path
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"/-._~".contains(&b));
    is_plain.then(|| format!("{scheme}://{host}{port}{path}"))
}

/// The path that the upstream gets.
fn sent_path(policies: &Policies, path: &str) -> Option<String> {
    let replaced = |from: &str, to: &str| {
        let rest = path.strip_prefix(from.trim_end_matches('/'))?;
        let sent = format!("{}{rest}", to.trim_end_matches('/'));
        Some(if sent.is_empty() {
            "/".to_owned()
        } else {
            sent
        })
    };
    match policies.rewrite.as_ref()? {
        Rewrite::Strip(prefix) => replaced(prefix, ""),
        Rewrite::Replace(from, to) => replaced(from, to),
        Rewrite::Path(path) => Some(path.clone()),
    }
}
