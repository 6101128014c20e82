//! Reads `haproxy.cfg`.

mod advice;
mod backend;
mod checks;
mod condition;
mod connection_rules;
mod defaults;
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
use defaults::Defaults;
use parser::Section;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Reads a configuration. Sections in `mode tcp` become listeners that relay connections.
pub(crate) fn read(source: &Source, included: Included<'_>) -> Result<Site, SyntaxError> {
    let sections = parser::parse(source)?;
    let mut site = Site::default();
    let mut defaults = Defaults::new();
    let mut policies: HashMap<String, Backend> = HashMap::new();
    let mut frontends: Vec<(&Section, Rc<Section>)> = Vec::new();
    let mut relayed: Vec<(&Section, Rc<Section>)> = Vec::new();
    let mut usable: HashSet<String> = HashSet::new();
    for section in &sections {
        let base = defaults.base(section);
        let lines = base.lines.iter().chain(&section.lines);
        let mut modes = lines.filter(|line| line.word(0) == "mode");
        let mode = modes.next_back().map_or("tcp", |line| line.word(1));
        note_header(&mut site, section);
        match section.kind.as_str() {
            "global" => global(&mut site, section),
            "defaults" => defaults.add(&mut site, section)?,
            "frontend" | "backend" | "listen" if mode != "http" && mode != "tcp" => {
                site.note(
                    &section.place,
                    &section.shown(),
                    "the modes are `http` and `tcp`",
                );
            }
            "frontend" if mode == "tcp" => relayed.push((section, base)),
            "backend" | "listen" if mode == "tcp" => {
                if backend::read_relayed(&mut site, section, &base) {
                    usable.insert(section.name.clone());
                }
                if section.kind == "listen" {
                    relayed.push((section, base));
                }
            }
            "frontend" => frontends.push((section, base)),
            "backend" | "listen" => {
                let backend = backend::read(&mut site, section, &base);
                policies.insert(section.name.clone(), backend);
                if section.kind == "listen" {
                    frontends.push((section, base));
                }
            }
            _ => site.note(
                &section.place,
                &section.shown(),
                "not carried over; see docs/learn/coming-from/haproxy.md",
            ),
        }
    }
    for (section, base) in frontends {
        frontend::read(&mut site, section, &base, &policies, included);
    }
    site.shorten_listeners();
    relays::read_all(&mut site, &relayed, &usable);
    Ok(site)
}

/// Notes words after the name of a section, such as the address of a `listen`.
fn note_header(site: &mut Site, section: &Section) {
    let is_proxy = matches!(
        &*section.kind,
        "defaults" | "frontend" | "backend" | "listen"
    );
    if is_proxy && !section.rest.is_empty() && (section.base().is_none() || section.rest.len() > 2)
    {
        let shown = format!("{} {}", section.shown(), section.rest.join(" "));
        site.note(
            &section.place,
            &shown,
            "words after the name are not read: write a listener for an address",
        );
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
