//! Policies of a route from the directives that hold in its location.

use super::parser::Directive;
use super::scope::Scope;
use super::value::{has_variables, value};
use crate::kdl::Node;
use crate::site::{Policies, Route, Service, Site};
use crate::units;

/// Writes the policies that hold in a scope into a route.
pub(super) fn apply(site: &mut Site, route: &mut Route, scope: &Scope<'_>) {
    networks(site, route, scope);
    response_headers(site, route, scope);
    let has_body = matches!(route.service, Service::Upstream(_));
    if has_body
        && let Some(directive) = scope.last("client_max_body_size")
        && scope
            .outermost("client_max_body_size")
            .iter()
            .all(|it| it.place != directive.place)
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

/// Content behind a check of users that is not carried over is not served.
fn closed(site: &mut Site, route: &mut Route, scope: &Scope<'_>) {
    for name in [
        "auth_basic",
        "auth_request",
        "auth_jwt",
        "ssl_verify_client",
    ] {
        let directive = scope.last(name);
        let Some(directive) = directive.filter(|it| !matches!(it.word(0), Some("off"))) else {
            continue;
        };
        site.left(
            &directive.place,
            &directive.shown(),
            "the route answers 501 until the check is written: `basic-auth`, an agent, or `client-auth`",
        );
        route.service = Service::not_migrated();
        route.policies = Policies::default();
    }
}

fn networks(site: &mut Site, route: &mut Route, scope: &Scope<'_>) {
    let (allow, deny) = (scope.all("allow"), scope.all("deny"));
    let words = |directives: &[&Directive]| -> Vec<String> {
        let words = directives.iter().filter_map(|it| it.word(0));
        words.map(str::to_owned).collect()
    };
    let (allowed, denied) = (words(&allow), words(&deny));
    let is_all = |words: &[String]| words.iter().any(|word| word == "all");
    let others = |words: Vec<String>| -> Vec<String> {
        words.into_iter().filter(|word| word != "all").collect()
    };
    if is_all(&denied) && allowed.is_empty() {
        route.policies = Policies::default();
        route.service = Service::Respond {
            status: 403,
            body: None,
        };
        return;
    }
    if is_all(&denied) || is_all(&allowed) || allowed.is_empty() {
        let has_both = denied.len() > 1 && is_all(&denied) && !allowed.is_empty();
        if has_both && let Some(first) = deny.first() {
            site.left(
                &first.place,
                &first.shown(),
                "the order of `allow` and `deny` does not matter here: `deny` counts more",
            );
        }
        let is_list = is_all(&denied) && !is_all(&allowed);
        route.policies.allow = if is_list { others(allowed) } else { Vec::new() };
        route.policies.deny = others(denied);
        return;
    }
    // Without `all`, every other client is let in, so the list has no effect but for what it denies.
    route.policies.deny = others(denied);
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
            site.left(
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
    let zones = scope.outermost("limit_req_zone");
    let wanted = option(directive, "zone");
    let zone = zones.into_iter().find(|zone| {
        let name = option(zone, "zone");
        let name = name.as_deref().and_then(|name| name.split(':').next());
        name == wanted.as_deref()
    });
    let rate = zone.and_then(|zone| rate_of(&option(zone, "rate")?));
    let key = zone.and_then(|zone| key(zone.word(0)?));
    let Some((rate, key)) = rate.zip(key) else {
        site.left(
            &directive.place,
            &directive.shown(),
            "write `rate-limit { rate …; key … }` in the route's policies",
        );
        return;
    };
    let burst = option(directive, "burst").and_then(|word| word.parse::<u64>().ok());
    let waits = !directive.words.iter().any(|word| word == "nodelay");
    site.left(
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
        site.left(
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
