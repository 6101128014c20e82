//! Converts locations to routes.

mod answers;
mod files;
mod open_ends;
mod order;

use super::parser::Directive;
use super::scope::{self, Scope};
use super::virtual_host::Server;
use super::{advice, checks, policies, proxy};
use crate::site::path_regex::{self, Converted};
use crate::site::{Path, Policies, Route, Service, Site};
use open_ends::OpenEnds;
use order::{Kind, Matcher, Ordered};
use std::collections::HashSet;
use std::fmt::Write as _;

pub(super) use answers::{answer, host_condition, rewrite_all};

/// A location with the blocks around it.
struct Location<'d> {
    directive: &'d Directive,
    scope: Scope<'d>,
    /// Set if the converted expression matches more paths than the original.
    is_wider: bool,
    /// Set if the order of the inner locations cannot be expressed by routes.
    is_closed: bool,
}

/// Converts the locations of a server, and adds a route for all other paths.
pub(super) fn read_all<'d>(site: &mut Site, server: &Server<'d>, block: &'d [Directive]) {
    let mut locations: Vec<Location<'_>> = Vec::new();
    let mut matchers: Vec<Matcher> = Vec::new();
    collect(
        site,
        block,
        &server.scope,
        None,
        &mut locations,
        &mut matchers,
    );
    let has_root = matchers
        .iter()
        .any(|it| matches!(it.kind, Kind::Prefix | Kind::PrefixFirst) && it.text == "/");
    let exact = matchers.iter().filter(|it| it.kind == Kind::Exact);
    let exact: HashSet<&str> = exact.map(|it| it.text.as_str()).collect();
    let first = site.routes.len();
    let mut ends = OpenEnds::default();
    for ordered in order::ordered(&matchers) {
        if site.is_full() {
            return;
        }
        let Some(location) = locations.get(ordered.location) else {
            continue;
        };
        let missing_slash = matchers
            .get(ordered.location)
            .filter(|it| it.kind == Kind::Prefix || it.kind == Kind::PrefixFirst)
            .and_then(|it| it.text.strip_suffix('/'))
            .filter(|path| !path.is_empty() && !exact.contains(path));
        let missing_slash = missing_slash.filter(|_| ordered.is_last(&matchers));
        let directive = location.directive;
        if let Some(path) = missing_slash {
            slash(site, server, directive, path);
        }
        let route = migrate_location(site, server, location, ordered);
        ends.record(directive, &route);
        push(site, server, directive, route);
    }
    ends.write(site, first);
    if !has_root {
        let mut route = server.route(site, "rest", Service::not_migrated());
        if !files::read(site, server, &mut route, &server.scope, block, None) {
            route.service = Service::refusal(404);
        }
        policies::apply(site, &mut route, &server.scope);
        site.push_route(route);
    }
}

/// Adds a route. If its location redirects requests without TLS, these have a route of their own.
fn push(site: &mut Site, server: &Server<'_>, directive: &Directive, mut route: Route) {
    let mut conditions = directive.children().iter();
    if let Some(redirect) = conditions.find_map(checks::redirect_of_plain) {
        let (plain, tls) = site.by_protocol(&server.listeners);
        if plain.is_empty() {
            return site.push_route(route);
        }
        let mut first = route.clone();
        first.name = site.route_name(&format!("{} to https", route.name));
        first.listeners = plain;
        first.service = answer(site, redirect, &server.scope);
        first.policies = Policies::default();
        first.agents.clear();
        site.push_route(first);
        route.listeners = tls;
        if route.listeners.is_empty() {
            return;
        }
    }
    site.push_route(route);
}

/// Adds the redirect from `/a` to `/a/` that nginx makes for a location `/a/` with an upstream.
fn slash(site: &mut Site, server: &Server<'_>, directive: &Directive, path: &str) {
    let mut block = directive.children().iter();
    if !block.any(|it| it.name.ends_with("_pass")) {
        return;
    }
    let service = Service::Redirect {
        to: Some(format!("{path}/")),
        status: 301,
        replace_prefix: None,
    };
    let mut route = server.route(site, &format!("{path} slash"), service);
    route.paths.push(Path::Exact(path.to_owned()));
    site.push_route(route);
}

