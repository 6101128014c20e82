//! Rollouts while nodes, the control plane, or its database fail, and while clocks are wrong.

use crate::fleet::{ARGUMENTS, Fleet, FleetNode, NODES, wrong};
use crate::world::{PROXYD, World, operator, poll_until, wrapper};
use control_testkit::{Database, Postgres};
use proxy_load::clock::pause;
use proxy_testkit::{Launch, Proxyd, closed_port, free_port};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

const DAY_MINUTES: i64 = 24 * 60;
/// Longer than a control plane takes to notice that its database is unreachable.
const OUTAGE: Duration = Duration::from_secs(3);

/// Waits until the rollout has opened its second batch.
fn until_second_batch(fleet: &Fleet, rollout: &str) {
    fleet.until_rollout(rollout, |found| found["batch"].as_i64() >= Some(2));
}

/// No node of `serving` has served a wrong response, and each has served many.
fn assert_served(fleet: &Fleet, serving: &[usize], bundles: &[&str]) {
    let all = fleet.traffic.take();
    for node in serving {
        let own: Vec<_> = all
            .iter()
            .filter(|one| one.node == *node)
            .cloned()
            .collect();
        assert!(own.len() > 20, "node {node}: only {} answers", own.len());
        let wrong = wrong(&own, bundles);
        assert!(wrong.is_empty(), "node {node}: {wrong:?}");
    }
}

#[test]
fn an_offline_node_and_a_killed_one_find_the_new_bundle_when_they_return() {
    let mut fleet = Fleet::start();
    let (offline, killed) = (1, 3);
    fleet.nodes[offline].proxyd.terminate();
    fleet.nodes[offline].proxyd.wait();
    fleet.until_view(&fleet.nodes[offline], |view| view["state"] == "offline");
    let new = fleet.bundle("new", fleet.upstream.address(), "");
    let settings = json!({"batch_count": 2, "max_unavailable": 1});
    let rollout = fleet.start_rollout(&new, &settings);
    until_second_batch(&fleet, &rollout);
    fleet.nodes[killed].proxyd.signal(Signal::KILL);
    fleet.nodes[killed].proxyd.wait();
    let done = fleet.until_state(&rollout, "completed");
    let first = &done["batches"][0];
    assert_eq!(
        (&first["nodes"], &first["ready"]),
        (&json!(2), &json!(1)),
        "{done}"
    );
    for node in [offline, killed] {
        fleet.restart(node);
    }
    fleet.until_all_run(&new);
    fleet.until_all_serve("new");
    assert_served(&fleet, &[0, 2, 4], &["old", "new"]);
}

#[test]
fn a_control_plane_that_is_killed_in_a_rollout_continues_or_reverts_it_on_real_nodes() {
    let mut fleet = Fleet::start();
    let good = fleet.bundle("new", fleet.upstream.address(), "");
    let rollout = fleet.start_rollout(&good, &json!({"batch_count": 2}));
    fleet.world.kill();
    fleet.world.restart();
    until_second_batch(&fleet, &rollout);
    fleet.world.kill();
    pause(OUTAGE);
    fleet.world.restart();
    fleet.until_state(&rollout, "completed");
    fleet.until_all_run(&good);
    assert_served(&fleet, &[0, 1, 2, 3, 4], &["old", "new"]);
    let bad = fleet.bundle("bad", closed_port(), "");
    let rollout = fleet.start_rollout(&bad, &json!({}));
    fleet.until_rollout(&rollout, |found| found["batch"] == 1);
    fleet.world.kill();
    fleet.world.restart();
    fleet.until_rollout(&rollout, |found| found["state"] != "running");
    fleet.world.kill();
    fleet.world.restart();
    fleet.until_state(&rollout, "rolled_back");
    fleet.until_all_run(&good);
    assert_eq!(fleet.served(), ["new"; NODES]);
    assert_served(&fleet, &[1, 2, 3, 4], &["old", "new"]);
}

#[test]
fn nodes_whose_clocks_are_an_hour_wrong_take_part_in_a_rollout() {
    let world = World::start_with(&ARGUMENTS);
    let fast = clocked(&world, "fast", "+1h");
    let slow = clocked(&world, "slow", "-1h");
    let mut fleet = Fleet::with_nodes(world, vec![fast, slow]);
    let new = fleet.bundle("new", fleet.upstream.address(), "");
    let rollout = fleet.start_rollout(&new, &json!({}));
    fleet.until_state(&rollout, "completed");
    fleet.until_all_run(&new);
    for (node, ahead) in fleet.nodes.iter().zip([60, DAY_MINUTES - 60]) {
        let by_node = minute(&first_event(&fleet, node)["at"]);
        let by_control_plane = minute(&fleet.world.view(&node.id)["seen_at"]);
        let found = (by_node - by_control_plane).rem_euclid(DAY_MINUTES);
        let expected = ahead - 5..=ahead + 5;
        assert!(expected.contains(&found), "{}: {found} minutes", node.name);
    }
    assert_served(&fleet, &[0, 1], &["old", "new"]);
    // A killed node leaves the objects of its clock in memory.
    for node in &mut fleet.nodes {
        node.proxyd.terminate();
        node.proxyd.wait();
    }
}

