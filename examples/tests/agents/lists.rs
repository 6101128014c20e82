//! The agent with lists of addresses and countries.

use crate::asking::{Asked, Asking, blocked, edits};
use crate::process::AgentProcess;
use agent_protocol::Decision;
use std::fs;
use std::path::Path;
use std::thread::park_timeout;
use std::time::Duration;

const RANGES: &str = "# first,last,country\n\
    192.0.2.0,192.0.2.127,DE\n192.0.2.128,192.0.2.255,fr\n2001:db8::,2001:db8::ffff,DE\n";
const MAX_POLLS: usize = 500;

fn agent(files: &[(&str, &str)]) -> AgentProcess {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let path = folder.path().to_str().unwrap().to_owned();
    AgentProcess::python_in("lists/lists.py", &[&path], folder)
}

fn replace(folder: &Path, name: &str, text: &str) {
    let next = folder.join("next");
    fs::write(&next, text).unwrap();
    fs::rename(next, folder.join(name)).unwrap();
}

#[test]
fn listed_addresses_and_countries_are_refused_and_the_country_is_passed_on() {
    let agent = agent(&[
        (
            "deny.txt",
            "# comment\n192.0.2.7\n198.51.100.0/24\n2001:db8:bad::/48\n",
        ),
        ("countries.csv", RANGES),
        ("deny-countries.txt", "fr\n"),
    ]);
    let mut asking = Asking::connect(&agent.socket());
    for address in [
        "192.0.2.7",
        "198.51.100.255",
        "2001:db8:bad::1",
        "::ffff:192.0.2.7",
    ] {
        assert_eq!(
            blocked(&asking.ask(&Asked::from(address))),
            "deny.txt",
            "{address}"
        );
    }
    assert_eq!(
        blocked(&asking.ask(&Asked::from("192.0.2.128"))),
        "country FR"
    );
    for (address, country) in [
        ("192.0.2.127", "DE"),
        ("2001:db8::1", "DE"),
        ("2001:db8::1:0", "ZZ"),
        ("203.0.113.1", "ZZ"),
    ] {
        let decision = asking.ask(&Asked::from(address));
        assert_eq!(
            edits(&decision),
            [format!("set x-client-country={country}")]
        );
    }
}

#[test]
fn with_lists_of_the_allowed_all_others_are_refused() {
    let agent = agent(&[
        ("allow.txt", "192.0.2.0/24\n"),
        ("countries.csv", RANGES),
        ("allow-countries.txt", "DE\n"),
    ]);
    let mut asking = Asking::connect(&agent.socket());
    assert_eq!(
        blocked(&asking.ask(&Asked::from("203.0.113.1"))),
        "allow.txt"
    );
    assert_eq!(
        blocked(&asking.ask(&Asked::from("192.0.2.200"))),
        "country FR"
    );
    assert_eq!(edits(&asking.ask(&Asked::from("192.0.2.1"))).len(), 1);
}

#[test]
fn a_changed_list_takes_effect_without_a_restart_and_a_broken_one_does_not() {
    let agent = agent(&[("deny.txt", "192.0.2.1\n")]);
    let mut asking = Asking::connect(&agent.socket());
    let mut is_blocked = |address| {
        let decision = asking.ask(&Asked::from(address));
        matches!(decision, Decision::Block(_))
    };
    assert!(is_blocked("192.0.2.1") && !is_blocked("192.0.2.2"));

    replace(agent.folder(), "deny.txt", "192.0.2.2\n");
    let looks = (0..MAX_POLLS).find(|_| {
        park_timeout(Duration::from_millis(20));
        is_blocked("192.0.2.2")
    });
    assert!(looks.is_some() && !is_blocked("192.0.2.1"));

    // The list after the broken one is active, so the broken one has been read before.
    replace(agent.folder(), "deny.txt", "192.0.2.1\nnot an address\n");
    replace(agent.folder(), "allow.txt", "192.0.2.2\n");
    let looks = (0..MAX_POLLS).find(|_| {
        park_timeout(Duration::from_millis(20));
        is_blocked("192.0.2.3")
    });
    assert!(looks.is_some() && is_blocked("192.0.2.2"));
}
