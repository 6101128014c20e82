//! Converts `server` blocks.

use super::listen::Listen;
use super::parser::Directive;
use super::scope::{self, Scope};
use super::virtual_host::Server;
use super::{advice, checks, listen, location, policies};
use crate::site::{Policies, Service, Site};
use std::collections::{HashMap, HashSet};
use std::net::Ipv6Addr;

/// Maximum length of a host name.
const MAX_HOST_BYTES: usize = 253;

/// A server with its names and listeners.
struct Listening<'d> {
    directive: &'d Directive,
    /// Names that hosts can match.
    names: Vec<String>,
    /// Directives with other names: the default server takes their requests.
    unwritten: Vec<&'d Directive>,
    listens: Vec<Listen>,
    has_checks: bool,
}

impl Listening<'_> {
    /// Returns true if the default server would take requests that this one checks.
    const fn loses_checks(&self) -> bool {
        self.has_checks && !self.unwritten.is_empty()
    }
}

/// Converts the servers of a file to routes.
pub(super) fn read_all<'d>(site: &mut Site, servers: &[&'d Directive], http: &Scope<'d>) {
    let is_checked = http.outermost().any(checks::is_inherited_check);
    let mut read: Vec<Listening<'_>> = Vec::new();
    for directive in servers.iter().copied() {
        let scope = http.within(directive.children());
        let (names, unwritten) = names(directive);
        let listens = listen::read(site, directive, &scope, &names);
        listen::note_client_timeouts(site, directive);
        listen::real_ip::read(site, &scope, &listens);
        read.push(Listening {
            directive,
            names,
            unwritten,
            listens,
            has_checks: is_checked || checks::has_checks(directive.children()),
        });
    }
    let read = without_conflicts(site, read);
    let mut defaults: HashSet<String> = HashSet::new();
    let mut first: HashSet<String> = HashSet::new();
    // Number of servers by listener with checks that the default server does not make.
    let mut lost: HashMap<String, usize> = HashMap::new();
    for server in &read {
        let default = server.listens.iter().filter(|it| it.is_default);
        defaults.extend(default.map(|it| it.name.clone()));
        for listen in server.listens.iter().filter(|_| server.loses_checks()) {
            *lost.entry(listen.name.clone()).or_default() += 1;
        }
    }
    for listening in read {
        let mut is_default = true;
        for listen in &listening.listens {
            let is_first = first.insert(listen.name.clone());
            let has_default = defaults.contains(&listen.name);
            is_default &= listen.is_default || (is_first && !has_default);
        }
        note_names(site, &listening, is_default);
        let own = usize::from(listening.loses_checks());
        let mut names = listening.listens.iter().map(|it| lost.get(&it.name));
        let has_lost = names.any(|it| it.is_some_and(|count| *count > own));
        let first_route = site.routes.len();
        read_one(site, listening, http, is_default);
        if is_default && has_lost {
            close(site, first_route);
        }
    }
    site.shorten_listeners();
}

/// Removes names that an earlier server of the same listener has: nginx ignores them there, so that
/// their requests never reach the later server. A server with other names on one listener than on
/// another one is split: a name keeps the checks of its server wherever it is new.
fn without_conflicts<'d>(site: &mut Site, servers: Vec<Listening<'d>>) -> Vec<Listening<'d>> {
    let mut known: HashSet<(String, String)> = HashSet::new();
    let mut read = Vec::new();
    for mut server in servers {
        let mut own: HashSet<String> = HashSet::new();
        server
            .names
            .retain(|name| own.insert(name.to_ascii_lowercase()));
        let (directive, names) = (server.directive, server.names.len());
        let parts = by_new_names(server, &mut known);
        if parts.iter().any(|part| part.names.len() < names) {
            for directive in named(directive) {
                site.note(
                    &directive.place,
                    &directive.shown(),
                    "an earlier server of the listener has one of these names, and takes its requests, as in nginx",
                );
            }
        }
        read.extend(parts);
    }
    read
}

/// A server for each list of names that are not `known` on its listeners; the names become known.
fn by_new_names<'d>(
    server: Listening<'d>,
    known: &mut HashSet<(String, String)>,
) -> Vec<Listening<'d>> {
    if server.listens.is_empty() {
        return vec![server];
    }
    let Listening {
        directive,
        names,
        unwritten,
        listens,
        has_checks,
    } = server;
    let mut parts: Vec<Listening<'d>> = Vec::new();
    for listen in listens {
        let mut new = names.clone();
        new.retain(|name| known.insert((listen.name.clone(), name.to_ascii_lowercase())));
        if let Some(part) = parts.iter_mut().find(|part| part.names == new) {
            part.listens.push(listen);
        } else {
            parts.push(Listening {
                directive,
                names: new,
                unwritten: unwritten.clone(),
                listens: vec![listen],
                has_checks,
            });
        }
    }
    parts
}