fn collect<'d>(
    site: &mut Site,
    block: &'d [Directive],
    scope: &Scope<'d>,
    parent: Option<usize>,
    locations: &mut Vec<Location<'d>>,
    matchers: &mut Vec<Matcher>,
) {
    for directive in block.iter().filter(|it| it.name == "location") {
        let (mut is_wider, mut is_closed) = (false, false);
        let (kind, text) = match modifier(directive) {
            (Some("="), Some(path)) => (Kind::Exact, path.to_owned()),
            (Some("^~"), Some(path)) => (Kind::PrefixFirst, path.to_owned()),
            (Some(operator @ ("~" | "~*")), Some(written)) => {
                let text = match path_regex::converted(written, operator == "~*") {
                    Converted::Same(text) => text,
                    Converted::Wider(text) => {
                        is_wider = true;
                        text
                    }
                };
                let has_inner = directive.children().iter().any(|it| it.name == "location");
                if has_inner {
                    is_closed = true;
                    site.note(
                        &directive.place,
                        &directive.shown(),
                        "locations within an expression are not carried over: write their routes; it answers 501 until then",
                    );
                }
                (Kind::Regex, text)
            }
            (None, Some(path)) if path.starts_with('/') => (Kind::Prefix, path.to_owned()),
            (_, name) => {
                note_unreachable(site, directive, scope, name.unwrap_or_default());
                continue;
            }
        };
        if kind != Kind::Regex && !is_path(&text) {
            site.note(
                &directive.place,
                &directive.shown(),
                "no request has this path: paths are compared after they are decoded",
            );
            continue;
        }
        let text = match kind {
            Kind::Regex => text,
            Kind::Exact | Kind::Prefix | Kind::PrefixFirst => encoded(&text),
        };
        let scope = scope.within(directive.children());
        let position = locations.len();
        locations.push(Location {
            directive,
            scope: scope.clone(),
            is_wider,
            is_closed,
        });
        matchers.push(Matcher { kind, text, parent });
        if kind != Kind::Regex {
            let inner = Some(position);
            collect(
                site,
                directive.children(),
                &scope,
                inner,
                locations,
                matchers,
            );
        }
    }
}

/// Notes a location that no request can reach.
fn note_unreachable(site: &mut Site, directive: &Directive, scope: &Scope<'_>, name: &str) {
    if name.starts_with('@') && files::is_fallback(scope, name) {
        return;
    }
    let advice = if name.starts_with('@') {
        "named locations are not offered: write what leads to it in a route"
    } else {
        "a location is `/path`, `= /path`, `^~ /path`, `~ regex` or `~* regex`: no request reaches it"
    };
    site.note(&directive.place, &directive.shown(), advice);
}

/// Operator and path of a location. In `~/a` the space after the operator is missing.
fn modifier(directive: &Directive) -> (Option<&str>, Option<&str>) {
    match (directive.word(0), directive.word(1)) {
        (Some(word), None) => {
            let operators = ["^~", "~*", "~", "="];
            let found = operators
                .iter()
                .find_map(|it| Some((*it, word.strip_prefix(it)?)));
            found.map_or((None, Some(word)), |(operator, path)| {
                (Some(operator), Some(path))
            })
        }
        words => words,
    }
}

/// Returns true if a normalized request path can equal `path`.
fn is_path(path: &str) -> bool {
    let is_plain = |c: char| !(c.is_control() || matches!(c, '?' | '#' | '\\' | '"' | '{' | '}'));
    let mut segments = path.split('/');
    let has_dots = segments.any(|it| it == "." || it == "..");
    path.starts_with('/') && path.chars().all(is_plain) && !has_dots && !path.contains("//")
}

/// Escapes a path for the proxy's comparison; nginx writes paths without escapes.
fn encoded(path: &str) -> String {
    let mut text = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            text.push(char::from(byte));
        } else {
            _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

impl Ordered {
    /// Returns true if the path is the location's own, and not an expression that is tried before
    /// it.
    fn is_last(&self, matchers: &[Matcher]) -> bool {
        let kind = matchers.get(self.location).map(|it| it.kind);
        kind != Some(Kind::Regex) && self.is_known
    }
}

fn migrate_location<'d>(
    site: &mut Site,
    server: &Server<'d>,
    location: &Location<'d>,
    ordered: Ordered,
) -> Route {
    let directive = location.directive;
    let mut route = route(site, server, location, ordered.path);
    if !ordered.is_known {
        site.note(
            &directive.place,
            &directive.shown(),
            "expressions are tried within it that may take a part of its paths: write their routes with priorities; it answers 501 until then",
        );
        close(&mut route);
    }
    if location.is_wider {
        wider(site, directive, &mut route);
    }
    if location.is_closed {
        close(&mut route);
    }
    route
}

