//! Listeners that relay connections, and their routes.

use super::super::decoder::Decoder;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::{
    Listener, ListenerProtocol, LoadBalancing, Model, Origin, Part, RateKey, Route, Service,
    UpstreamProtocol, effective_in,
};

/// Settings of a listener that have an effect on relayed connections. A row is the end of a
/// setting's path, or a block.
const OF_LISTENER: &[&str] = &[
    "address",
    "protocol",
    "default-route",
    "trusted-proxies",
    "proxy-protocol",
    "backlog",
    "allow",
    "allow-file",
    "deny",
    "deny-file",
    "timeouts.handshake-secs",
    "tls",
];

/// Settings of a route that have an effect on relayed connections.
const OF_ROUTE: &[&str] = &[
    "priority",
    "listeners",
    "matches.host",
    "upstream",
    "circuit-breaker",
    "policies.allow",
    "policies.allow-file",
    "policies.deny",
    "policies.deny-file",
    "policies.rate-limit",
    "policies.retry.attempts",
    "policies.retry.on",
    "policies.retry.per-try-timeout-secs",
    "policies.timeouts.connect-secs",
    "policies.timeouts.idle-secs",
];

/// Reports settings without an effect on relayed connections, and routes that no connection or
/// request may take.
pub(super) fn check(d: &mut Decoder<'_, '_>, model: &Model) {
    let relays = || {
        let listeners = model.listeners.iter();
        listeners.filter(|listener| listener.protocol.is_relayed())
    };
    for listener in relays() {
        let settings = effective_in(model, Part::Listener(listener));
        let kind = listener.protocol.to_string();
        for setting in settings {
            if let (false, Origin::At(place)) =
                (has_effect(setting.name(), OF_LISTENER), setting.origin)
            {
                let name = setting.name();
                let message = format!("`{name}` has no effect on a `{kind}` listener");
                d.fault(DiagnosticCode::Conflict, place, message);
            }
        }
        check_reach(d, model, listener);
    }
    for route in &model.routes {
        let names = route.listeners.iter();
        let (relayed, others): (Vec<_>, Vec<_>) =
            names.partition(|name| relays().any(|relay| relay.name == name.value));
        let Some(first) = relayed.first() else {
            continue;
        };
        if let Some((other, place)) = others
            .first()
            .and_then(|other| Some((other, other.place()?)))
        {
            let message = format!(
                "listener \"{}\" relays connections, \"{}\" serves requests",
                first.value, other.value
            );
            let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
            d.push(fault.help("write a route for each"));
            continue;
        }
        let of_route = || relays().filter(|one| relayed.iter().any(|name| name.value == one.name));
        check_route(d, model, route, &of_route().collect::<Vec<_>>());
    }
    check_tests(d, model);
}

/// Returns true if the setting is in `rows`, or in a block that is.
fn has_effect(name: &str, rows: &[&str]) -> bool {
    rows.iter().any(|row| {
        let rest = name.strip_prefix(row);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Reports a listener without a route, or with a default route for requests.
fn check_reach(d: &mut Decoder<'_, '_>, model: &Model, listener: &Listener) {
    let is_bound = |route: &Route| {
        let mut names = route.listeners.iter();
        names.any(|name| name.value == listener.name)
    };
    let (name, kind) = (&listener.name, *listener.protocol);
    match &listener.default_route {
        None if !model.routes.iter().any(is_bound) => {
            let message = format!("no route leads from listener \"{name}\"");
            let fault = Diagnostic::new(DiagnosticCode::MissingSetting, listener.place, message);
            d.push(fault.help(format!(
                "write a route with `listeners \"{name}\"` and an `upstream`"
            )));
        }
        Some(default) => {
            let route = model.route(default.value);
            let unbound = route.filter(|route| route.listeners.is_empty());
            if let Some((route, place)) = unbound.zip(default.place()) {
                let message = format!("route \"{}\" is for requests", route.id);
                let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
                let fault = fault.label(format!("a `{kind}` listener has none"));
                d.push(fault.help(format!("write `listeners \"{name}\"` in the route")));
            }
        }
        None => {}
    }
}

fn check_route(d: &mut Decoder<'_, '_>, model: &Model, route: &Route, relays: &[&Listener]) {
    let kind = relays
        .first()
        .map_or(ListenerProtocol::Tcp, |listener| *listener.protocol);
    if !matches!(route.service, Service::Upstream(_)) {
        let message = format!("a route of a `{kind}` listener needs an `upstream`");
        return d.fault(DiagnosticCode::Conflict, route.place, message);
    }
    for setting in effective_in(model, Part::Route(route)) {
        let name = setting.name();
        if let (false, Origin::At(place)) = (has_effect(name, OF_ROUTE), setting.origin) {
            let message = format!("`{name}` has no effect on a `{kind}` listener");
            d.fault(DiagnosticCode::Conflict, place, message);
        }
    }
    if let Some(limit) = &route.policies.rate_limit {
        let has_key = matches!(limit.key.value, RateKey::ClientIp | RateKey::Route);
        if let Some(place) = limit.key.place().filter(|_| !has_key) {
            let message = format!("a connection of a `{kind}` listener has no such key");
            let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
            d.push(fault.help("write `client_ip` or `route`"));
        }
    }
    let is_plain = |one: &&&Listener| *one.protocol == ListenerProtocol::Tcp && one.tls.is_none();
    let host = route.matches.hosts.first();
    if relays.iter().any(|one| is_plain(&one))
        && let Some(place) = host.and_then(proxy_model::Setting::place)
    {
        let message = "a `tcp` listener without `tls` has no server name";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.help("write `protocol \"tls-passthrough\"`, or a `tls` block"));
    }
    check_upstream(d, model, route);
}

/// Reports an upstream that does not take a relayed connection.
fn check_upstream(d: &mut Decoder<'_, '_>, model: &Model, route: &Route) {
    let Service::Upstream(index) = &route.service else {
        return;
    };
    let Some((upstream, place)) = model.upstream(index.value).zip(index.place()) else {
        return;
    };
    let cause = if *upstream.protocol == UpstreamProtocol::H2 {
        "its `protocol` is `h2`, for requests only"
    } else if *upstream.load_balancing == LoadBalancing::Sticky {
        "a connection has no cookie for `sticky`"
    } else if upstream.tls.is_some() {
        "it has `tls`, and relayed bytes are not encrypted again"
    } else {
        return;
    };
    let message = format!(
        "upstream \"{}\" cannot take relayed connections",
        upstream.name
    );
    let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
    d.push(fault.label(cause));
}

/// Reports live tests of relayed connections: nodes only send requests.
fn check_tests(d: &mut Decoder<'_, '_>, model: &Model) {
    for test in model.tests.iter().filter(|test| test.live.is_some()) {
        if test.request.is_relayed() {
            let message = "a live test is a request, not a relayed connection";
            let fault = Diagnostic::new(DiagnosticCode::Conflict, test.request.place, message);
            d.push(fault.help("leave `live` out"));
        }
    }
}
