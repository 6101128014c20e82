//! Converts the directives in effect in a location to policies of its route.

mod basic_auth;
mod cache;
mod login;

use super::checks::{Answered, Written};
use super::listen::real_ip;
use super::parser::Directive;
use super::scope::Scope;
use super::value::{has_variables, value};
use super::{advice, checks, error_pages};
use crate::kdl::Node;
use crate::site::{Message, Policies, Route, Service, Site, header_fault};
use crate::units;

pub(super) use basic_auth::find_password_files;
pub(super) use cache::memory;

/// Adds the policies in effect in a scope to a route.
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
        let size = site.number(&directive.place, &directive.shown(), "max-body-size", bytes);
        route.policies.settings.push(size);
    }
    if matches!(route.service, Service::Upstream(_)) {
        cache::apply(site, route, scope);
    }
    if matches!(route.service, Service::Upstream(_) | Service::Static { .. }) {
        compression(site, route, scope);
        rate(site, route, scope);
        let password = basic_auth::read(site, scope);
        let login = login::read(site, scope);
        if let Some(cache) = scope.last("proxy_cache").filter(|_| login.is_some()) {
            let has_cache = route.policies.settings.iter().any(|it| it.is("cache"));
            route.policies.settings.retain(|it| !it.is("cache"));
            if has_cache {
                let advice =
                    "a login server decides about each response: such a route has no cache";
                site.note(&cache.place, &cache.shown(), advice);
            }
        }
        let written = Written {
            password: password.is_some(),
            login: login.is_some(),
        };
        closed(site, route, scope, &written);
        if matches!(route.service, Service::Upstream(_) | Service::Static { .. }) {
            route.policies.settings.extend(password);
            route.agents.extend(login);
        }
    } else {
        early(site, route, scope);
    }
}

/// If a check was not converted, makes the route answer 501 instead of serving its content.
fn closed(site: &mut Site, route: &mut Route, scope: &Scope<'_>, written: &Written) {
    let Some(directive) = checks::unwritten(scope, written, Answered::Content) else {
        return;
    };
    advice::note_check(site, directive);
    route.service = Service::not_migrated();
    route.policies = Policies::default();
}

/// Closes a route with a text if a condition before its `return` was not converted. A redirect or a
/// refusal shows nothing and stays.
fn early(site: &mut Site, route: &mut Route, scope: &Scope<'_>) {
    let written = Written {
        password: false,
        login: false,
    };
    if route.service == Service::not_migrated() {
        return;
    }
    let Some(directive) = checks::unwritten(scope, &written, Answered::Early) else {
        return;
    };
    if matches!(route.service, Service::Respond { status: ..400, .. }) {
        advice::note_check(site, directive);
        route.service = Service::not_migrated();
        route.policies = Policies::default();
        return;
    }
    let mut own = scope.innermost().iter();
    let is_own = scope.depth() > 2 && own.any(|it| std::ptr::eq(it, directive));
    // Conditions of a server are noted with it, and the rest of a server has no content.
    let is_noted = directive.name == "if" || route.service == Service::refusal(404);
    if is_own || !is_noted {
        advice::note_ignored(site, directive);
    }
}

/// Networks of clients.
#[derive(Debug, Default)]
pub(super) struct Networks {
    /// Admitted networks; empty for all.
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
    /// Set if a refused network could not be converted.
    pub(super) is_closed: bool,
}

/// Networks of a scope's `allow` and `deny`; `None` if all clients are refused. The first matching
/// rule decides, so rules after one for `all` have no effect.
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
            Some(network) if !units::is_network(network) => {
                networks.is_closed |= !is_allowed;
                site.note(
                    &rule.place,
                    &rule.shown(),
                    "write the address or the network, as `10.0.0.0/8`",
                );
            }
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
        // Without `deny all`, all other clients are admitted, and `allow` has no effect.
        networks.allow.clear();
    }
    Some(networks)
}

fn networks(site: &mut Site, route: &mut Route, scope: &Scope<'_>) {
    // `return` and redirects are answered before networks are checked.
    let is_content = matches!(route.service, Service::Upstream(_) | Service::Static { .. })
        || route.service == Service::not_migrated();
    if !is_content {
        return;
    }
    let Some(Networks {
        allow,
        deny,
        is_closed,
    }) = access(site, scope)
    else {
        route.policies = Policies::default();
        route.service = Service::refusal(403);
        return;
    };
    let is_list = !(allow.is_empty() && deny.is_empty());
    // The networks would be compared with the address of the proxy before it.
    let is_of_others = is_list && real_ip::unwritten(scope).is_some();
    if let Some(directive) = real_ip::unwritten(scope).filter(|_| is_list) {
        advice::note_check(site, directive);
    }
    if is_closed || is_of_others {
        route.policies = Policies::default();
        route.service = Service::not_migrated();
        return;
    }
    route.policies.allow = allow;
    route.policies.deny = deny;
}

fn response_headers(site: &mut Site, route: &mut Route, scope: &Scope<'_>) {
    for directive in scope.all("proxy_hide_header") {
        let Some(name) = directive.word(0) else {
            continue;
        };
        match header_fault(name, Message::Response) {
            Some(fault) => site.note(&directive.place, &directive.shown(), fault),
            None => route
                .policies
                .response_headers
                .push(Node::text("remove", name)),
        }
    }
    let is_text = matches!(route.service, Service::Respond { .. });
    for directive in scope.all("add_header") {
        let (Some(name), Some(written)) = (directive.word(0), directive.word(1)) else {
            continue;
        };
        // `respond` sets the type of a text.
        if written.is_empty() || (is_text && name.eq_ignore_ascii_case("content-type")) {
            continue;
        }
        if let Some(fault) = header_fault(name, Message::Response) {
            site.note(&directive.place, &directive.shown(), fault);
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
    let bounded = |site: &mut Site, theirs: &str, ours: &str, number: Option<u64>, other: u64| {
        let Some((directive, number)) = scope.last(theirs).zip(number) else {
            return Node::number(ours, other);
        };
        site.number(&directive.place, &directive.shown(), ours, number)
    };
    let least = scope.word("gzip_min_length").and_then(units::bytes);
    let least = bounded(site, "gzip_min_length", "min-size", least, 20);
    let level = scope
        .word("gzip_comp_level")
        .and_then(|word| word.parse().ok());
    let level = bounded(site, "gzip_comp_level", "gzip-level", level, 1);
    let node = Node::new("compression")
        .child(Node::text("codings", "gzip"))
        .child(Node::new("types").args(types.iter().map(String::as_str)))
        .child(least)
        .child(level);
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
    let rate = zone.and_then(|zone| rate_of(site, zone, &option(zone, "rate")?));
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
            "requests over the rate do not wait: the burst is served at once, and what is over it is answered 429, not 503; each route counts for itself"
        } else {
            "what is over it is answered 429, not 503; each route counts for itself, not all that name the zone"
        },
    );
    let burst = burst.unwrap_or(0).saturating_add(1);
    let burst = site.number(&directive.place, &directive.shown(), "burst", burst);
    let node = Node::new("rate-limit")
        .child(rate)
        .child(burst)
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

fn rate_of(site: &mut Site, zone: &Directive, rate: &str) -> Option<Node> {
    let (number, unit) = rate.split_once("r/")?;
    let number = number.parse::<u64>().ok()?;
    match unit {
        "s" => Some(site.number(&zone.place, &zone.shown(), "requests-per-second", number)),
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
