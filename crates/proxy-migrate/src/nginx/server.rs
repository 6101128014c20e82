//! Converts `server` blocks.

use super::parser::Directive;
use super::scope::{self, Scope};
use super::virtual_host::Server;
use super::{advice, checks, listen, location, policies};
use crate::site::Site;
use std::collections::HashSet;
use std::net::Ipv6Addr;

/// Maximum length of a host name.
const MAX_HOST_BYTES: usize = 253;

/// Converts the servers of a file to routes.
pub(super) fn read_all<'d>(site: &mut Site, servers: &[&'d Directive], http: &Scope<'d>) {
    let mut read = Vec::new();
    for server in servers {
        let scope = http.within(server.children());
        let hosts = names(site, server);
        let listens = listen::read(site, server, &scope, &hosts);
        listen::note_client_timeouts(site, server);
        listen::real_ip::read(site, &scope, &listens);
        read.push((*server, hosts, listens));
    }
    let mut defaults: HashSet<String> = HashSet::new();
    let mut first: HashSet<String> = HashSet::new();
    for (_, _, listens) in &read {
        let default = listens.iter().filter(|it| it.is_default);
        defaults.extend(default.map(|it| it.name.clone()));
    }
    for (server, names, listens) in read {
        let mut is_default = true;
        for listen in &listens {
            let is_first = first.insert(listen.name.clone());
            let has_default = defaults.contains(&listen.name);
            is_default &= listen.is_default || (is_first && !has_default);
        }
        if listens.is_empty() {
            continue;
        }
        let hosts = if is_default {
            Vec::new()
        } else {
            names.clone()
        };
        if hosts.is_empty() && !is_default {
            site.note(
                &server.place,
                "server",
                "it has no name and is not a default server, so no request reaches it",
            );
            continue;
        }
        let server = Server {
            name: names.first().map_or("default", String::as_str).to_owned(),
            sample_host: names.first().cloned().filter(|_| is_default),
            hosts,
            listeners: listens.iter().map(|it| it.name.clone()).collect(),
            scope: http.within(server.children()),
        };
        migrate_server(site, &server, server.scope.innermost());
    }
    site.shorten_listeners();
}

fn migrate_server<'d>(site: &mut Site, server: &Server<'d>, block: &'d [Directive]) {
    for directive in block {
        let name = &*directive.name;
        match name {
            "location" | "root" | "index" | "return" | "rewrite" | "if" => {}
            _ if scope::is_inherited(name) || listen::is_listener_directive(name) => {}
            "access_log" | "error_log" => site.note(
                &directive.place,
                &directive.shown(),
                "there is one access log and one error log for all servers",
            ),
            _ if !checks::is_passive(directive) => {}
            _ => advice::note(site, directive),
        }
    }
    for condition in block.iter().filter(|it| it.name == "if") {
        location::host_condition(site, server, condition);
    }
    if let Some(directive) = block.iter().find(|it| it.name == "return") {
        let service = location::answer(site, directive, &server.scope);
        let mut route = server.route(site, "", service);
        policies::apply(site, &mut route, &server.scope);
        site.push_route(route);
        return;
    }
    for directive in block.iter().filter(|it| it.name == "rewrite") {
        if location::rewrite_all(site, server, directive) {
            return;
        }
    }
    location::read_all(site, server, block);
}

/// Names of a server that hosts can match.
fn names(site: &mut Site, server: &Directive) -> Vec<String> {
    let directives = server
        .children()
        .iter()
        .filter(|it| it.name == "server_name");
    let mut hosts = Vec::new();
    for directive in directives {
        for word in &directive.words {
            match word.as_str() {
                "_" | "" | "\"\"" => {}
                name if name.starts_with('~') || name.ends_with(".*") || name.contains('$') => {
                    site.note(
                        &directive.place,
                        &directive.shown(),
                        "write the hosts out, or `*.example.com` for all below a name; until then the default server takes their requests",
                    );
                }
                name if !is_host(name) => site.note(
                    &directive.place,
                    &directive.shown(),
                    "it is not the name of a host: no request has it",
                ),
                name => match name.strip_prefix('.') {
                    Some(bare) => hosts.extend([bare.to_owned(), format!("*.{bare}")]),
                    None => hosts.push(name.to_owned()),
                },
            }
        }
    }
    hosts
}

/// Returns true if a name can match hosts: labels, or a wildcard in place of the first ones.
fn is_host(name: &str) -> bool {
    let bare = name.strip_prefix("*.").or(name.strip_prefix('.'));
    let bare = bare.unwrap_or(name);
    let is_plain = |label: &str| {
        let mut bytes = label.bytes();
        !label.is_empty() && bytes.all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    let literal = bare.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let is_literal = literal.is_some_and(|it| it.parse::<Ipv6Addr>().is_ok());
    is_literal || (bare.len() <= MAX_HOST_BYTES && bare.split('.').all(is_plain))
}
