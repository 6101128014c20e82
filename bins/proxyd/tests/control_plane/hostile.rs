//! A node with a hostile control plane, or a hostile proxy before it.

use crate::relay::{Mode, Relay};
use crate::world::{PROXYD, Running, World, poll_until, report_of, wait_for_page};
use control_testkit::until;
use proxy_testkit::Launch;
use serde_json::json;
use std::ops::Deref;

/// A node that reaches the control plane through a relay, and runs a first bundle.
struct NodeUnderAttack {
    running: Running,
    relay: Relay,
}

impl NodeUnderAttack {
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

impl Deref for NodeUnderAttack {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.running
    }
}

#[test]
fn a_tampered_archive_is_refused() {
    let victim = NodeUnderAttack::new();
    victim.relay.set(Mode::TamperedArchive);
    let two = victim.order("two");
    let status = victim.world.verdict(&victim.node, &two);
    assert_eq!(status["verdict"], "rejected", "{status}");
    assert_eq!(status["active"], json!(victim.one));
    let reason = status["diagnostics"][0].as_str().unwrap();
    assert!(reason.contains("digest"), "{status}");
    assert_eq!(victim.page_text(), "one");
}

#[test]
fn an_order_with_a_wrong_signature_is_refused_until_a_valid_one_arrives() {
    let victim = NodeUnderAttack::new();
    victim.relay.set(Mode::OtherSignature);
    let two = victim.order("two");
    let mut status = json!(null);
    poll_until("the node has refused", || {
        status = report_of(&victim.world.view(&victim.node));
        status["verdict"] == "rejected"
    });
    let reason = status["diagnostics"][0].as_str().unwrap();
    assert!(reason.contains("signature"), "{status}");
    assert_eq!(victim.page_text(), "one");
    victim.relay.set(Mode::Pass);
    wait_for_page(victim.page.address, "two");
    poll_until("the node has accepted", || {
        let status = &victim.world.view(&victim.node)["status"];
        status["verdict"] == "accepted" && status["active"] == json!(two)
    });
}

#[test]
fn a_replayed_order_is_refused() {
    let victim = NodeUnderAttack::new();
    victim.run("two");
    victim.relay.set(Mode::FirstOrder);
    let three = victim.order("three");
    let log = victim.proxyd.stderr();
    let refused = log.find(0, |record| record.text("event") == "order.refused");
    let old = "proxy_control_plane_refusals_total{reason=\"old_counter\"}";
    until("the refusal is counted", || victim.metric(old) == Some(1));
    assert!(refused.text("reason").contains("counter 1"), "{refused:?}");
    assert_eq!(victim.page_text(), "two");
    victim.relay.set(Mode::Pass);
    wait_for_page(victim.page.address, "three");
    victim.world.verdict(&victim.node, &three);
}

#[test]
fn garbage_floods_and_silence_do_not_touch_traffic() {
    let victim = NodeUnderAttack::new();
    for mode in [Mode::Garbage, Mode::Flood, Mode::Silence] {
        victim.relay.set(mode);
        let before = victim.relay.requests();
        victim.order("other");
        until("the node has asked", || {
            assert_eq!(victim.page_text(), "one", "{mode:?}");
            before < victim.relay.requests()
        });
        for _ in 0..20 {
            assert_eq!(victim.page_text(), "one", "{mode:?}");
        }
        let rss = victim.proxyd.rss_bytes();
        assert!(rss < 200 << 20, "{mode:?}: {rss} bytes");
    }
    victim.relay.set(Mode::Pass);
}
