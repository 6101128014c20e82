//! Bundles that reach for the machine.

use crate::world::{Running, World, wait_for_page};
use proxy_testkit::Launch;
use serde_json::{Value, json};

/// A bundle of `Running` that serves `root` as static files.
fn serving(running: &Running, root: &str) -> Value {
    let address = running.page.address;
    let config = format!(
        "listeners {{ listener \"main\" {{ address \"{address}\" }} }}\n\
         routes {{ route \"page\" {{ service-type \"static\"; static-files {{ root \"{root}\" }} }} }}\n"
    );
    json!({"proxy.kdl": config})
}

#[test]
fn a_bundle_that_serves_the_nodes_key_is_refused_before_it_is_applied() {
    let running = Running::start();
    let (world, node) = (&running.world, &running.node);
    let data = world.folder.path().join("node");
    assert!(data.join("identity.json").is_file());
    for root in [data.to_str().unwrap(), "/etc"] {
        let made = world
            .post(
                "bundles",
                &json!({"name": "edge", "files": serving(&running, root)}),
            )
            .json();
        let diagnostics = made["diagnostics"].as_array().unwrap();
        assert!(
            diagnostics
                .iter()
                .any(|it| it["code"] == "node-allowance" && it["line"] == 2),
            "the control plane says that nodes will reject it: {made}"
        );
        let bundle = made["id"].as_str().unwrap();
        world.assign(bundle, node);
        let status = world.verdict(node, bundle);
        assert_eq!(status["verdict"], "rejected", "{status}");
        let reasons = status["diagnostics"].to_string();
        assert!(
            reasons.contains("bundle-reach") && reasons.contains("allow"),
            "{reasons}"
        );
        assert_eq!(running.page_text(), "one");
    }
}

#[test]
fn a_static_root_of_the_machine_is_served_by_its_name() {
    let world = World::start();
    let site = world.folder.path().join("site");
    std::fs::create_dir(&site).unwrap();
    std::fs::write(site.join("index.html"), "of the machine").unwrap();
    let allow = format!("static-roots \"site={}\"", site.display());
    let own = world
        .own("node", &world.url)
        .replace("upstreams-on-loopback #true", &allow);
    let running = Running::launch(world, Launch::new(crate::world::PROXYD, &own));
    let bundle = running.world.bundle(&serving(&running, "site"));
    running.world.assign(&bundle, &running.node);
    wait_for_page(running.page.address, "of the machine");
}
