//! Other servers and the results of `config migrate`, side by side: the same requests to both, and the reasons of all
//! differences.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

mod caddy;
mod exchange;
mod haproxy;
mod nginx;
mod peer;
mod rule;
mod servers;
mod upstream;

use caddy::CADDY;
use exchange::Exchange;
use haproxy::HAPROXY;
use nginx::NGINX;
use peer::Peer;
use servers::Servers;
use std::collections::HashSet;
use std::fs;

/// Sends the requests of all sites to the server and to proxyd. Every difference needs a rule, and every rule a
/// difference.
fn compare(peer: &Peer) {
    if !peer.is_installed() {
        return;
    }
    let mut unknown: Vec<String> = Vec::new();
    let mut used: HashSet<usize> = HashSet::new();
    let (mut count, mut alike) = (0, 0);
    for (site, text) in peer.sites {
        let servers = Servers::start(peer, text);
        for request in (peer.requests)(site, &servers) {
            count += 1;
            let [theirs, ours] = servers.ports().map(|port| servers.exchange(port, &request));
            let found = Exchange::differences(&theirs, &ours);
            alike += usize::from(found.is_empty());
            for difference in found {
                let mut rules = peer.rules.iter().enumerate();
                let rule = rules.find(|(_, rule)| rule.holds(site, &request, &difference));
                match rule {
                    Some((at, _)) => _ = used.insert(at),
                    None => unknown.push(format!("{site}: {request}: {difference}")),
                }
            }
        }
    }
    assert!(
        unknown.is_empty(),
        "{} of {count} are alike\n{}",
        alike,
        unknown.join("\n")
    );
    assert!(count >= peer.min_requests, "{count} requests");
    let rules = peer.rules.iter().enumerate();
    let unused = rules.filter(|(at, _)| !used.contains(at));
    let unused: Vec<&str> = unused.map(|(_, rule)| rule.row).collect();
    assert!(unused.is_empty(), "no request shows: {unused:?}");
}

#[test]
fn requests_to_nginx_are_answered_alike_or_differ_for_a_known_reason() {
    compare(&NGINX);
}

#[test]
fn requests_to_haproxy_are_answered_alike_or_differ_for_a_known_reason() {
    compare(&HAPROXY);
}

#[test]
fn requests_to_caddy_are_answered_alike_or_differ_for_a_known_reason() {
    compare(&CADDY);
}

#[test]
fn each_reason_is_on_the_page_of_its_server() {
    for peer in [NGINX, HAPROXY, CADDY] {
        let page = format!("../../docs/learn/coming-from/{}", peer.page);
        let page = fs::read_to_string(page).unwrap();
        for rule in peer.rules {
            let row = format!("\n| {} |", rule.row);
            assert!(page.contains(&row), "{}: {row}", peer.page);
        }
    }
}
