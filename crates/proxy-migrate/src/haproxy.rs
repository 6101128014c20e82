//! Configurations of `HAProxy`.

mod advice;
mod backend;
mod checks;
mod condition;
mod error_pages;
mod frontend;
mod headers;
mod parser;
mod rule;
mod times;

use crate::kdl::Node;
use crate::migrated::SyntaxError;
use crate::site::Site;
use crate::source::{Included, Source};
use advice::advice;
use backend::Backend;
use parser::{Line, Section};
use std::collections::HashMap;

/// Reads a configuration of HTTP. Sections of TCP are listed.
pub(crate) fn read(source: &Source, included: Included<'_>) -> Result<Site, SyntaxError> {
    let sections = parser::parse(source)?;
    let mut site = Site::default();
    let mut defaults: Vec<Line> = Vec::new();
    let mut policies: HashMap<String, Backend> = HashMap::new();
    let mut frontends: Vec<(&Section, Vec<Line>)> = Vec::new();
    for section in &sections {
        let mut modes = defaults
            .iter()
            .chain(&section.lines)
            .filter(|line| line.word(0) == "mode");
        let is_tcp = modes.next_back().is_some_and(|line| line.word(1) != "http");
        match section.kind.as_str() {
            "global" => global(&mut site, section),
            "defaults" => defaults.clone_from(&section.lines),
            "frontend" | "backend" | "listen" if is_tcp => {
                let shown = format!("{} {}", section.kind, section.name);
                site.left(
                    &section.place,
                    &shown,
                    "write a listener with `protocol \"tcp\"`; see docs/operate/relays.md",
                );
            }
            "frontend" => frontends.push((section, defaults.clone())),
            "backend" => {
                let backend_policies = backend::read(&mut site, section, &defaults);
                policies.insert(section.name.clone(), backend_policies);
            }
            "listen" => {
                let backend_policies = backend::read(&mut site, section, &defaults);
                policies.insert(section.name.clone(), backend_policies);
                frontends.push((section, defaults.clone()));
            }
            _ => {
                let shown = format!("{} {}", section.kind, section.name);
                site.left(
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
    let all = site.listeners.len();
    for route in &mut site.routes {
        if route.listeners.len() == all {
            route.listeners.clear();
        }
    }
    Ok(site)
}

fn global(site: &mut Site, section: &Section) {
    for line in &section.lines {
        let number = line.word(1).parse::<u64>().ok();
        match (line.word(0), number) {
            ("maxconn", Some(number)) => {
                let limit = Node::number("max-total-connections", number);
                site.settings.push(Node::new("limits").child(limit));
            }
            ("nbthread", Some(number)) => {
                let threads = Node::number("worker-threads", number);
                site.settings.push(Node::new("system").child(threads));
            }
            (
                "log" | "user" | "group" | "daemon" | "chroot" | "pidfile" | "master-worker"
                | "fd-hard-limit" | "ca-base" | "crt-base" | "stats" | "cpu-map"
                | "hard-stop-after",
                _,
            ) => {}
            (name, _) if name.starts_with("tune.") || name.starts_with("ssl-default-") => {}
            (name, _) => site.left(&line.place, &line.shown(), advice(name)),
        }
    }
}
