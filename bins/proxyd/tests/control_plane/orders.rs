//! Orders of a node's own control plane.

use crate::fleet::ARGUMENTS;
use crate::relay::Relay;
use crate::world::{PROXYD, Page, Running, World, page_text, poll_until, wait_for_page};
use control_testkit::until;
use proxy_load::clock::Stopwatch;
use proxy_testkit::{Launch, Record, Reload, Upgrade};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::time::Duration;

#[test]
fn a_node_enrols_and_runs_the_bundle_of_its_order() {
    let world = World::start();
    let (url, project) = (&world.url, &world.project);
    let (token, folder) = (world.token.display(), world.folder.path().display());
    let own = format!(
        "worker-threads 1; control-plane {{ url \"{url}\"; project \"{project}\"; \
         enrolment-token-file \"{token}\"; data-dir \"{folder}/node\" }}\n"
    );
    let proxyd = Launch::new(PROXYD, &own).start();
    let node = world.node_id();
    let page = Page::new("one");
    let one = world.bundle(&page.files);
    world.assign(&one, &node);
    wait_for_page(page.address, "one");
    let status = world.verdict(&node, &one);
    assert_eq!(status["verdict"], "accepted", "{status}");
    for field in ["desired", "active", "last_good"] {
        assert_eq!(status[field], json!(one), "{field}");
    }
    assert_eq!(status["staged"], Value::Null);
    for _ in 0..5 {
        assert_eq!(page_text(page.address), "one");
    }
    // An order again makes the node report at once, and does not make it serve less.
    let other = Page::on(page.address, "two");
    let two = world.bundle(&other.files);
    world.assign(&two, &node);
    wait_for_page(page.address, "two");
    let status = world.verdict(&node, &two);
    assert_eq!(status["active"], json!(two), "{status}");
    drop(proxyd);
}

#[test]
fn a_node_without_an_order_waits_for_one_and_does_not_ask_without_a_pause() {
    let world = World::start_with(&ARGUMENTS);
    let relay = Relay::before(&world.url);
    let since = Stopwatch::start();
    let _proxyd = Launch::new(PROXYD, &world.own("node", &relay.url())).start();
    // Three requests to enrol, and two in each of four intervals of a second.
    relay.until_requests(11);
    let took = since.elapsed();
    assert!(Duration::from_secs(2) < took, "11 requests in {took:?}");
    let node = world.node_id();
    let page = Page::new("one");
    world.assign(&world.bundle(&page.files), &node);
    wait_for_page(page.address, "one");
}

#[test]
fn a_bundle_that_fails_on_the_node_changes_nothing_and_is_reported_with_traffic() {
    let running = Running::start();
    for _ in 0..9 {
        running.page_text();
    }
    let Running {
        world, node, one, ..
    } = &running;
    // Another program has the address: only the node can find that out.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let bad = Page::on(taken.local_addr().unwrap(), "two");
    let bad = world.bundle(&bad.files);
    world.assign(&bad, node);
    let status = world.verdict(node, &bad);
    assert_eq!(status["verdict"], "rejected", "{status}");
    assert_eq!(status["active"], json!(one), "{status}");
    assert_eq!(status["last_good"], json!(one));
    let reason = status["diagnostics"][0].as_str().unwrap();
    assert!(reason.contains("cannot listen"), "{status}");
    assert_eq!(running.page_text(), "one");
    let traffic = &world.view(node)["traffic"]["routes"]["page"];
    assert!(
        traffic["requests"].as_u64() >= Some(9),
        "{}",
        world.view(node)
    );
    let counts = traffic["latency"].as_array().unwrap().iter();
    let counted: u64 = counts.filter_map(Value::as_u64).sum();
    assert_eq!(Some(counted), traffic["requests"].as_u64());
}

#[test]
fn a_bundle_leaves_the_machines_own_settings_alone() {
    let world = World::start();
    let files = json!({"proxy.kdl": "control-plane { url \"http://127.0.0.1:1\" }\n"});
    let made = world
        .post("bundles", &json!({"name": "edge", "files": files}))
        .json();
    assert_eq!(made["state"], "rejected", "{made}");
    assert_eq!(made["diagnostics"][0]["code"], "node-setting");
}

#[test]
fn nodes_revert_from_a_revoked_bundle_to_the_one_before() {
    let running = Running::start();
    let two = running.run("two");
    let Running {
        world, node, one, ..
    } = &running;
    world.post(&format!("bundles/{two}/revoke"), &Value::Null);
    wait_for_page(running.page.address, "one");
    assert_eq!(world.verdict(node, one)["active"], json!(one));
}

#[test]
fn an_order_by_a_rotated_key_is_accepted() {
    let world = World::start();
    let _proxyd = world.node("node");
    let node = world.node_id();
    let keys = format!("/api/v1/orgs/{}/signing-keys", world.org);
    let old = world.operator.get(&keys).json()["items"][0]["id"].clone();
    for step in [keys.clone(), format!("{keys}/rotate")] {
        let answer = world.operator.post(&step, &json!({}));
        assert!(answer.status < 300, "{step}: {}", answer.text);
    }
    let deactivate = format!("{keys}/{}/deactivate", old.as_str().unwrap());
    let answer = world.operator.post(&deactivate, &json!({}));
    assert!(answer.status < 300, "{}", answer.text);
    let page = Page::new("rotated");
    let bundle = world.bundle(&page.files);
    world.assign(&bundle, &node);
    wait_for_page(page.address, "rotated");
    assert_eq!(world.verdict(&node, &bundle)["verdict"], "accepted");
}

