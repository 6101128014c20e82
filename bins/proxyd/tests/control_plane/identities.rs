//! Two processes with one identity, and control planes without detection.

use crate::relay::{Mode, Relay};
use crate::world::{PROXYD, World, poll_until};
use proxy_testkit::{Launch, Proxyd, RawClient};
use serde_json::Value;
use std::process::Command;

const HEARTBEATS: [&str; 2] = ["--heartbeat-secs", "1"];

fn stop(mut proxyd: Proxyd) {
    proxyd.terminate();
    proxyd.wait();
}

fn is_connected(proxyd: &Proxyd) -> bool {
    let mut client = RawClient::connect(proxyd.admin_address());
    let page = client.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    page.text().contains("proxy_control_plane_connected 1")
}

#[test]
fn a_copied_data_folder_is_noticed_and_both_of_its_nodes_continue() {
    let world = World::start_with(&HEARTBEATS);
    let first = world.node("node");
    let node = world.node_id();
    stop(first);
    let (original, copy) = (
        world.folder.path().join("node"),
        world.folder.path().join("copy"),
    );
    let copied = Command::new("cp")
        .arg("-a")
        .args([&original, &copy])
        .status();
    assert!(copied.unwrap().success());

    let original = world.node("node");
    poll_until("the original is back", || {
        world.view(&node)["state"] == "online"
    });
    assert_eq!(world.view(&node)["duplicated_since"], Value::Null);
    let copy = world.node("copy");
    poll_until("the copy is noticed", || {
        world.view(&node)["duplicated_since"].is_string()
    });
    let nodes = world.get("nodes")["items"].as_array().map(Vec::len);
    assert_eq!(nodes, Some(1), "the copy did not enrol");
    let events = world.get(&format!("nodes/{node}/events"));
    let events = events["items"].as_array().unwrap();
    let noticed = events
        .iter()
        .filter(|event| event["kind"] == "node.duplicated");
    assert_eq!(noticed.count(), 1, "{events:?}");
    let metrics = world.operator.get("/metrics").text;
    assert!(
        metrics.contains("control_node_duplicates_total 1"),
        "{metrics}"
    );
    poll_until("both have reported", || {
        is_connected(&original) && is_connected(&copy)
    });
}

#[test]
fn heartbeats_work_with_a_control_plane_without_instances() {
    let world = World::start_with(&HEARTBEATS);
    let relay = Relay::before(&world.url);
    relay.set(Mode::NoInstances);
    let node = Launch::new(PROXYD, &world.own("node", &relay.url())).start();
    let id = world.node_id();
    poll_until("the node is online", || {
        world.view(&id)["state"] == "online"
    });
    assert!(is_connected(&node));
}
