//! Converts `proxy_pass` and related directives.

use super::parser::Directive;
use super::prefix::{replaced, shortened};
use super::scope::Scope;
use super::value::{has_variables, is_copied, value};
use crate::kdl::Node;
use crate::site::{Message, Path, Rewrite, Route, Service, Site, Upstream, header_fault};
use crate::units;

/// Header fields that the proxy sets itself for upstreams.
const OURS: &[&str] = &[
    "connection",
    "forwarded",
    "upgrade",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];

/// Sets the upstream of a route, and the requests sent to it.
///
/// `prefix` is the location's literal path, which a path in `proxy_pass` replaces.
pub(super) fn pass(
    site: &mut Site,
    route: &mut Route,
    directive: &Directive,
    scope: &Scope<'_>,
    prefix: Option<&str>,
) {
    let url = directive.word(0).unwrap_or_default();
    let parts = url
        .split_once("://")
        .filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
    let Some((scheme, rest)) = parts.filter(|_| !has_variables(url)) else {
        site.note(
            &directive.place,
            &directive.shown(),
            "write an upstream by its name; the route answers 501",
        );
        return;
    };
    if rest.starts_with("unix:") {
        site.note(
            &directive.place,
            &directive.shown(),
            "let the server listen on a port of 127.0.0.1; the route answers 501",
        );
        return;
    }
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    if site.empty_upstreams.contains(authority) {
        site.note(
            &directive.place,
            &directive.shown(),
            "its upstream has no target that could be carried over; the route answers 501",
        );
        return;
    }
    let name = upstream(site, scheme, authority, directive, scope);
    route.service = Service::Upstream(name);
    rewrite(site, route, directive, path, prefix);
    headers(site, route, scope, authority);
    redirects(site, route, scope, authority, path);
    timeouts(site, route, scope);
}

pub(super) fn upstream(
    site: &mut Site,
    scheme: &str,
    authority: &str,
    directive: &Directive,
    scope: &Scope<'_>,
) -> String {
    let is_tls = scheme == "https";
    let first = match site.upstream_named(authority) {
        Some(known) => known.name.clone(),
        None => lone(site, is_tls, authority),
    };
    let (name, is_new) = site.upstream_with_tls(&first, is_tls.then(|| tls(scope)));
    if is_new && is_tls && scope.word("proxy_ssl_verify") != Some("on") {
        site.note(
            &directive.place,
            &directive.shown(),
            "the certificate is verified here: write `tls { ca-file … }` for one that no public authority signed",
        );
    }
    name
}

/// Name of the upstream with `authority` as its only target.
fn lone(site: &mut Site, is_tls: bool, authority: &str) -> String {
    let port = if is_tls { 443 } else { 80 };
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port {
        authority.to_owned()
    } else {
        format!("{authority}:{port}")
    };
    let address = address.replace("localhost:", "127.0.0.1:");
    if let Some(same) = site.upstream_of(&address) {
        return same.name.clone();
    }
    let name = site.upstream_name(authority);
    site.upstreams.push(Upstream {
        name: name.clone(),
        targets: vec![(address, 1)],
        ..Upstream::default()
    });
    name
}

fn tls(scope: &Scope<'_>) -> Vec<Node> {
    let mut tls = Vec::new();
    if let Some(name) = scope
        .word("proxy_ssl_name")
        .filter(|name| !has_variables(name))
    {
        tls.push(Node::text("sni", name));
    }
    if let Some(file) = scope.word("proxy_ssl_trusted_certificate") {
        tls.push(Node::text("ca-file", file));
    }
    tls
}

/// Rewrite for the path of `proxy_pass`, which replaces the location's.
fn rewrite(
    site: &mut Site,
    route: &mut Route,
    directive: &Directive,
    path: &str,
    prefix: Option<&str>,
) {
    if path.is_empty() {
        return;
    }
    if let Some(Path::Exact(_)) = route.paths.first() {
        route.policies.rewrite = Some(Rewrite::Path(path.to_owned()));
        return;
    }
    let location = prefix.unwrap_or("/");
    if location == path {
        return;
    }
    let (from, to) = (shortened(location), shortened(path));
    if location.ends_with('/') != path.ends_with('/') || from == "/" {
        site.note(
            &directive.place,
            &directive.shown(),
            "the beginning of the path is replaced by whole segments here",
        );
    }
    if from == "/" {
        route.policies.rewrite = Some(Rewrite::Replace(from, to));
    } else {
        route.policies.rewrite = Some(replaced(from, to));
    }
}