/// An event of the node, which reports it after the heartbeat with the bundle.
fn first_event(fleet: &Fleet, node: &FleetNode) -> Value {
    let mut found = Value::Null;
    poll_until("the node has reported an event", || {
        let events = fleet
            .world
            .get(&format!("nodes/{}/events?sort=id", node.id));
        found = events["items"][0].clone();
        !found.is_null()
    });
    found
}

/// The minute of the day of a time as the interface writes it: `2026-01-02T03:04…`.
fn minute(time: &Value) -> i64 {
    let text = time.as_str().unwrap();
    let number = |range: Range<usize>| text[range].parse::<i64>().unwrap();
    number(11..13) * 60 + number(14..16)
}

/// A node with a clock that is wrong by `offset`.
fn clocked(world: &World, name: &str, offset: &str) -> FleetNode {
    let library = ["x86_64", "aarch64"].map(|machine| {
        PathBuf::from(format!(
            "/usr/lib/{machine}-linux-gnu/faketime/libfaketime.so.1"
        ))
    });
    let library = library.into_iter().find(|path| path.is_file());
    let library = library.expect("no libfaketime: run `cargo xtask setup`, or install `faketime`");
    // The library names its objects by the process ID, and ends a process with a killed process's
    // ID. The shell has the node's ID: objects under it are leftovers.
    let script = format!(
        "rm -f /dev/shm/faketime_shm_$$ /dev/shm/sem.faketime_sem_$$\n\
         export LD_PRELOAD={}\nexec {PROXYD} \"$@\"",
        library.display()
    );
    let clocked = wrapper(world.folder.path(), name, &script);
    let proxyd = Launch::new(&clocked, &world.own(name, &world.url))
        .env("FAKETIME", offset)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .start();
    FleetNode::once_enrolled(world, name, proxyd)
}

/// A balancer in front of two control planes; a request refused by one is sent to the other.
fn balancer(targets: [&str; 2]) -> (Proxyd, String) {
    let [one, two] = targets.map(|url| url.strip_prefix("http://").unwrap());
    let port = free_port();
    let config = format!(
        "listeners {{ listener \"control\" {{ address \"127.0.0.1:{port}\" }} }}\n\
         routes {{ route \"all\" {{ upstream \"control\" }} }}\n\
         upstreams {{ upstream \"control\" {{ target \"{one}\"; target \"{two}\" }} }}\n"
    );
    let balancer = Launch::new(PROXYD, &config).start();
    (balancer, format!("http://127.0.0.1:{port}"))
}

#[test]
fn a_rollout_continues_after_one_of_two_control_planes_is_killed() {
    let database = Database::postgres();
    let [heartbeat, secs] = ARGUMENTS;
    let mut world = World::start_with(&[heartbeat, secs, "--database", &database.url]);
    let second = world.replica();
    let (_balancer, url) = balancer([&world.url, second.base_url()]);
    world.operator = operator(second.base_url(), &world.key);
    world.url = url;
    let mut fleet = Fleet::with_five_nodes(world);
    let new = fleet.bundle("new", fleet.upstream.address(), "");
    let rollout = fleet.start_rollout(&new, &json!({"batch_count": 2}));
    until_second_batch(&fleet, &rollout);
    fleet.world.kill();
    fleet.until_state(&rollout, "completed");
    fleet.until_all_run(&new);
    for node in &fleet.nodes {
        let order = fleet.world.view(&node.id)["desired"]["order"].clone();
        assert_eq!(order, 2, "{}: each step was taken once", node.name);
    }
    assert_served(&fleet, &[0, 1, 2, 3, 4], &["old", "new"]);
}

#[test]
fn a_database_that_crashes_in_a_rollout_stops_no_node_and_the_rollout_continues() {
    let mut postgres = Postgres::start();
    let url = postgres.create_database();
    let [heartbeat, secs] = ARGUMENTS;
    let fleet = Fleet::with_five_nodes(World::start_with(&[heartbeat, secs, "--database", &url]));
    let new = fleet.bundle("new", fleet.upstream.address(), "");
    let rollout = fleet.start_rollout(&new, &json!({"batch_count": 2}));
    until_second_batch(&fleet, &rollout);
    postgres.crash();
    pause(OUTAGE);
    postgres.restart();
    fleet.until_state(&rollout, "completed");
    fleet.until_all_run(&new);
    assert_served(&fleet, &[0, 1, 2, 3, 4], &["old", "new"]);
}
