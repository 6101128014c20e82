//! Policies of a route from the directives that hold in its location.

use super::parser::Directive;
use super::scope::Scope;
use super::value::{has_variables, value};
use super::{advice, checks, error_pages};
use crate::kdl::Node;
use crate::site::{Policies, Route, Service, Site};
use crate::units;

/// Writes the policies that hold in a scope into a route.
pub(super) fn apply(site: &mut Site, route: &mut Route, scope: &Scope<'_>) {
    networks(site, route, scope);
    response_headers(site, route, scope);
    if !matches!(route.service, Service::Redirect { .. }) {
        let pages = error_pages::read(site, scope);
        route.policies.settings.extend(pages);
    }
    let has_body = matches!(route.service, Service::Upstream(_));
    if has_body
        && let Some(directive) = scope.last("client_max_body_size")
        && !scope.is_outermost("client_max_body_size")
        && let Some(bytes) = directive.word(0).and_then(units::bytes)
    {
        let bytes = if bytes == 0 { 1 << 40 } else { bytes };
        route
            .policies
            .settings
            .push(Node::number("max-body-size", bytes));
    }
    if matches!(route.service, Service::Upstream(_) | Service::Static { .. }) {
        compression(site, route, scope);
        rate(site, route, scope);
        closed(site, route, scope);
    }
}

/// Content after a check that is not carried over is not served.
fn closed(site: &mut Site, route: &mut Route, scope: &Scope<'_>) {
    let Some(directive) = checks::unwritten(scope) else {
        return;
    };
    advice::note_check(site, directive);
    route.service = Service::not_migrated();
    route.policies = Policies::default();
}

/// Networks of clients.
#[derive(Debug, Default)]
pub(super) struct Networks {
    /// Empty for all networks.
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
}

/// The networks of a scope's `allow` and `deny`; `None` if every client is refused. The first rule that fits a client
/// decides: rules after one for `all` have no effect.
pub(super) fn access(site: &mut Site, scope: &Scope<'_>) -> Option<Networks> {
    let (mut networks, mut is_list) = (Networks::default(), false);
    for rule in scope.rules_of_access() {
        let is_allowed = rule.name == "allow";
        match rule.word(0) {
            Some("all") => {
                is_list = !is_allowed;
                break;
            }
            Some("unix:") | None => advice::note(site, rule),
            Some(network) if is_allowed => networks.allow.push(network.to_owned()),
            Some(network) => {
                if !networks.allow.is_empty() {
                    site.note(
                        &rule.place,
                        &rule.shown(),
                        "`deny` counts more than `allow` here, in any order",
                    );
                }
                networks.deny.push(network.to_owned());
            }
        }
    }
    if is_list && networks.allow.is_empty() {
        return None;
    }
    if !is_list {
        // Without `deny all` every other client is let in, and `allow` has no effect.
        networks.allow.clear();
    }
    Some(networks)
}

fn networks(site: &mut Site, route: &mut Route, scope: &Scope<'_>) {
    let Some(Networks { allow, deny }) = access(site, scope) else {
        route.policies = Policies::default();
        route.service = Service::Respond {
            status: 403,
            body: None,
        };
        return;
    };
    route.policies.allow = allow;
    route.policies.deny = deny;
}

fn response_headers(site: &mut Site, route: &mut Route, scope: &Scope<'_>) {
    for directive in scope.all("proxy_hide_header") {
        let name = directive.word(0).map(|name| Node::text("remove", name));
        route.policies.response_headers.extend(name);
    }
    for directive in scope.all("add_header") {
        let (Some(name), Some(written)) = (directive.word(0), directive.word(1)) else {
            continue;
        };
        if written.is_empty() {
            continue;
        }
        if let Some(value) = value(site, directive, written) {
            let node = Node::text("add", name);
            let node = if has_variables(written) {
                node.arg(&value)
            } else {
                node.raw(&value)
            };
            route.policies.response_headers.push(node);
        }
    }
}

fn compression(site: &mut Site, route: &mut Route, scope: &Scope<'_>) {
    if scope.word("gzip") != Some("on") {
        return;
    }
    let mut types = vec!["text/html".to_owned()];
    if let Some(directive) = scope.last("gzip_types") {
        if directive.words.iter().any(|word| word == "*") {
            site.note(
                &directive.place,
                &directive.shown(),
                "write the types out: bodies that are packed already cost time for nothing",
            );
        } else {
            let new = directive.words.iter().filter(|word| *word != "text/html");
            types.extend(new.cloned());
        }
    }
    let least = scope
        .word("gzip_min_length")
        .and_then(units::bytes)
        .unwrap_or(20);
    let level = scope
        .word("gzip_comp_level")
        .and_then(|word| word.parse().ok());
    let node = Node::new("compression")
        .child(Node::text("codings", "gzip"))
        .child(Node::new("types").args(types.iter().map(String::as_str)))
        .child(Node::number("min-size", least))
        .child(Node::number("gzip-level", level.unwrap_or(1)));
    route.policies.settings.push(node);
}

fn rate(site: &mut Site, route: &mut Route, scope: &Scope<'_>) {
    let limits = scope.all("limit_req");
    let Some(directive) = limits.first() else {
        return;
    };
    let option = |directive: &Directive, name: &str| {
        let mut words = directive.words.iter();
        words.find_map(|word| {
            word.strip_prefix(name)?
                .strip_prefix('=')
                .map(str::to_owned)
        })
    };
    let zone_name = |zone: &Directive| {
        let name = option(zone, "zone")?;
        name.split(':').next().map(str::to_owned)
    };
    let wanted = option(directive, "zone");
    let zone = wanted.and_then(|wanted| scope.zone(&wanted, zone_name));
    let rate = zone.and_then(|zone| rate_of(&option(zone, "rate")?));
    let key = zone.and_then(|zone| key(zone.word(0)?));
    let Some((rate, key)) = rate.zip(key) else {
        site.note(
            &directive.place,
            &directive.shown(),
            "write `rate-limit { rate …; key … }` in the route's policies",
        );
        return;
    };
    let burst = option(directive, "burst").and_then(|word| word.parse::<u64>().ok());
    let waits = !directive.words.iter().any(|word| word == "nodelay");
    site.note(
        &directive.place,
        &directive.shown(),
        if waits && burst.is_some() {
            "requests over the rate do not wait: the burst is served at once, and what is over it is answered 429, not 503"
        } else {
            "what is over it is answered 429, not 503"
        },
    );
    let node = Node::new("rate-limit")
        .child(rate)
        .child(Node::number("burst", burst.unwrap_or(0) + 1))
        .child(Node::text("key", &key));
    route.policies.settings.push(node);
    for further in limits.iter().skip(1) {
        site.note(
            &further.place,
            &further.shown(),
            "a route has one `rate-limit`",
        );
    }
}

fn rate_of(rate: &str) -> Option<Node> {
    let (number, unit) = rate.split_once("r/")?;
    let number = number.parse::<u64>().ok()?;
    match unit {
        "s" => Some(Node::number("requests-per-second", number)),
        "m" => Some(Node::text("rate", &format!("{number}/min"))),
        _ => None,
    }
}

fn key(variable: &str) -> Option<String> {
    match variable {
        "$binary_remote_addr" | "$remote_addr" => Some("client_ip".to_owned()),
        "$uri" | "$request_uri" => Some("path".to_owned()),
        "$server_name" | "$host" => Some("route".to_owned()),
        _ => {
            let name = variable.strip_prefix("$http_")?;
            Some(format!("header:{}", name.replace('_', "-")))
        }
    }
}