/// Converts `proxy_redirect`. A rewrite adjusts `Location` by itself, as `default` does.
fn redirects(site: &mut Site, route: &mut Route, scope: &Scope<'_>, authority: &str, path: &str) {
    for directive in scope.all("proxy_redirect") {
        match (directive.word(0), directive.word(1)) {
            (Some("default"), _) => {}
            (Some("off"), _) => {
                if route.policies.rewrite.is_some() {
                    route.policies.keeps_location = true;
                }
            }
            (Some(from), Some(to)) if is_default_redirect(from, to, authority, path) => {}
            _ => site.note(
                &directive.place,
                &directive.shown(),
                "`rewrite` writes `Location` back where it names the target or the `Host` that is sent; for another URL correct the application's own",
            ),
        }
    }
}

/// Returns true if a `proxy_redirect` does the same as the rewrite's own adjustment.
fn is_default_redirect(from: &str, to: &str, authority: &str, path: &str) -> bool {
    let origin = from.split_once("://").map(|(_, rest)| rest);
    let is_target = origin.is_some_and(|rest| {
        let host = rest.split('/').next().unwrap_or_default();
        host == authority
    });
    is_target && to.starts_with('/') && !path.is_empty()
}

fn headers(site: &mut Site, route: &mut Route, scope: &Scope<'_>, authority: &str) {
    let mut has_host = false;
    for directive in scope.all("proxy_set_header") {
        let (Some(name), Some(written)) = (directive.word(0), directive.word(1)) else {
            continue;
        };
        let lower = name.to_ascii_lowercase();
        if lower == "host" {
            has_host = true;
            host(site, route, directive, written, authority);
            continue;
        }
        // The proxy sends these fields itself, and an agent sets the login server's.
        if OURS.contains(&&*lower) || is_copied(scope, directive) {
            continue;
        }
        if let Some(fault) = header_fault(name, Message::Request) {
            site.note(&directive.place, &directive.shown(), fault);
            continue;
        }
        // A field set to nothing is removed, because it could be the client's own.
        let value = if written.is_empty() {
            None
        } else {
            value(site, directive, written)
        };
        let node = match value {
            None => Node::text("remove", name),
            Some(value) if has_variables(written) => Node::text("set", name).arg(&value),
            Some(value) => Node::text("set", name).raw(&value),
        };
        route.policies.request_headers.push(node);
    }
    if !has_host {
        route
            .policies
            .request_headers
            .push(Node::text("set", "Host").arg(authority));
    }
}

fn host(site: &mut Site, route: &mut Route, directive: &Directive, written: &str, authority: &str) {
    match written {
        "$host" | "$http_host" | "$host:$server_port" => {}
        "$proxy_host" => {
            route
                .policies
                .request_headers
                .push(Node::text("set", "Host").arg(authority));
        }
        name if !has_variables(name) => {
            route
                .policies
                .request_headers
                .push(Node::text("set", "Host").arg(name));
        }
        _ => drop(value(site, directive, written)),
    }
}

fn timeouts(site: &mut Site, route: &mut Route, scope: &Scope<'_>) {
    let ms = |name: &str| {
        let directive = scope.last(name)?;
        let ms = units::milliseconds(directive.word(0)?, 1_000)?;
        Some((ms, directive))
    };
    let connect = ms("proxy_connect_timeout").map(|found| ("connect", found));
    let between = [ms("proxy_read_timeout"), ms("proxy_send_timeout")];
    let between = between.into_iter().flatten().max_by_key(|(ms, _)| *ms);
    let between = between.map(|found| ("read", found));
    for (setting, (ms, directive)) in connect.into_iter().chain(between) {
        if ms > 0 {
            let time = site.time(&directive.place, &directive.shown(), setting, ms);
            route.policies.timeouts.push(time);
        }
    }
}
