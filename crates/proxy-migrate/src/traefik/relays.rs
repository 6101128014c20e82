//! Converts TCP routers to relays.

use super::configuration::Configuration;
use super::document::{Entry, Value};
use super::entry_points::{EntryPoint, EntryPoints};
use super::rule;
use super::tls::{self, Hosts};
use crate::site::{Relay, Route, Service, Site, Upstream};
use std::collections::{HashMap, HashSet};

/// A TCP router.
struct Router<'d> {
    entry: &'d Entry,
    /// Server names; `None` for a rule without a counterpart.
    hosts: Option<Vec<String>>,
    relay: Relay,
    /// Set if TLS is terminated at the listener.
    is_tls: bool,
    priority: u64,
}

/// Converts the TCP routers. Entry points with HTTP routers are HTTP listeners already.
pub(super) fn read(
    site: &mut Site,
    configuration: &Configuration<'_>,
    points: &EntryPoints<'_>,
    http_points: &HashSet<&str>,
) {
    let mut routers: Vec<Router<'_>> = configuration.tcp_routers.iter().map(router).collect();
    routers.sort_by_key(|router| std::cmp::Reverse(router.priority));
    let mut by_point: HashMap<&str, Vec<&Router<'_>>> = HashMap::new();
    for router in &routers {
        for point in points.for_router(site, router.entry) {
            by_point.entry(point.name).or_default().push(router);
        }
    }
    for point in &points.all {
        let point_routers = by_point.remove(point.name).unwrap_or_default();
        if http_points.contains(point.name) {
            for router in point_routers {
                note(
                    site,
                    router.entry,
                    "",
                    "a listener has requests or relays: write one with another port; until then it has no relay",
                );
            }
            continue;
        }
        relay(site, configuration, point, &point_routers);
    }
}

fn note(site: &mut Site, entry: &Entry, key: &str, advice: &str) {
    let shown = format!("tcp {} {key}", entry.key);
    site.note(&entry.place(), shown.trim_end(), advice);
}

fn router(entry: &Entry) -> Router<'_> {
    let written = entry.value.text_of("rule").unwrap_or_default();
    let own = entry.value.number_of("priority").filter(|it| *it > 0);
    let tls = entry.value.block("tls");
    let passes = tls.is_some_and(|tls| tls.is_on("passthrough"));
    Router {
        entry,
        hosts: hosts(written),
        relay: if passes {
            Relay::Passthrough
        } else {
            Relay::Tcp
        },
        is_tls: tls.is_some() && !passes,
        priority: own.unwrap_or(written.len() as u64),
    }
}

/// Server names of a rule; empty for all.
fn hosts(rule: &str) -> Option<Vec<String>> {
    let mut hosts = Vec::new();
    for alternative in rule::parse(rule)? {
        let [matcher] = alternative.as_slice() else {
            return None;
        };
        if matcher.name != "HostSNI" || matcher.is_negated {
            return None;
        }
        hosts.extend(matcher.arguments.iter().map(|it| it.to_ascii_lowercase()));
    }
    if hosts.iter().any(|host| host == "*") {
        hosts.clear();
    }
    Some(hosts)
}

/// Adds the listener and routes of an entry point. Stops at a router that cannot be converted,
/// because a later route would get that router's connections.
fn relay(
    site: &mut Site,
    configuration: &Configuration<'_>,
    point: &EntryPoint<'_>,
    routers: &[&Router<'_>],
) {
    let Some(first) = routers.first() else {
        return;
    };
    let relay = first.relay;
    let mut routes: Vec<Route> = Vec::new();
    let mut names = Hosts::default();
    for router in routers {
        let is_of_kind = router.relay == relay && router.is_tls == first.is_tls;
        let route = if is_of_kind {
            route(site, configuration, router)
        } else {
            None
        };
        let Some(mut route) = route else {
            note(
                site,
                router.entry,
                "",
                "it is not carried over; connections that reach it are refused until then",
            );
            break;
        };
        let is_for_all = route.hosts.is_empty();
        if !is_for_all {
            let position = u32::try_from(routes.len()).unwrap_or(u32::MAX);
            route.priority = Some(900_000_u32.saturating_sub(position));
        }
        route.listeners = vec![point.name.to_owned()];
        let resolver = router.entry.value.at(&["tls", "certResolver"]);
        names.resolver = names.resolver.or(resolver.and_then(Value::text));
        names.names.extend(route.hosts.iter().cloned());
        routes.push(route);
        if is_for_all {
            break;
        }
    }
    if routes.is_empty() {
        return;
    }
    let position = site.listeners.len();
    EntryPoints::relay(site, point, relay, first.is_tls);
    if first.is_tls {
        tls::write(site, configuration, position, point, &[names]);
    }
    for mut route in routes {
        route.name = site.route_name(&route.name);
        site.push_route(route);
    }
}

fn route(site: &mut Site, configuration: &Configuration<'_>, router: &Router<'_>) -> Option<Route> {
    let hosts = router.hosts.clone()?;
    let has_names = router.is_tls || router.relay == Relay::Passthrough;
    if !hosts.is_empty() && !has_names {
        return None;
    }
    let entry = router.entry;
    let own_tls = entry.value.block("tls").filter(|_| router.is_tls);
    if own_tls.is_some_and(|tls| tls::is_unwritten_check(configuration, tls)) {
        return None;
    }
    let upstream = upstream(site, configuration, entry)?;
    let mut route = Route::new(format!("tcp {}", entry.key), Service::Upstream(upstream));
    route.hosts = hosts;
    for reference in entry.value.texts_of("middlewares") {
        let middleware = configuration.tcp_middlewares.get(reference)?;
        let [kind] = middleware.value.entries() else {
            return None;
        };
        let is_list = matches!(
            kind.key.to_ascii_lowercase().as_str(),
            "ipallowlist" | "ipwhitelist"
        );
        let networks = kind.value.texts_of("sourceRange");
        if !is_list || networks.is_empty() || !route.policies.allow.is_empty() {
            note(
                site,
                entry,
                reference,
                "write `allow` or `deny` in the route's policies",
            );
            return None;
        }
        route.policies.allow = networks.into_iter().map(str::to_owned).collect();
    }
    Some(route)
}

/// Upstream of a router; `None` if its servers need more than relayed bytes.
fn upstream(site: &mut Site, configuration: &Configuration<'_>, router: &Entry) -> Option<String> {
    let reference = router.value.text_of("service")?;
    let service = configuration.tcp_services.get(reference)?;
    let balancer = service.value.get("loadBalancer")?;
    let needs_more = ["proxyProtocol", "serversTransport"];
    if needs_more.iter().any(|key| balancer.get(key).is_some()) {
        note(
            site,
            service,
            "",
            "its servers need a `PROXY` header or TLS of the proxy",
        );
        return None;
    }
    let mut upstream = Upstream::default();
    for server in balancer.get("servers").map_or(&[][..], Value::items) {
        let address = server.text_of("address")?;
        if server.is_on("tls") || !address.contains(':') {
            return None;
        }
        let address = address.replace("localhost:", "127.0.0.1:");
        upstream.targets.push((address, 1));
    }
    if upstream.targets.is_empty() {
        return None;
    }
    if let Some(same) = site.upstream_like(&upstream) {
        return Some(same);
    }
    upstream.name = site.upstream_name(&service.key);
    let name = upstream.name.clone();
    site.upstreams.push(upstream);
    Some(name)
}
