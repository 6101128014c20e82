//! What a node does when its control plane, or what stands before it, is hostile.

use crate::relay::{Mode, Relay};
use crate::world::{PROXYD, Page, World, said, said_of, until_says};
use control_testkit::until;
use proxy_testkit::{Launch, Proxyd};
use serde_json::json;

/// A node behind a relay, which runs a first bundle.
struct Victim {
    world: World,
    relay: Relay,
    proxyd: Proxyd,
    node: String,
    page: Page,
    one: String,
}

impl Victim {
    fn new() -> Self {
        let world = World::start();
        let relay = Relay::before(&world.url);
        let own = world.own("node", &relay.url());
        let proxyd = Launch::new(PROXYD, &own).start();
        let node = world.node_id();
        let page = Page::new("one");
        let one = world.bundle(&page.files);
        world.assign(&one, &node);
        until_says(page.address, "one");
        world.verdict(&node, &one);
        Self {
            world,
            relay,
            proxyd,
            node,
            page,
            one,
        }
    }

    fn order(&self, word: &str) -> String {
        let bundle = self.world.bundle(&Page::on(self.page.address, word).files);
        self.world.assign(&bundle, &self.node);
        bundle
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
    assert_eq!(said(victim.page.address), "one");
}

#[test]
fn an_order_with_a_wrong_signature_is_refused_until_a_genuine_one_comes() {
    let victim = Victim::new();
    victim.relay.set(Mode::OtherSignature);
    let two = victim.order("two");
    let mut status = json!(null);
    until("the node has refused", || {
        status = said_of(&victim.world.view(&victim.node));
        status["verdict"] == "rejected"
    });
    let reason = status["diagnostics"][0].as_str().unwrap();
    assert!(reason.contains("signature"), "{status}");
    assert_eq!(said(victim.page.address), "one");
    victim.relay.set(Mode::Pass);
    until_says(victim.page.address, "two");
    until("the node has accepted", || {
        let status = &victim.world.view(&victim.node)["status"];
        status["verdict"] == "accepted" && status["active"] == json!(two)
    });
}

#[test]
fn a_replayed_order_is_refused() {
    let victim = Victim::new();
    let two = victim.order("two");
    until_says(victim.page.address, "two");
    victim.world.verdict(&victim.node, &two);
    victim.relay.set(Mode::FirstOrder);
    let three = victim.order("three");
    let log = victim.proxyd.stderr();
    let refused = log.find(0, |record| record.text("event") == "order.refused");
    assert!(refused.text("reason").contains("counter 1"), "{refused:?}");
    assert_eq!(said(victim.page.address), "two");
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
        let order = victim
            .world
            .bundle(&Page::on(victim.page.address, "other").files);
        victim.world.assign(&order, &victim.node);
        until("the node has asked", || {
            assert_eq!(said(victim.page.address), "one", "{mode:?}");
            before < victim.relay.requests()
        });
        for _ in 0..20 {
            assert_eq!(said(victim.page.address), "one", "{mode:?}");
        }
        let rss = victim.proxyd.rss_bytes();
        assert!(rss < 200 << 20, "{mode:?}: {rss} bytes");
    }
    victim.relay.set(Mode::Pass);
}
