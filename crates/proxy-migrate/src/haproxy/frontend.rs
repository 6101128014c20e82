//! Converts frontends to listeners and routes.

mod bind;
mod routes;
mod rules;

pub(super) use bind::bind;
pub(super) use routes::Frontend;

use super::advice::advice;
use super::backend::{self, Backend};
use super::checks;
use super::condition::Condition;
use super::error_pages;
use super::headers;
use super::parser::{Line, Section};
use super::rule;
use super::timeouts::client_timeouts;
use crate::kdl::Node;
use crate::site::Site;
use crate::source::Included;
use std::collections::HashMap;

/// Migrates a `frontend` or a `listen`: first binds and settings, then routes in `HAProxy`'s order of
/// decisions.
pub(super) fn read(
    site: &mut Site,
    section: &Section,
    defaults: &Section,
    backends: &HashMap<String, Backend>,
    included: Included<'_>,
) {
    let lines = || defaults.lines.iter().chain(&section.lines);
    let mut frontend = Frontend::new(&section.name);
    frontend.is_closed = checks::note_checks(site, lines());
    frontend.is_closed |= checks::note_rewrite(site, lines());
    frontend.is_closed |= checks::note_address(site, lines());
    let timeouts = client_timeouts(site, lines());
    for line in section.lines("bind") {
        bind(site, &mut frontend, line, &timeouts);
    }
    let pages = error_pages::read(site, lines(), included);
    frontend.policies.settings.extend(pages);
    let fields = lines().filter_map(headers::forwarded);
    frontend.policies.request_headers.extend(fields);
    settings(site, &mut frontend, section, &defaults.lines);
    // Rules of `defaults` have the access lists of `defaults`.
    for owner in [defaults, section] {
        for line in owner.lines.iter().filter(|line| rule::is_decision(line)) {
            if site.is_full() {
                return;
            }
            rules::answer(site, &mut frontend, owner, line);
        }
    }
    for line in section.lines("use_backend") {
        if site.is_full() {
            return;
        }
        rules::use_backend(site, &mut frontend, section, line, backends);
    }
    default_backend(site, &frontend, section, backends);
}

/// Migrates settings of the whole frontend. Rules of a `listen` are read with its backend.
fn settings(site: &mut Site, frontend: &mut Frontend<'_>, section: &Section, defaults: &[Line]) {
    let is_listen = section.kind == "listen";
    let has_own = section.lines("compression").next().is_some();
    let inherited = defaults.iter().filter(|line| match line.word(0) {
        "compression" => !has_own,
        "http-request" | "http-response" => true,
        _ => false,
    });
    for line in inherited.chain(&section.lines) {
        match line.word(0) {
            "http-request" | "http-response" if !is_listen => {
                frontend.is_closed |= !headers::edit(site, &mut frontend.policies, line);
            }
            "compression" if line.word(1) == "algo" => {
                let known = line.words.iter().skip(2).filter(|word| *word == "gzip");
                let codings = Node::new("codings").args(known.map(String::as_str));
                let types = compressed_types(section, defaults);
                let node = Node::new("compression")
                    .children(codings.with_arguments())
                    .children(types.with_arguments())
                    .child(Node::number("min-size", 0));
                frontend.policies.settings.push(node);
            }
            "compression" if line.word(1) == "type" => {}
            "compression" => line.note(site, "write `compression { types … }`"),
            "option" if !is_listen => backend::option(site, line),
            "acl" | "bind" | "mode" | "option" | "timeout" | "use_backend" | "default_backend"
            | "redirect" | "http-request" | "http-response" | "log" | "description" | "id"
            | "errorfile" => {}
            "maxconn" => line.note(site, "write `limits { max-total-connections … }`"),
            _ if is_listen || checks::is_check(line) => {}
            name => line.note(site, advice(name)),
        }
    }
}

/// Media types of `compression type`.
fn compressed_types(section: &Section, defaults: &[Line]) -> Node {
    let is_type = |line: &&Line| line.word(0) == "compression" && line.word(1) == "type";
    let own = section.lines.iter().rfind(is_type);
    let line = own.or_else(|| defaults.iter().rfind(is_type));
    let words = line.into_iter().flat_map(|line| line.words.iter().skip(2));
    Node::new("types").args(words.map(String::as_str))
}

/// Adds the route without a condition: to the last `default_backend`, or to the servers of a
/// `listen`.
fn default_backend(
    site: &mut Site,
    frontend: &Frontend<'_>,
    section: &Section,
    backends: &HashMap<String, Backend>,
) {
    let own = (section.kind == "listen").then_some(section.name.as_str());
    let named = section.lines("default_backend").map(|line| line.word(1));
    if let Some(backend) = named.last().or(own) {
        for route in frontend.backend_routes(site, backend, &Condition::default(), backends) {
            site.push_route(route);
        }
    }
}
