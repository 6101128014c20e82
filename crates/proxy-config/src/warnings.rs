//! Warnings about a valid configuration.

mod acme;
mod ambiguous_paths;
mod captures;
mod foreign;
mod without_effect;

use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::diagnostics::Diagnostics;
use crate::files::Files;
use proxy_model::{AgentAddress, JwtKeySource, LoadBalancing, Model, Route, Service, Upstream};
use proxy_routing::{DecidingRank, NarrowerLoser, PathPattern, Router};
use std::collections::HashSet;

pub(crate) fn find(model: &Model, files: Files<'_>, faults: &mut Diagnostics) {
    route_order(model, faults);
    ambiguous_paths::find(model, faults);
    unused_upstreams(model, faults);
    weights_of_zero(model, faults);
    plaintext_to_tls_ports(model, faults);
    unverified_targets(model, faults);
    regexes_that_could_be_plain(model, faults);
    acme::find(model, faults);
    foreign::find(model, files, faults);
    captures::find(model, faults);
    without_effect::find(model, faults);
}

fn route_order(model: &Model, faults: &mut Diagnostics) {
    let router = Router::new(model.rules());
    let listeners = model.listeners.iter();
    let listeners: Vec<&str> = listeners.map(|listener| &*listener.name).collect();
    let unreachable = router.unreachable(&listeners);
    let losers: HashSet<usize> = unreachable.iter().map(|(covered, _)| *covered).collect();
    unreachable_routes(model, &unreachable, faults);
    for lost in router.narrower_losers() {
        if !losers.contains(&lost.loser) {
            narrower_loser(model, &lost, faults);
        }
    }
}

fn unreachable_routes(model: &Model, pairs: &[(usize, usize)], faults: &mut Diagnostics) {
    let defaults = model
        .listeners
        .iter()
        .filter_map(|listener| listener.default_route);
    let defaults: HashSet<usize> = defaults.map(|index| index.position()).collect();
    for (covered, by) in pairs {
        let route = |index: usize| {
            model
                .routes
                .get(index)
                .filter(|_| !defaults.contains(covered))
        };
        let Some((covered, by)) = route(*covered).zip(route(*by)) else {
            continue;
        };
        let message = format!("no request can reach route \"{}\"", covered.id);
        let fault = Diagnostic::new(DiagnosticCode::UnreachableRoute, covered.place, message);
        let label = format!("route \"{}\" takes them all", by.id);
        faults.push(fault.related(by.place, label));
    }
}

fn narrower_loser(model: &Model, lost: &NarrowerLoser, faults: &mut Diagnostics) {
    let routes = model
        .routes
        .get(lost.loser)
        .zip(model.routes.get(lost.winner));
    let Some((loser, winner)) = routes else {
        return;
    };
    let compared = if lost.because == DecidingRank::Host {
        "host"
    } else {
        "path"
    };
    let message = format!(
        "route \"{}\" loses {} to route \"{}\"",
        loser.id, lost.requests, winner.id
    );
    let label = format!(
        "narrower by its {}, but the {compared} is compared first",
        lost.narrower.as_str()
    );
    let fault = Diagnostic::new(DiagnosticCode::RouteOrder, loser.place, message);
    let fault = fault
        .label(label)
        .related(winner.place, format!("its {compared} is more specific"));
    faults.push(fault.help(format!(
        "to win, it needs the same {compared} or a higher `priority`"
    )));
}

fn unused_upstreams(model: &Model, faults: &mut Diagnostics) {
    let named = |route: &Route| match &route.service {
        Service::Upstream(index) => Some(index.position()),
        Service::Builtin(_) | Service::Static(_) | Service::Redirect(_) | Service::Respond(_) => {
            None
        }
    };
    let copied = |route: &Route| {
        let shadow = route.policies.shadow.as_ref()?;
        Some(shadow.upstream.position())
    };
    let asked_for_keys = |route: &Route| match &route.policies.jwt.as_ref()?.keys {
        JwtKeySource::Remote(remote) => Some(remote.upstream.position()),
        JwtKeySource::File(_) | JwtKeySource::Secret(_) => None,
    };
    let routes = model.routes.iter();
    let routed = routes.flat_map(|route| {
        let further = copied(route).into_iter().chain(asked_for_keys(route));
        named(route).into_iter().chain(further)
    });
    let called = model
        .agents
        .iter()
        .filter_map(|agent| match &agent.address {
            AgentAddress::Upstream(index) => Some(index.position()),
            AgentAddress::Socket(_) => None,
        });
    let used: HashSet<usize> = routed.chain(called).collect();
    for (index, upstream) in model.upstreams.iter().enumerate() {
        if !used.contains(&index) {
            let message = format!("no route names upstream \"{}\"", upstream.name);
            faults.push(Diagnostic::new(
                DiagnosticCode::UnusedUpstream,
                upstream.place,
                message,
            ));
        }
    }
}