/// Converts a server to routes.
fn read_one<'d>(site: &mut Site, server: Listening<'d>, http: &Scope<'d>, is_default: bool) {
    let Listening {
        directive,
        names,
        listens,
        ..
    } = server;
    if listens.is_empty() {
        return;
    }
    let hosts = if is_default {
        Vec::new()
    } else {
        names.clone()
    };
    if hosts.is_empty() && !is_default {
        return site.note(
            &directive.place,
            "server",
            "it has no name and is not a default server, so no request reaches it",
        );
    }
    let server = Server {
        name: names.first().map_or("default", String::as_str).to_owned(),
        sample_host: names.first().cloned().filter(|_| is_default),
        hosts,
        listeners: listens.iter().map(|it| it.name.clone()).collect(),
        scope: http.within(directive.children()),
    };
    migrate_server(site, &server, server.scope.innermost());
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
    let conditions = block.iter().filter(|it| it.name == "if");
    let to_https = conditions.clone().find_map(checks::redirect_of_plain);
    for condition in conditions {
        location::host_condition(site, server, condition);
    }
    if let Some(redirect) = to_https
        && let Some(rest) = redirect_plain(site, server, redirect)
    {
        answers(site, &rest, block);
    } else if to_https.is_none() {
        answers(site, server, block);
    }
}

/// Adds a redirect for a server's listeners without TLS. Returns the server with the remaining ones; `None`
/// if there are none.
fn redirect_plain<'d>(
    site: &mut Site,
    server: &Server<'d>,
    redirect: &'d Directive,
) -> Option<Server<'d>> {
    let (plain, tls) = site.by_protocol(&server.listeners);
    let mut rest = server.clone();
    rest.listeners = plain;
    if !rest.listeners.is_empty() {
        let service = location::answer(site, redirect, &server.scope);
        let route = rest.route(site, "to https", service);
        site.push_route(route);
    }
    rest.listeners = tls;
    (!rest.listeners.is_empty()).then_some(rest)
}

/// Converts the directives of a server that answer requests.
fn answers<'d>(site: &mut Site, server: &Server<'d>, block: &'d [Directive]) {
    if let Some(at) = block.iter().position(|it| it.name == "return")
        && let Some((before, [directive, ..])) = block.split_at_checked(at)
    {
        for rewrite in before.iter().filter(|it| it.name == "rewrite") {
            if location::rewrite_all(site, server, rewrite) {
                return;
            }
        }
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

/// Makes the routes from a position on answer 501, except redirects and refusals.
fn close(site: &mut Site, first: usize) {
    for route in site.routes.iter_mut().skip(first) {
        let shows_nothing = matches!(
            route.service,
            Service::Redirect { .. } | Service::Respond { status: 400.., .. }
        );
        if !shows_nothing {
            route.service = Service::not_migrated();
            route.policies = Policies::default();
            route.agents.clear();
        }
    }
}

/// Notes names of a server that hosts cannot match: the default server takes their requests.
fn note_names(site: &mut Site, server: &Listening<'_>, is_default: bool) {
    let advice = if server.loses_checks() && !is_default {
        "write the hosts out, or `*.example.com` for all below a name; until then the default server would take their requests without the checks of this one, and answers 501"
    } else {
        "write the hosts out, or `*.example.com` for all below a name; until then the default server takes their requests"
    };
    for directive in &server.unwritten {
        site.note(&directive.place, &directive.shown(), advice);
    }
    for directive in named(server.directive) {
        let mut words = directive.words.iter();
        if words.any(|name| !(is_any(name) || is_pattern(name) || is_host(name))) {
            site.note(
                &directive.place,
                &directive.shown(),
                "it is not the name of a host: no request has it",
            );
        }
    }
}

fn named(server: &Directive) -> impl Iterator<Item = &Directive> {
    let directives = server.children().iter();
    directives.filter(|it| it.name == "server_name")
}

/// Returns true if a name stands for no host.
fn is_any(name: &str) -> bool {
    matches!(name, "_" | "" | "\"\"")
}

/// Returns true if a name is an expression, a wildcard at the end, or a variable.
fn is_pattern(name: &str) -> bool {
    name.starts_with('~') || name.ends_with(".*") || name.contains('$')
}

/// Names of a server that hosts can match, and the directives with further names.
fn names(server: &Directive) -> (Vec<String>, Vec<&Directive>) {
    let (mut hosts, mut unwritten) = (Vec::new(), Vec::new());
    for directive in named(server) {
        let mut words = directive.words.iter();
        if words.any(|name| is_pattern(name)) {
            unwritten.push(directive);
        }
        let is_written = |name: &&String| !is_any(name) && !is_pattern(name) && is_host(name);
        for name in directive.words.iter().filter(is_written) {
            match name.strip_prefix('.') {
                Some(bare) => hosts.extend([bare.to_owned(), format!("*.{bare}")]),
                None => hosts.push(name.clone()),
            }
        }
    }
    (hosts, unwritten)
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
