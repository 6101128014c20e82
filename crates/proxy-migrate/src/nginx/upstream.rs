//! Converts `upstream` blocks.

use super::advice;
use super::parser::Directive;
use crate::kdl::Node;
use crate::site::{Site, Upstream};
use crate::units;

/// Adds an upstream of `http` under its own name.
pub(super) fn read(site: &mut Site, directive: &Directive) {
    if let Some(name) = directive.word(0) {
        read_as(site, directive, name, None);
    }
}

/// Adds an upstream under a given name, with an additional setting.
pub(super) fn read_as(site: &mut Site, directive: &Directive, name: &str, setting: Option<Node>) {
    let mut upstream = Upstream {
        name: name.to_owned(),
        settings: setting.into_iter().collect(),
        ..Upstream::default()
    };
    let mut outliers: Option<(u64, u64)> = None;
    for child in directive.children() {
        match (&*child.name, child.word(0)) {
            ("server", Some(address)) => target(site, &mut upstream, child, address, &mut outliers),
            ("least_conn", _) => upstream
                .settings
                .push(Node::text("load-balancing", "least_connections")),
            ("ip_hash", _) => upstream
                .settings
                .push(Node::text("load-balancing", "ip_hash")),
            ("random", _) => upstream
                .settings
                .push(Node::text("load-balancing", "random_two")),
            ("hash", Some("$remote_addr" | "$binary_remote_addr")) => {
                upstream
                    .settings
                    .push(Node::text("load-balancing", "ip_hash"));
            }
            ("hash", _) => site.note(
                &child.place,
                &child.shown(),
                "write `load-balancing \"ip_hash\"` for clients, or `sticky` for sessions",
            ),
            ("keepalive", Some(number)) => {
                let idle = number.parse::<u64>().unwrap_or(32);
                let idle = site.number(&child.place, &child.shown(), "max-idle", idle);
                upstream
                    .settings
                    .push(Node::new("connection-pool").child(idle));
            }
            ("zone" | "keepalive_requests" | "keepalive_timeout" | "keepalive_time", _) => {}
            _ => advice::note(site, child),
        }
    }
    if let Some((failures, ms)) = outliers {
        let (place, shown) = (&directive.place, directive.shown());
        let failures = site.number(place, &shown, "consecutive-failures", failures);
        let ejection = site.time(place, &shown, "base-ejection", ms.max(1_000));
        let detection = Node::new("outlier-detection");
        upstream
            .settings
            .push(detection.child(failures).child(ejection));
    }
    let serves = |(_, weight): &(String, u64)| *weight > 0;
    if upstream.targets.iter().any(serves) {
        site.upstreams.push(upstream);
    } else {
        site.note(
            &directive.place,
            &directive.shown(),
            "it has no target that gets requests: routes to it answer 501",
        );
        site.empty_upstreams.insert(name.to_owned());
    }
}

fn target(
    site: &mut Site,
    upstream: &mut Upstream,
    directive: &Directive,
    address: &str,
    outliers: &mut Option<(u64, u64)>,
) {
    if address.starts_with("unix:") {
        site.note(
            &directive.place,
            &directive.shown(),
            "let the server listen on a port of 127.0.0.1, and write a target for it",
        );
        return;
    }
    let has_port = address
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port {
        address.to_owned()
    } else {
        format!("{address}:80")
    };
    let mut weight = 1;
    let mut is_backup = false;
    for word in directive.words.iter().skip(1) {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let number = value.parse::<u64>().ok();
        match name {
            "weight" => weight = number.unwrap_or(1),
            "max_fails" => {
                let (failures, _) = outliers.get_or_insert((1, 10_000));
                *failures = number.unwrap_or(1);
            }
            "fail_timeout" => {
                let (_, ms) = outliers.get_or_insert((1, 10_000));
                *ms = units::milliseconds(value, 1_000).unwrap_or(10_000);
            }
            "down" => weight = 0,
            "resolve" => {}
            "backup" => is_backup = true,
            _ => site.note(
                &directive.place,
                &directive.shown(),
                &format!("`{name}` is not carried over; `connection-pool {{ max-connections }}` bounds a target"),
            ),
        }
    }
    let address = address.replace("localhost:", "127.0.0.1:");
    let weight = site.within(&directive.place, &directive.shown(), "weight", weight);
    if let Some((_, known)) = upstream.targets.iter_mut().find(|(it, _)| *it == address) {
        *known = known.saturating_add(weight).min(10_000);
        return;
    }
    if is_backup {
        upstream.backups.push(address.clone());
    }
    upstream.targets.push((address, weight));
}