fn weights_of_zero(model: &Model, faults: &mut Diagnostics) {
    for upstream in &model.upstreams {
        let mut targets = upstream.targets.iter();
        if upstream.targets.is_empty() || !targets.all(|target| *target.weight == 0) {
            backups_without_weight(upstream, faults);
            continue;
        }
        let message = format!(
            "every target of upstream \"{}\" has weight 0, so none gets new requests",
            upstream.name
        );
        let first = upstream
            .targets
            .first()
            .and_then(|target| target.weight.place());
        let place = first.unwrap_or(upstream.place);
        let fault = Diagnostic::new(DiagnosticCode::NoWeight, place, message);
        faults.push(
            fault.label("new requests are answered 503").help(
                "give one of them a weight; to drain a target, leave others with more than 0",
            ),
        );
    }
}

/// Warns about backup targets that never get a request. A `sticky` cookie may bind sessions to one.
fn backups_without_weight(upstream: &Upstream, faults: &mut Diagnostics) {
    if *upstream.load_balancing == LoadBalancing::Sticky {
        return;
    }
    let backups = upstream.targets.iter().filter(|target| *target.backup);
    for target in backups.filter(|target| *target.weight == 0) {
        let message = format!(
            "backup target {} of upstream \"{}\" has weight 0",
            *target.address, upstream.name
        );
        let place = target.weight.place().unwrap_or(target.place);
        let fault = Diagnostic::new(DiagnosticCode::NoWeight, place, message);
        let fault = fault.label("it never gets a request");
        faults.push(fault.help("give it a weight, or leave it out"));
    }
}

fn plaintext_to_tls_ports(model: &Model, faults: &mut Diagnostics) {
    // The bytes of the client's TLS are forwarded unchanged.
    let is_passed_on = |route: &&Route| {
        let name = route.listeners.first();
        let mut listeners = model.listeners.iter();
        let listener = name.and_then(|name| listeners.find(|one| one.name == name.value));
        listener.is_some_and(|listener| listener.protocol.is_relayed())
    };
    let passed: HashSet<usize> = model
        .routes
        .iter()
        .filter(is_passed_on)
        .filter_map(|route| match &route.service {
            Service::Upstream(index) => Some(index.position()),
            Service::Builtin(_)
            | Service::Static(_)
            | Service::Redirect(_)
            | Service::Respond(_) => None,
        })
        .collect();
    let plain =
        |(index, upstream): &(usize, &Upstream)| upstream.tls.is_none() && !passed.contains(index);
    for (_, upstream) in model.upstreams.iter().enumerate().filter(plain) {
        for target in upstream
            .targets
            .iter()
            .filter(|target| target.address.port == 443)
        {
            let place = target.address.place().unwrap_or(target.place);
            let message = format!("{} gets plaintext", target.address);
            let fault = Diagnostic::new(DiagnosticCode::PlaintextToTlsPort, place, message);
            faults.push(fault.label("port 443 usually means TLS").help(format!(
                "add a `tls` block to upstream \"{}\" if it does",
                upstream.name
            )));
        }
    }
}

fn unverified_targets(model: &Model, faults: &mut Diagnostics) {
    for upstream in &model.upstreams {
        let off = upstream.tls.as_ref().filter(|tls| !*tls.verify);
        let Some(place) = off.and_then(|tls| tls.verify.place()) else {
            continue;
        };
        let message = format!(
            "certificates of upstream \"{}\" are not verified",
            upstream.name
        );
        let fault = Diagnostic::new(DiagnosticCode::UnverifiedTargets, place, message);
        faults.push(
            fault
                .label("names, validity and authorities are not checked")
                .help("the pins are the whole check: a key that leaks is trusted until its pin is removed"),
        );
    }
}

fn regexes_that_could_be_plain(model: &Model, faults: &mut Diagnostics) {
    for path in model.routes.iter().flat_map(|route| &route.matches.paths) {
        let Some((place, instead)) = path.place().zip(plain_form(path)) else {
            continue;
        };
        let message = "a plain path matches the same as this regex";
        let fault = Diagnostic::new(DiagnosticCode::RegexCouldBePrefix, place, message);
        faults.push(fault.label(format!("write `{instead}`, which is faster")));
    }
}

/// The setting that matches the same as a regular expression, if there is one.
fn plain_form(pattern: &PathPattern) -> Option<String> {
    if pattern.setting() != "path-regex" {
        return None;
    }
    let rest = pattern.as_str().strip_prefix('^')?;
    let whole_segments = rest
        .strip_suffix("(/.*)?$")
        .or(rest.strip_suffix("(?:/.*)?$"));
    if let Some(prefix) = whole_segments {
        return literal(prefix).map(|prefix| format!("path-prefix \"{prefix}\""));
    }
    if let Some(path) = rest.strip_suffix('$').filter(|rest| !rest.ends_with(".*")) {
        return literal(path).map(|path| format!("path \"{path}\""));
    }
    let open = rest.strip_suffix('$').unwrap_or(rest);
    let open = open.strip_suffix(".*").unwrap_or(open);
    let prefix = literal(open).filter(|prefix| prefix.ends_with('/'))?;
    Some(format!("path-prefix \"{prefix}\""))
}

/// The text that an expression without operators matches.
fn literal(expression: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = expression.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.push(chars.next().filter(char::is_ascii_punctuation)?),
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' => {
                return None;
            }
            c => text.push(c),
        }
    }
    text.starts_with('/').then_some(text)
}
