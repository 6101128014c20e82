//! Generates the block `tests`: one request for each route for which a request can be derived.

mod networks;
mod route_lookup;

use crate::kdl::Node;
use crate::site::{Listener, Path, Policies, Relay, Rewrite, Route, Service, Site};
use networks::Client;
use route_lookup::{RoutesByCondition, SAMPLE, Sample};
use std::collections::HashMap;

/// Generates a test for each route with a request that no other route takes.
pub(crate) fn tests(site: &Site) -> Vec<Node> {
    let lookup = RoutesByCondition::new(site);
    let listeners = site.listeners.iter().map(|it| (it.name.as_str(), it));
    let listeners: HashMap<&str, &Listener> = listeners.collect();
    let mut for_requests = site.listeners.iter().filter(|it| it.relay.is_none());
    let default = for_requests.next();
    let mut tests = Vec::new();
    for (position, route) in site.routes.iter().enumerate() {
        let listener = match route.listeners.first() {
            Some(name) => listeners.get(name.as_str()).copied(),
            None => default,
        };
        let Some((listener, path)) = listener.zip(path(route)) else {
            continue;
        };
        let host = host(route);
        let sample = Sample {
            listener,
            host: &host,
            path: &path,
        };
        if route.matches.is_empty() && !lookup.may_be_shadowed(position, route, sample) {
            tests.extend(test(route, sample));
        }
    }
    tests
}

/// Returns the path to request; `None` for a regular expression.
fn path(route: &Route) -> Option<String> {
    match route.paths.first() {
        None => Some(format!("/{SAMPLE}")),
        Some(Path::Exact(path)) => Some(path.clone()),
        Some(Path::Prefix(prefix) | Path::Beginning(prefix)) => {
            Some(format!("{}/{SAMPLE}", prefix.trim_end_matches('/')))
        }
        Some(Path::Regex(_)) => None,
    }
}

/// Returns the host to request.
fn host(route: &Route) -> String {
    match (&route.sample_host, route.hosts.first()) {
        (Some(host), _) | (None, Some(host)) => host.replace('*', SAMPLE),
        (None, None) => "other.test".to_owned(),
    }
}

fn test(route: &Route, sample: Sample<'_>) -> Option<Node> {
    let Sample {
        listener,
        host,
        path,
    } = sample;
    let (method, url) = match listener.relay {
        Some(relay) => ("TCP", relayed_url(listener, relay, host)?),
        None => ("GET", url(listener, host, path)?),
    };
    let mut expect = Node::new("expect").child(Node::text("route", &route.name));
    let client_ip = match networks::admitted_client(&route.policies)? {
        Client::Any => None,
        Client::Address(address) => Some(Node::text("client-ip", &address)),
    };
    let needs_password = route.policies.settings.iter().any(|it| it.is("basic-auth"));
    match &route.service {
        _ if needs_password => {
            expect = expect.child(Node::number("status", 401));
        }
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
    Some(
        Node::text("test", &title)
            .child(Node::new("request").arg(method).arg(&url))
            .child(Node::text("listener", &listener.name))
            .children(client_ip)
            .child(expect),
    )
}

/// Returns the URL of a relayed connection, with a server name if it has one.
fn relayed_url(listener: &Listener, relay: Relay, host: &str) -> Option<String> {
    let (_, port) = listener.address.rsplit_once(':')?;
    Some(if listener.is_tls || relay == Relay::Passthrough {
        format!("tls://{host}:{port}")
    } else {
        format!("tcp://127.0.0.1:{port}")
    })
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

/// Returns the path that the upstream receives; `None` without a rewrite.
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
        // No path is derived from an expression.
        Rewrite::Captures(_) => None,
    }
}
