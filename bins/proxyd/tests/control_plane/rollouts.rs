//! Rollouts over real nodes with real traffic: the good one to its end, bad ones back from their first
//! batch.

use crate::fleet::{ARGUMENTS, Fleet, NODES, gate, wrong};
use crate::traffic::Outcome;
use crate::world::World;
use control_testkit::{Database, RefusedWrite};
use proxy_load::clock::pause;
use proxy_testkit::{Upstream, closed_port, ok};
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

const NONE: [&Outcome; 0] = [];
/// Limits of the gate for a slow bundle.
const SLACK_MS: u32 = 500;
/// Above that, and below every time-out.
const SLOW: Duration = Duration::from_millis(1_500);
/// A rollout that must be rolled back in its first batch.
struct BadRollout<'a> {
    upstream: SocketAddr,
    /// Part of the rollout's reason.
    reason: &'a str,
    /// The first node's response under the bundle, if it is applied.
    status: Option<u16>,
    listener: &'a str,
    /// Settings of the rollout.
    settings: Value,
}

impl BadRollout<'_> {
    fn check(&self, fleet: &Fleet) {
        let Self {
            upstream,
            reason,
            status,
            listener,
            ref settings,
        } = *self;
        let before = fleet.traffic.take();
        assert_eq!(wrong(&before, &["old"]), NONE, "before {reason}");
        let bad = fleet.bundle("bad", upstream, listener);
        let rollout = fleet.start_rollout(&bad, settings);
        let back = fleet.until_state(&rollout, "rolled_back");
        let message = back["reason"].as_str().unwrap();
        assert!(message.contains(reason), "{reason}: {message}");
        assert_eq!(back["batch"], 1, "{reason}: {back}");
        fleet.until_all_run(&fleet.old);
        assert_eq!(fleet.served(), ["old"; NODES], "{reason}");
        let all = fleet.traffic.take();
        let (batch, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.node == 0);
        assert!(others.len() > 40, "{reason}: only {} answers", others.len());
        assert_eq!(wrong(&others, &["old"]), NONE, "{reason}");
        let of_batch = wrong(&batch, &["old", "bad"]);
        match status {
            // A slow bundle answers well, and a rejected one never answers.
            None => assert_eq!(of_batch, NONE, "{reason}"),
            Some(status) => {
                assert!(!of_batch.is_empty(), "{reason}");
                let others = of_batch.iter().filter(|one| one.status != status);
                assert_eq!(others.count(), 0, "{reason}: {of_batch:?}");
            }
        }
    }
}

#[test]
fn a_good_rollout_completes_by_the_reports_of_its_nodes_and_no_request_is_lost() {
    let database = Database::sqlite();
    let [heartbeat, secs] = ARGUMENTS;
    let world = World::start_with(&[heartbeat, secs, "--database", &database.url]);
    let fleet = Fleet::with_five_nodes(world);
    let new = fleet.bundle("new", fleet.upstream.address(), "");
    let third_batch = RefusedWrite::in_database(&database.url);
    third_batch.set("INSERT ON rollout_batches WHEN NEW.number = 3");
    let rollout = fleet.start_rollout(&new, &json!({"batch_count": 2}));
    let halfway = fleet.until_rollout(&rollout, |found| found["batch"] == 2);
    assert_eq!(halfway["batches"][0]["state"], "passed", "{halfway}");
    let served = fleet.served();
    assert_eq!(
        (&*served[0], &*served[1], &*served[4]),
        ("new", "new", "old")
    );
    third_batch.clear();
    let done = fleet.until_state(&rollout, "completed");
    assert_eq!(done["batch"], 3, "{done}");
    for node in &fleet.nodes {
        let view = fleet.world.view(&node.id);
        let status = &view["status"];
        assert_eq!(status["active"], json!(new), "{view}");
        assert_eq!(status["verdict"], "accepted", "{view}");
    }
    assert_eq!(fleet.served(), ["new"; NODES]);
    let all = fleet.traffic.take();
    assert_eq!(wrong(&all, &["old", "new"]), NONE);
    for node in 0..NODES {
        let mut own = all.iter().filter(|one| one.node == node);
        let first_new = own.position(|one| one.bundle == "new");
        assert!(first_new.is_some(), "node {node} served the new bundle");
    }
}

#[test]
fn a_bad_bundle_stops_in_its_first_batch_and_costs_no_request_elsewhere() {
    let fleet = Fleet::start();
    let failing =
        Upstream::answering("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n");
    let slow = Upstream::start(|served| {
        while served.request().is_some() {
            pause(SLOW);
            served.send(ok("late"));
        }
    });
    let broken = Upstream::start(|served| drop(served.request()));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let listener = format!("listener \"taken\" {{ address \"{address}\" }}");
    let bad = |upstream, reason, status| BadRollout {
        upstream,
        reason,
        status,
        listener: "",
        settings: json!({}),
    };
    bad(failing.address(), "5xx", Some(500)).check(&fleet);
    BadRollout {
        settings: json!({"gate": gate(SLACK_MS)}),
        ..bad(slow.address(), "99 % of requests", None)
    }
    .check(&fleet);
    bad(broken.address(), "5xx", Some(502)).check(&fleet);
    // Nodes connect to new targets before they switch.
    bad(closed_port(), "upstream \"u\" is down", None).check(&fleet);
    BadRollout {
        listener: &listener,
        ..bad(
            fleet.upstream.address(),
            "node edge-1 rejected the bundle",
            None,
        )
    }
    .check(&fleet);
    // The address is free now: the rollout was stopped by the machine, not by the bundle.
    drop(taken);
    let good = fleet.bundle("good", fleet.upstream.address(), &listener);
    fleet.world.assign(&good, &fleet.nodes[1].id);
    fleet.until_runs(&fleet.nodes[1], &good);
}
