//! nginx and the result of `config migrate`, side by side: the same requests to both, and the reasons of all differences.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

mod differences;
mod exchange;
mod requests;
mod servers;
mod site;
mod upstream;

use differences::RULES;
use exchange::Exchange;
use servers::{Servers, has_nginx};
use site::SITES;
use std::collections::HashSet;
use std::fs;

/// Least number of requests that are compared.
const MIN_REQUESTS: usize = 500;

#[test]
fn requests_are_answered_alike_or_differ_for_a_known_reason() {
    if !has_nginx() {
        return;
    }
    let mut unknown: Vec<String> = Vec::new();
    let mut used: HashSet<usize> = HashSet::new();
    let (mut count, mut alike) = (0, 0);
    for (site, text) in SITES {
        let servers = Servers::start(text);
        for request in requests::site_requests(site, &servers) {
            count += 1;
            let [nginx, proxyd] = servers.ports().map(|port| servers.exchange(port, &request));
            let found = Exchange::differences(&nginx, &proxyd);
            alike += usize::from(found.is_empty());
            for difference in found {
                let mut rules = RULES.iter().enumerate();
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
    assert!(count >= MIN_REQUESTS, "{count} requests");
    let unused = RULES
        .iter()
        .enumerate()
        .filter(|(at, _)| !used.contains(at));
    let unused: Vec<&str> = unused.map(|(_, rule)| rule.row).collect();
    assert!(unused.is_empty(), "no request shows: {unused:?}");
}

#[test]
fn each_reason_is_on_the_page() {
    let page = "../../docs/learn/coming-from/nginx-differences.md";
    let page = fs::read_to_string(page).unwrap();
    for rule in RULES {
        let row = format!("\n| {} |", rule.row);
        assert!(page.contains(&row), "{row}");
    }
}
