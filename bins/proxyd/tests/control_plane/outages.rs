//! A node without its control plane, without its disk, and with damaged files.

use crate::world::{
    PROXYD, Page, Running, World, on_a_full_disk, page_text, poll_until, wait_for_page,
};
use control_testkit::until;
use proxy_testkit::{Launch, RawClient};
use serde_json::json;
use std::fs;
use std::path::Path;

#[test]
fn a_node_starts_from_its_last_good_bundle_without_the_control_plane() {
    let mut running = Running::start();
    running.world.kill();
    running.restart();
    wait_for_page(running.page.address, "one");
    let connected = || running.metric("proxy_control_plane_connected");
    until("the node has asked in vain", || connected() == Some(0));
    let generation = "proxy_control_plane_bundle_generation";
    assert_eq!(running.metric(generation), Some(1));
    running.world.restart();
    let Running {
        world, node, one, ..
    } = &running;
    poll_until("the node reports again", || {
        world.view(node)["status"]["active"] == json!(one)
    });
    assert_eq!(running.page_text(), "one");
}

#[test]
fn nodes_serve_on_while_the_control_plane_is_down() {
    let mut running = Running::start();
    let last = "proxy_control_plane_last_contact_timestamp_seconds";
    let before = running.metric(last);
    assert!(before > Some(1_700_000_000), "{before:?}");
    running.world.kill();
    for _ in 0..50 {
        assert_eq!(running.page_text(), "one");
    }
    let connected = || running.metric("proxy_control_plane_connected");
    until("the node has noticed", || connected() == Some(0));
    running.world.restart();
    running.run("two");
    assert_eq!(running.metric("proxy_control_plane_connected"), Some(1));
    assert!(running.metric(last) >= before);
}

#[test]
fn damaged_files_in_the_data_folder_cost_no_more_than_a_fetch() {
    let mut running = Running::start();
    running.stop();
    let data = running.world.folder.path().join("node");
    fs::write(data.join("state.json"), b"\x00garbage").unwrap();
    for archive in files(&data.join("bundles")) {
        fs::write(archive, b"garbage").unwrap();
    }
    fs::create_dir_all(data.join("active/garbage")).unwrap();
    running.proxyd = running.world.node("node");
    wait_for_page(running.page.address, "one");
    let status = running.world.verdict(&running.node, &running.one);
    assert_eq!(status["active"], json!(running.one));
    running.stop();
    for archive in files(&data.join("bundles")) {
        let whole = fs::read(&archive).unwrap();
        fs::write(archive, &whole[..whole.len() / 2]).unwrap();
    }
    running.proxyd = running.world.node("node");
    wait_for_page(running.page.address, "one");
}

#[test]
fn a_node_whose_identity_is_damaged_enrols_again() {
    let mut running = Running::start();
    running.stop();
    let Running { world, node, .. } = &running;
    let data = world.folder.path().join("node");
    fs::write(data.join("identity.json"), "{").unwrap();
    let own = world.own("node", &world.url);
    let renamed = own.replace("node-name \"node\"", "node-name \"again\"");
    let proxyd = Launch::new(PROXYD, &renamed).start();
    poll_until("another node has enrolled", || {
        let nodes = world.get("nodes");
        let mut nodes = nodes["items"].as_array().into_iter().flatten();
        nodes.any(|other| other["name"] == "again" && other["id"] != json!(node))
    });
    let nodes = world.get("nodes");
    assert_eq!(nodes["items"].as_array().map(Vec::len), Some(2), "{nodes}");
    // The admin interface is available in any state of the control plane.
    drop(RawClient::connect(proxyd.admin_address()));
}

#[test]
fn a_full_disk_keeps_the_bundle_active() {
    let world = World::start();
    let limited = on_a_full_disk(world.folder.path(), 64);
    let own = world.own("node", &world.url);
    let running = Running::launch(world, Launch::new(&limited, &own));
    let Running {
        world,
        node,
        page,
        one,
        ..
    } = &running;
    let mut large = Page::on(page.address, "two").files;
    // Text that no compression makes small enough.
    let mut state = 1_u64;
    let noise = (0..400_000).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap())
    });
    large["www/large.txt"] = json!(noise.collect::<String>());
    let two = world.bundle(&large);
    world.assign(&two, node);
    let status = world.verdict(node, &two);
    assert_eq!(status["verdict"], "rejected", "{status}");
    assert_eq!(status["active"], json!(one), "{status}");
    let reason = status["diagnostics"][0].as_str().unwrap();
    assert!(reason.contains("cannot keep the bundle"), "{status}");
    assert_eq!(running.page_text(), "one");
}

#[test]
fn a_data_folder_that_cannot_be_used_keeps_nothing_from_being_served() {
    let world = World::start();
    fs::write(world.folder.path().join("node"), "a file, not a folder").unwrap();
    let page = Page::new("");
    let own = world.own("node", &world.url);
    let local = format!(
        "listeners {{ listener \"main\" {{ address \"{}\" }} }}\n\
         routes {{ route \"r\" {{ service-type \"builtin\"; builtin-handler \"health\" }} }}\n{own}",
        page.address
    );
    let proxyd = Launch::new(PROXYD, &local).start();
    until("the node serves", || {
        page_text(page.address).contains("healthy")
    });
    drop(proxyd.stderr().find(0, |record| {
        record.text("message").contains("has not started")
    }));
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let found = fs::read_dir(folder).unwrap();
    found.map(|entry| entry.unwrap().path()).collect()
}
