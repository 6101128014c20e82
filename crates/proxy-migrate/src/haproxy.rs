//! Reads `haproxy.cfg`.

mod advice;
mod backend;
mod checks;
mod condition;
mod connection_rules;
mod error_pages;
mod frontend;
mod headers;
mod parser;
mod relays;
mod rule;
mod timeouts;

use crate::kdl::Node;
use crate::migrated::SyntaxError;
use crate::site::Site;
use crate::source::{Included, Source};
use advice::advice;
use backend::Backend;
use parser::{Line, Section};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Reads a configuration. Sections in `mode tcp` become listeners that relay connections.
pub(crate) fn read(source: &Source, included: Included<'_>) -> Result<Site, SyntaxError> {
    let sections = parser::parse(source)?;
    let mut site = Site::default();
    let mut defaults: Rc<[Line]> = Rc::default();
    let mut policies: HashMap<String, Backend> = HashMap::new();
    let mut frontends: Vec<(&Section, Rc<[Line]>)> = Vec::new();
    let mut relayed: Vec<(&Section, Rc<[Line]>)> = Vec::new();
    let mut usable: HashSet<String> = HashSet::new();
    for section in &sections {
        let mut modes = defaults
            .iter()
            .chain(&section.lines)
            .filter(|line| line.word(0) == "mode");
        let mode = modes.next_back().map_or("tcp", |line| line.word(1));
        match section.kind.as_str() {
            "global" => global(&mut site, section),
            "defaults" => {
                note_defaults(&mut site, section);
                defaults = Rc::from(&*section.lines);
            }
            "frontend" | "backend" | "listen" if mode != "http" && mode != "tcp" => {
                let shown = format!("{} {}", section.kind, section.name);
                site.note(&section.place, &shown, "the modes are `http` and `tcp`");
            }
            "frontend" if mode == "tcp" => relayed.push((section, Rc::clone(&defaults))),
            "backend" | "listen" if mode == "tcp" => {
                if backend::read_relayed(&mut site, section, &defaults) {
                    usable.insert(section.name.clone());
                }
                if section.kind == "listen" {
                    relayed.push((section, Rc::clone(&defaults)));
                }
            }
            "frontend" => frontends.push((section, Rc::clone(&defaults))),
            "backend" => {
                let backend_policies = backend::read(&mut site, section, &defaults);
                policies.insert(section.name.clone(), backend_policies);
            }
            "listen" => {
                let backend_policies = backend::read(&mut site, section, &defaults);
                policies.insert(section.name.clone(), backend_policies);
                frontends.push((section, Rc::clone(&defaults)));
            }
            _ => {
                let shown = format!("{} {}", section.kind, section.name);
                site.note(
                    &section.place,
                    &shown,
                    "not carried over; see docs/learn/coming-from/haproxy.md",
                );
            }
        }
    }
    for (section, defaults) in frontends {
        frontend::read(&mut site, section, &defaults, &policies, included);
    }
    site.shorten_listeners();
    relays::read_all(&mut site, &relayed, &usable);
    Ok(site)
}

/// Notes lines of `defaults` that the conversion of sections ignores.
fn note_defaults(site: &mut Site, section: &Section) {
    for line in &section.lines {
        match line.word(0) {
            "option" => backend::option(site, line),
            "maxconn" => line.note(site, "write `limits { max-total-connections … }`"),
            "acl" | "balance" | "compression" | "cookie" | "default-server" | "description"
            | "errorfile" | "http-request" | "http-response" | "http-reuse" | "id" | "log"
            | "mode" | "redirect" | "retries" | "retry-on" | "tcp-request" | "timeout" => {}
            _ if checks::is_check(line) => {}
            name => line.note(site, advice(name)),
        }
    }
}

fn global(site: &mut Site, section: &Section) {
    for line in &section.lines {
        let number = line.word(1).parse::<u64>().ok();
        match (line.word(0), number) {
            ("maxconn", Some(number)) => {
                let (place, text) = (&line.place, line.text());
                let limit = site.number(place, &text, "max-total-connections", number);
                site.settings.push(Node::new("limits").child(limit));
            }
            ("nbthread", Some(number)) => {
                let (place, text) = (&line.place, line.text());
                let threads = site.number(place, &text, "worker-threads", number);
                site.settings.push(Node::new("system").child(threads));
            }
            (
                "log" | "user" | "group" | "daemon" | "chroot" | "pidfile" | "master-worker"
                | "fd-hard-limit" | "ca-base" | "crt-base" | "stats" | "cpu-map"
                | "hard-stop-after",
                _,
            ) => {}
            (name, _) if name.starts_with("tune.") || name.starts_with("ssl-default-") => {}
            (name, _) => line.note(site, advice(name)),
        }
    }
}