/// Makes a new key the active one, and deactivates the former.
fn rotate_and_deactivate(world: &World) {
    let keys = format!("/api/v1/orgs/{}/signing-keys", world.org);
    let listed = world.operator.get(&keys).json();
    let mut listed = listed["items"].as_array().unwrap().iter();
    let active = listed.find(|key| key["state"] == "active").unwrap();
    let active = active["id"].as_str().unwrap();
    for step in ["rotate".to_owned(), format!("{active}/deactivate")] {
        let answer = world.operator.post(&format!("{keys}/{step}"), &json!({}));
        assert!(answer.status < 300, "{step}: {}", answer.text);
    }
}

#[test]
fn a_node_that_was_away_for_two_rotations_accepts_an_order_by_the_third_key() {
    let mut running = Running::start();
    running.stop();
    // The node knows only the first key, which signs nothing any more, like the second one.
    for _ in 0..2 {
        rotate_and_deactivate(&running.world);
    }

    running.proxyd = running.world.node("node");

    wait_for_page(running.page.address, "one");
    let two = running.run("two");
    let status = running.world.verdict(&running.node, &two);
    assert_eq!(status["verdict"], "accepted", "{status}");
}

#[test]
fn a_node_enrols_with_its_name_and_labels() {
    let world = World::start();
    let given = json!({"name": "given", "labels": {"region": "eu", "tier": "a"}});
    let given = world.post("enrolment-tokens", &given).json();
    std::fs::write(&world.token, given["secret"].as_str().unwrap()).unwrap();
    let own = world.own("node", &world.url);
    let named = own.replace(
        "node-name \"node\"",
        "node-name \"edge-7\"\n    labels \"region=eu\" \"tier=a\"",
    );
    let _proxyd = Launch::new(PROXYD, &named).start();
    let node = world.view(&world.node_id());
    assert_eq!(node["name"], "edge-7", "{node}");
    assert_eq!(node["labels"], json!({"region": "eu", "tier": "a"}));
}

#[test]
fn a_changed_block_is_warned_of_and_counts_at_the_next_start() {
    let running = Running::start();
    let (world, proxyd) = (&running.world, &running.proxyd);
    let own = world.own("node", &world.url);
    assert_eq!(proxyd.reload(&own), Reload::Applied);
    let is_warning = |record: &Record| record.text("warning").contains("next start");
    let warned = proxyd.stderr().records();
    assert!(!warned.iter().any(is_warning), "nothing has changed");
    let renamed = own.replace("node-name \"node\"", "node-name \"another\"");
    assert_eq!(proxyd.reload(&renamed), Reload::Applied);
    drop(proxyd.stderr().find(0, is_warning));
}

#[test]
fn a_reload_keeps_the_bundle_and_takes_the_nodes_own_settings() {
    let running = Running::start();
    let (world, proxyd) = (&running.world, &running.proxyd);
    let own = world
        .own("node", &world.url)
        .replace("worker-threads 1", "worker-threads 2");
    assert_eq!(proxyd.reload(&own), Reload::Applied);
    assert_eq!(running.page_text(), "one");
    until("both workers serve", || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", proxyd.id())).unwrap();
        let names =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.contains("proxy-worker")).count() == 2
    });
}

#[test]
fn an_edited_bundle_on_the_disk_is_not_served() {
    let running = Running::start_with(&ARGUMENTS);
    let (world, proxyd) = (&running.world, &running.proxyd);
    let own = world.own("node", &world.url);
    let active = world.folder.path().join("node/active");
    let mut folders = std::fs::read_dir(active).unwrap();
    let folder = folders.next().unwrap().unwrap().path();
    let entry = folder.join("proxy.kdl");
    let signed = std::fs::read_to_string(&entry).unwrap();
    std::fs::write(&entry, format!("{signed}// edited\n")).unwrap();
    let refused = |reload| match reload {
        Reload::Refused(reason) => assert!(reason.contains("is not as it was signed"), "{reason}"),
        Reload::Applied => panic!("an edited bundle is in force"),
    };
    refused(proxyd.reload(&own));
    assert_eq!(running.page_text(), "one");
    let is_reported = || {
        let view = world.view(&running.node);
        let diagnostics = view["diagnostics"].to_string();
        diagnostics.contains("is not as it was signed")
    };
    poll_until("the node reports the edited file", is_reported);
    poll_until("the event has arrived", || {
        let events = world.get(&format!("nodes/{}/events", running.node));
        events.to_string().contains("bundle.altered")
    });
    std::fs::write(&entry, &signed).unwrap();
    poll_until("the node reports the restored file", || !is_reported());
    std::fs::write(folder.join("more.kdl"), "").unwrap();
    refused(proxyd.reload(&own));
    std::fs::remove_file(folder.join("more.kdl")).unwrap();
    assert_eq!(proxyd.reload(&own), Reload::Applied);
}

#[test]
fn an_upgraded_process_follows_with_the_bundle_of_before() {
    let mut running = Running::start();
    assert_eq!(running.proxyd.upgrade(), Upgrade::Done);
    assert_eq!(running.page_text(), "one");
    running.proxyd.wait_for_former();
    assert_eq!(running.page_text(), "one");
    running.run("two");
    let nodes = running.world.get("nodes");
    assert_eq!(nodes["items"].as_array().map(Vec::len), Some(1), "{nodes}");
}
