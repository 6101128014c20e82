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
        if !route.matches.is_empty() || is_of_another(site, route, &path) {
            continue;
        }
        tests.extend(test(route, listener, &path));
    }
    tests
}

/// Whether a more specific route for the same requests has this path.
fn is_of_another(site: &Site, route: &Route, path: &str) -> bool {
    let mut others = site.routes.iter().filter(|other| other.name != route.name);
    others.any(|other| {
        let is_for_it = other.hosts.is_empty() || other.hosts == route.hosts;
        let has_path = other.paths.iter().any(|it| match it {
            Path::Exact(exact) => exact == path,
            Path::Prefix(prefix) => {
                prefix.len() > 1
                    && route.paths != other.paths
                    && format!("{path}/").starts_with(&format!("{}/", prefix.trim_end_matches('/')))
                    && !route.paths.iter().any(|own| matches!(own, Path::Exact(_)))
                    && longer(other, route)
            }
            Path::Regex(_) => false,
        });
        is_for_it && has_path
    })
}

fn longer(other: &Route, route: &Route) -> bool {
    let length = |route: &Route| {
        let prefixes = route.paths.iter().map(|path| match path {
            Path::Prefix(text) | Path::Exact(text) | Path::Regex(text) => text.len(),
        });
        prefixes.max().unwrap_or(0)
    };
    length(other) > length(route)
}

fn test(route: &Route, listener: &Listener, path: &str) -> Option<Node> {
    let host = match (&route.sample_host, route.hosts.first()) {
        (Some(host), _) | (None, Some(host)) => host.replace('*', SAMPLE),
        (None, None) => "other.test".to_owned(),
    };
    let url = url(listener, &host, path)?;
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
