//! `proxy_pass` and its directives.

use super::listen::time;
use super::parser::Directive;
use super::prefix::{replaced, shortened};
use super::scope::Scope;
use super::value::{has_variables, value};
use crate::kdl::Node;
use crate::site::{Path, Rewrite, Route, Service, Site, Upstream};
use crate::units;

/// Header fields that the proxy itself sends to upstreams.
const OURS: &[&str] = &[
    "connection",
    "forwarded",
    "upgrade",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];

/// Writes the upstream of a route, and what it is sent.
pub(super) fn pass(site: &mut Site, route: &mut Route, directive: &Directive, scope: &Scope<'_>) {
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
    let name = upstream(site, scheme, authority, directive, scope);
    route.service = Service::Upstream(name);
    rewrite(site, route, directive, path);
    headers(site, route, scope, authority);
    times(route, scope);
}

fn upstream(
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

/// The name of the upstream with `authority` as its only target.
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

/// The path of `proxy_pass`, which replaces that of the location.
fn rewrite(site: &mut Site, route: &mut Route, directive: &Directive, path: &str) {
    let location = match route.paths.first() {
        _ if path.is_empty() => return,
        Some(Path::Prefix(prefix)) => prefix.clone(),
        Some(Path::Exact(_)) => {
            route.policies.rewrite = Some(Rewrite::Path(path.to_owned()));
            return;
        }
        Some(Path::Beginning(_) | Path::Regex(_)) | None => "/".to_owned(),
    };
    if location == path {
        return;
    }
    let (from, to) = (shortened(&location), shortened(path));
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
        } else if OURS.contains(&&*lower) {
            // The proxy's own fields say the same.
        } else if written.is_empty() {
            route
                .policies
                .request_headers
                .push(Node::text("remove", name));
        } else if let Some(value) = value(site, directive, written) {
            let node = Node::text("set", name);
            let node = if has_variables(written) {
                node.arg(&value)
            } else {
                node.raw(&value)
            };
            route.policies.request_headers.push(node);
        }
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

fn times(route: &mut Route, scope: &Scope<'_>) {
    let ms = |name: &str| units::milliseconds(scope.word(name)?, 1_000);
    if let Some(connect) = ms("proxy_connect_timeout").filter(|ms| *ms >= 1_000) {
        route.policies.timeouts.push(time("connect", connect));
    }
    let between = ms("proxy_read_timeout").max(ms("proxy_send_timeout"));
    if let Some(read) = between.filter(|ms| *ms >= 1_000) {
        route.policies.timeouts.push(time("read", read));
    }
}