fn close(route: &mut Route) {
    route.service = Service::not_migrated();
    route.policies = Policies::default();
}

/// Notes an expression that was converted without its look-around. If the location refuses
/// requests, it refuses more of them.
fn wider(site: &mut Site, directive: &Directive, route: &mut Route) {
    let is_refusal = matches!(route.service, Service::Respond { status: 400.., .. });
    site.note(
        &directive.place,
        &directive.shown(),
        if is_refusal {
            "expressions have no look-around and no back references: without them it refuses more paths; write a route of higher priority for those that it left out"
        } else {
            "expressions have no look-around and no back references: write the paths out; all that could be meant is answered 501 until then"
        },
    );
    if !is_refusal {
        close(route);
    }
}

fn route<'d>(site: &mut Site, server: &Server<'d>, location: &Location<'d>, path: Path) -> Route {
    let Location {
        directive, scope, ..
    } = location;
    let block = directive.children();
    note_others(site, block);
    let find = |name: &str| block.iter().find(|it| it.name == name);
    let (Path::Exact(part) | Path::Prefix(part) | Path::Beginning(part) | Path::Regex(part)) =
        &path;
    let mut route = server.route(site, part, Service::not_migrated());
    route.paths.push(path);
    if let Some(internal) = find("internal") {
        let is_page = directive.word(0) == Some("=");
        if !is_page {
            site.note(
                &internal.place,
                "internal",
                "`X-Accel-Redirect` and rewrites lead to no other location: requests are answered 404, and responses with that field pass as they are",
            );
        }
        route.service = Service::refusal(404);
        return route;
    }
    let mut content_scope = scope.clone();
    let prefix = match modifier(directive) {
        (Some("~" | "~*"), _) => None,
        (_, path) => path,
    };
    if let Some(directive) = find("return") {
        route.service = answer(site, directive, scope);
    } else if let Some(pass) = find("proxy_pass") {
        let replaced = prefix.map(encoded);
        proxy::pass(site, &mut route, pass, scope, replaced.as_deref());
        if let Some(tried) = find("try_files") {
            site.note(
                &tried.place,
                &tried.shown(),
                "files are not looked for before a request is sent to the upstream: write a route with `static-files` for their paths",
            );
        }
    } else if !block.iter().any(|it| it.name.ends_with("_pass")) {
        if let Some(named) = files::application(site, server, &mut route, scope, block) {
            content_scope = named;
        } else if !files::read(site, server, &mut route, scope, block, prefix) {
            note_nothing(site, directive, scope);
        }
    }
    for rewrite in block.iter().filter(|it| it.name == "rewrite") {
        answers::rewrite_in(site, &mut route, rewrite);
    }
    policies::apply(site, &mut route, &content_scope);
    route
}

/// Notes directives of a location that are ignored.
fn note_others(site: &mut Site, block: &[Directive]) {
    for child in block {
        let name = &*child.name;
        let is_read = matches!(
            name,
            "location"
                | "return"
                | "proxy_pass"
                | "try_files"
                | "alias"
                | "root"
                | "index"
                | "rewrite"
                | "internal"
        );
        let is_redirect = checks::redirect_of_plain(child).is_some();
        let is_of_text = name == "default_type" && block.iter().any(|it| it.name == "return");
        if is_read
            || is_redirect
            || is_of_text
            || scope::is_inherited(name)
            || !checks::is_passive(child)
        {
            continue;
        }
        match name {
            "access_log" | "error_log" => site.note(
                &child.place,
                &child.shown(),
                "there is one access log and one error log for all routes",
            ),
            _ => advice::note(site, child),
        }
    }
}

/// Notes a location without content.
fn note_nothing(site: &mut Site, directive: &Directive, scope: &Scope<'_>) {
    let block = directive.children();
    let has_alias = block.iter().any(|it| it.name == "alias");
    let redirects = |it: &Directive| {
        it.name == "rewrite" && matches!(it.word(2), Some("permanent" | "redirect"))
    };
    let is_denied = scope
        .rules_of_access()
        .first()
        .is_some_and(|it| it.name == "deny" && it.word(0) == Some("all"));
    if !has_alias && !is_denied && !block.iter().any(redirects) {
        site.note(
            &directive.place,
            &directive.shown(),
            "it names no `root` and no `proxy_pass`; the route answers 501",
        );
    }
}
