//! Converts TCP frontends to listeners that relay connections, and to routes by server name.

use super::advice::advice;
use super::condition::{self, Condition};
use super::connection_rules;
use super::frontend::{Frontend, bind};
use super::parser::{Line, Section};
use crate::kdl::Node;
use crate::site::{Policies, Relay, Route, Service, Site};
use crate::units;
use std::collections::HashSet;
use std::rc::Rc;

/// Reads the frontends and `listen` sections in `mode tcp`, with their defaults. `usable` has the
/// names of backends that became upstreams.
pub(super) fn read_all(
    site: &mut Site,
    sections: &[(&Section, Rc<Section>)],
    usable: &HashSet<String>,
) {
    let mut without_routes: HashSet<String> = HashSet::new();
    for (section, defaults) in sections {
        let names = read(site, &section.relayed(), &defaults.relayed(), usable);
        without_routes.extend(names);
    }
    site.listeners
        .retain(|it| !without_routes.contains(&it.name));
}

/// Reads a section; returns the names of its listeners if it has no route.
fn read(
    site: &mut Site,
    section: &Section,
    defaults: &Section,
    usable: &HashSet<String>,
) -> Vec<String> {
    let mut frontend = Frontend::new(&section.name);
    let first = site.listeners.len();
    for line in section.lines("bind") {
        bind(site, &mut frontend, line, &[]);
    }
    let reads_names = section.lines.iter().any(reads_server_name);
    let mut listeners = Vec::new();
    for listener in site.listeners.iter_mut().skip(first) {
        let relay = if reads_names && !listener.is_tls {
            Relay::Passthrough
        } else {
            Relay::Tcp
        };
        listener.relay = Some(relay);
        listeners.push(listener.name.clone());
    }
    let has_both = !frontend.plain.is_empty() && !frontend.tls.is_empty();
    if (reads_names && !frontend.tls.is_empty()) || (has_both && uses_server_names(section)) {
        frontend.is_closed = true;
        let shown = format!("{} {}", section.kind, section.name);
        site.note(
            &section.place,
            &shown,
            "write a frontend for each kind of `bind`; until then it has no listener",
        );
    }
    note_settings(site, section);
    let networks = connection_rules::read(site, &[defaults, section], reads_names);
    let Some(networks) = networks.filter(|_| !frontend.is_closed) else {
        return listeners;
    };
    let policies = Policies {
        allow: networks.allow,
        deny: networks.deny,
        timeouts: idle_timeout(defaults.lines.iter().chain(&section.lines)),
        ..Policies::default()
    };
    let has_routes = routes(site, section, &mut frontend, usable, |route| {
        route.listeners.clone_from(&listeners);
        route.policies = policies.clone();
    });
    if has_routes { Vec::new() } else { listeners }
}

/// Returns true if a line reads the server name of a handshake that is passed through.
fn reads_server_name(line: &Line) -> bool {
    let mut words = line.words.iter();
    words.any(|word| word.starts_with("req.ssl_sni") || word.starts_with("req_ssl_sni"))
}

fn uses_server_names(section: &Section) -> bool {
    let mut lines = section.lines.iter();
    lines.any(|line| line.words.iter().any(|word| word.contains("ssl_fc_sni")))
}

/// Notes settings that are not converted but refuse nothing.
fn note_settings(site: &mut Site, section: &Section) {
    let is_listen = section.kind == "listen";
    for line in &section.lines {
        match line.word(0) {
            "acl" | "bind" | "mode" | "option" | "timeout" | "use_backend" | "default_backend"
            | "log" | "log-format" | "log-tag" | "description" | "id" | "tcp-request" => {}
            "maxconn" => line.note(site, "write `limits { max-total-connections … }`"),
            // The section's other targets were noted with its backend.
            _ if is_listen => {}
            name => line.note(site, advice(name)),
        }
    }
}

/// Adds the routes of a section; returns true if there is one. Stops at a rule that cannot be
/// migrated, because a later route would get the connections of that rule.
fn routes(
    site: &mut Site,
    section: &Section,
    frontend: &mut Frontend<'_>,
    usable: &HashSet<String>,
    finish: impl Fn(&mut Route),
) -> bool {
    let mut has_routes = false;
    let mut add = |site: &mut Site, backend: &str, condition: Condition, priority: u32| {
        let service = Service::Upstream(backend.to_owned());
        let name = site.route_name(&format!("{} {backend}", section.name));
        let mut route = Route::new(name, service);
        finish(&mut route);
        route.hosts = condition.hosts;
        route.priority = (!route.hosts.is_empty()).then_some(priority);
        site.push_route(route);
        has_routes = true;
    };
    for line in section.lines("use_backend") {
        if site.is_full() {
            return has_routes;
        }
        let backend = line.word(1);
        let conditions = condition::rule_conditions(line, section);
        let Some(conditions) = conditions.filter(|_| usable.contains(backend)) else {
            line.note(site, "write a route with `host` for the server name, and `upstream`; until then connections that reach this rule are refused",
            );
            return has_routes;
        };
        let priority = frontend.next_priority();
        let takes_all = conditions.iter().any(|it| it.hosts.is_empty());
        for condition in conditions {
            add(site, backend, condition, priority);
        }
        if takes_all {
            return has_routes;
        }
    }
    let own = (section.kind == "listen").then_some(section.name.as_str());
    let default = section.lines("default_backend").last();
    let Some(backend) = default.map(|line| line.word(1)).or(own) else {
        return has_routes;
    };
    if usable.contains(backend) {
        add(site, backend, Condition::default(), 0);
    } else if let Some(line) = default {
        line.note(
            site,
            "its backend is not carried over; until then connections that reach it are refused",
        );
    }
    has_routes
}

/// Idle timeout of a relay: `timeout tunnel`, or else the longer one of both sides.
fn idle_timeout<'l>(lines: impl Iterator<Item = &'l Line>) -> Vec<Node> {
    let (mut tunnel, mut client, mut server) = (None, None, None);
    for line in lines.filter(|line| line.word(0) == "timeout") {
        let ms = units::milliseconds(line.word(2), 1);
        match line.word(1) {
            "tunnel" => tunnel = ms,
            "client" => client = ms,
            "server" => server = ms,
            _ => {}
        }
    }
    let ms = tunnel.or(client.max(server)).filter(|ms| *ms >= 1_000);
    let seconds = ms.map(|ms| ms.div_ceil(1_000).min(604_800));
    seconds
        .map(|seconds| Node::number("idle-secs", seconds))
        .into_iter()
        .collect()
}
