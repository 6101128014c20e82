//! Final checks of a site: parts that would make the whole result invalid are left out, or their
//! routes answer 501.

use crate::kdl::Node;
use crate::migrated::Place;
use crate::site::path_regex::{Converted, converted};
use crate::site::{Message, Path, Policies, Route, Service, Site, Upstream, header_fault};
use crate::units::is_network;
use std::collections::HashSet;

/// Settings of an upstream that may occur once; the last one is kept.
const SINGLE: &[&str] = &["load-balancing", "protocol", "send-proxy"];

/// Makes a site loadable. Changes are noted at the first line of the file, with the names of
/// routes.
pub(super) fn make_usable(site: &mut Site, file: &str) {
    let place = Place {
        file: file.to_owned(),
        line: 1,
    };
    for upstream in &mut site.upstreams {
        without_repetitions(upstream);
    }
    for listener in &mut site.listeners {
        name_proxies(&mut listener.settings);
    }
    let upstreams = site.upstreams.iter().map(|it| it.name.clone());
    let upstreams: HashSet<String> = upstreams.collect();
    let mut routes = std::mem::take(&mut site.routes);
    routes.retain_mut(|route| {
        let mut faults: Vec<&'static str> = Vec::new();
        let is_kept = hosts(route, &mut faults);
        paths(route, &mut faults);
        fields(&mut route.policies, &mut faults);
        if let Some(fault) = fault(route, &upstreams) {
            faults.push(fault);
            close(route);
        }
        for fault in faults {
            site.note(&place, &route.name, fault);
        }
        is_kept
    });
    site.routes = routes;
}

/// PROXY headers require the senders' addresses. Uses loopback if the file does not name them; the
/// note for the language asks the operator to set them.
fn name_proxies(settings: &mut Vec<Node>) {
    let has = |name: &str| settings.iter().any(|it| it.is(name));
    if has("proxy-protocol") && !has("trusted-proxies") {
        settings.push(Node::text("trusted-proxies", "127.0.0.1"));
    }
}

fn without_repetitions(upstream: &mut Upstream) {
    let mut targets: Vec<(String, u64)> = Vec::new();
    for (address, weight) in std::mem::take(&mut upstream.targets) {
        match targets.iter_mut().find(|(known, _)| *known == address) {
            Some((_, known)) => *known = known.saturating_add(weight).min(10_000),
            None => targets.push((address, weight)),
        }
    }
    upstream.targets = targets;
    for name in SINGLE {
        let count = upstream.settings.iter().filter(|it| it.is(name)).count();
        let mut seen = 0;
        upstream.settings.retain(|it| {
            seen += usize::from(it.is(name));
            !it.is(name) || seen == count
        });
    }
}

/// Removes ports from hosts; returns false if no host is left that a request can have.
fn hosts(route: &mut Route, faults: &mut Vec<&'static str>) -> bool {
    let had_some = !route.hosts.is_empty();
    for host in &mut route.hosts {
        if let Some((name, port)) = host.rsplit_once(':')
            && port.bytes().all(|b| b.is_ascii_digit())
            && !name.contains(':')
        {
            *host = name.to_owned();
        }
    }
    let is_host = |host: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-_*[]:".contains(c);
        !host.is_empty() && host.chars().all(plain)
    };
    let before = route.hosts.len();
    route.hosts.retain(is_host);
    if route.hosts.len() < before {
        faults.push("a host of it is not one that a request has, and is left out");
    }
    !(had_some && route.hosts.is_empty())
}

fn paths(route: &mut Route, faults: &mut Vec<&'static str>) {
    let mut is_wider = false;
    for path in &mut route.paths {
        let Path::Regex(text) = path else {
            continue;
        };
        match converted(text, false) {
            Converted::Same(same) => *text = same,
            Converted::Wider(wider) => {
                *text = wider;
                is_wider = true;
            }
        }
    }
    if is_wider {
        faults.push(
            "expressions have no look-around and no back references: without them it takes more paths, and answers 501 unless it refuses",
        );
        if !matches!(route.service, Service::Respond { status: 400.., .. }) {
            close(route);
        }
    }
}

fn fields(policies: &mut Policies, faults: &mut Vec<&'static str>) {
    for (fields, message) in [
        (&mut policies.request_headers, Message::Request),
        (&mut policies.response_headers, Message::Response),
    ] {
        fields.retain(|node| {
            let written = node.first().unwrap_or_default();
            let name = written.trim_matches('"');
            let fault = if node.is("preset") {
                None
            } else {
                header_fault(name, message)
            };
            faults.extend(fault);
            fault.is_none()
        });
    }
}

/// Reason why a route cannot be loaded; `None` if it can.
fn fault(route: &Route, upstreams: &HashSet<String>) -> Option<&'static str> {
    let Policies { allow, deny, .. } = &route.policies;
    if !allow.iter().chain(deny).all(|it| is_network(it)) {
        return Some("a network of it is not one, as `10.0.0.0/8`: it answers 501 until then");
    }
    match &route.service {
        Service::Upstream(name) if !upstreams.contains(name) => {
            Some("its upstream is not there: it answers 501 until then")
        }
        Service::Respond { status, .. } if !matches!(status, 200..=299 | 400..=599) => {
            Some("`respond` has statuses 2xx, 4xx and 5xx: it answers 501 until then")
        }
        Service::Redirect { to, status, .. } => {
            let is_status = matches!(status, 301 | 302 | 303 | 307 | 308);
            let is_target = to.as_deref().is_none_or(is_target);
            let is_whole = is_status && is_target;
            (!is_whole).then_some(
                "a redirect has a status of 301, 302, 303, 307 or 308 and a URL, or a part of one: it answers 501 until then",
            )
        }
        Service::Upstream(_) | Service::Respond { .. } | Service::Static { .. } => None,
    }
}

/// Returns true if a text is a path or a URL with a scheme.
fn is_target(to: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() && !"\"<>\\^`{|}".contains(c);
    let is_form = matches!(to, "http" | "https") || to.starts_with('/') || to.contains("://");
    is_form && to.chars().all(is_plain)
}

fn close(route: &mut Route) {
    route.service = Service::not_migrated();
    route.policies = Policies::default();
    route.agents.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_that_would_refuse_the_file_are_closed() {
        let mut site = Site::default();
        for service in [
            Service::Upstream("gone".to_owned()),
            Service::refusal(700),
            Service::Redirect {
                to: Some("a b".to_owned()),
                status: 301,
                replace_prefix: None,
            },
        ] {
            site.routes.push(Route::new("a".to_owned(), service));
        }
        let mut named = Route::new("b".to_owned(), Service::refusal(404));
        named.hosts = vec!["a.test:80".to_owned(), "b/c".to_owned()];
        named.paths = vec![Path::Regex("^/(?!(x|y)/)".to_owned())];
        let edit = Node::text("set", "Content-Length").arg("5");
        named.policies.response_headers.push(edit);
        site.routes.push(named);
        make_usable(&mut site, "x");
        let closed = site
            .routes
            .iter()
            .filter(|it| it.service == Service::not_migrated());
        assert_eq!(closed.count(), 3);
        let last = site.routes.last().map(|it| (&it.hosts, &it.paths));
        let expected = (
            &vec!["a.test".to_owned()],
            &vec![Path::Regex("^/".to_owned())],
        );
        assert_eq!(last, Some(expected));
        assert_eq!(site.notes.len(), 6, "{:?}", site.notes);
    }
}
