//! A node with a hostile control plane, or a hostile proxy before it.

use crate::relay::{Mode, Relay};
use crate::world::{PROXYD, Running, World, said_of, until_says, until_told};
use control_testkit::until;
use proxy_testkit::Launch;
use serde_json::json;
use std::ops::Deref;

/// A node behind a relay, which runs a first bundle.
struct Victim {
    running: Running,
    relay: Relay,
}

impl Victim {
    fn new() -> Self {
        let world = World::start();
        let relay = Relay::before(&world.url);
        let own = world.own("node", &relay.url());
        Self {
            running: Running::launch(world, Launch::new(PROXYD, &own)),
            relay,
        }
    }
}

impl Deref for Victim {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.running
    }
}

#[test]
fn a_tampered_archive_is_refused() {
    let victim = Victim::new();
    victim.relay.set(Mode::TamperedArchive);
    let two = victim.order("two");
    let status = victim.world.verdict(&victim.node, &two);
    assert_eq!(status["verdict"], "rejected", "{status}");
    assert_eq!(status["active"], json!(victim.one));
    let reason = status["diagnostics"][0].as_str().unwrap();
    assert!(reason.contains("digest"), "{status}");
    assert_eq!(victim.said(), "one");
}

#[test]
fn an_order_with_a_wrong_signature_is_refused_until_a_genuine_one_comes() {
    let victim = Victim::new();
    victim.relay.set(Mode::OtherSignature);
    let two = victim.order("two");
    let mut status = json!(null);
    until_told("the node has refused", || {
        status = said_of(&victim.world.view(&victim.node));
        status["verdict"] == "rejected"
    });
    let reason = status["diagnostics"][0].as_str().unwrap();
    assert!(reason.contains("signature"), "{status}");
    assert_eq!(victim.said(), "one");
    victim.relay.set(Mode::Pass);
    until_says(victim.page.address, "two");
    until_told("the node has accepted", || {
        let status = &victim.world.view(&victim.node)["status"];
        status["verdict"] == "accepted" && status["active"] == json!(two)
    });
}

#[test]
fn a_replayed_order_is_refused() {
    let victim = Victim::new();
    victim.run("two");
    victim.relay.set(Mode::FirstOrder);
    let three = victim.order("three");
    let log = victim.proxyd.stderr();
    let refused = log.find(0, |record| record.text("event") == "order.refused");
    let old = "proxy_control_plane_refusals_total{reason=\"old_counter\"}";
    until("the refusal is counted", || victim.metric(old) == Some(1));
    assert!(refused.text("reason").contains("counter 1"), "{refused:?}");
    assert_eq!(victim.said(), "two");
    victim.relay.set(Mode::Pass);
    until_says(victim.page.address, "three");
    victim.world.verdict(&victim.node, &three);
}

#[test]
fn garbage_floods_and_silence_do_not_touch_traffic() {
    let victim = Victim::new();
    for mode in [Mode::Garbage, Mode::Flood, Mode::Silence] {
        victim.relay.set(mode);
        let before = victim.relay.requests();
        victim.order("other");
        until("the node has asked", || {
            assert_eq!(victim.said(), "one", "{mode:?}");
            before < victim.relay.requests()
        });
        for _ in 0..20 {
            assert_eq!(victim.said(), "one", "{mode:?}");
        }
        let rss = victim.proxyd.rss_bytes();
        assert!(rss < 200 << 20, "{mode:?}: {rss} bytes");
    }
    victim.relay.set(Mode::Pass);
}
