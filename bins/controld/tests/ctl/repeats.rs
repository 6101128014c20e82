//! Repeated `ctl deploy`: exit code 0 only for bytes that all nodes run.

use crate::{Done, World};
use control_testkit::{Behaviour, NodeFleet, until_every};
use serde_json::Value;
use std::fs;
use std::time::Duration;

const CONFIG: &str = "listeners { listener \"main\" { address \"127.0.0.1:8080\" } }\n\
                      routes { route \"a\" { service-type \"builtin\"; builtin-handler \"health\" } }\n";
const QUICK: [&str; 6] = [
    "--soak-secs",
    "1",
    "--batch-percent",
    "100",
    "--skip-gate",
    "true",
];
const TEN_MINUTE_SOAK: [&str; 4] = ["--soak-secs", "600", "--skip-gate", "true"];
/// Interval of requests, below the rate limit of a key.
const INTERVAL: Duration = Duration::from_millis(500);

/// A project with one node and a folder `edge`.
struct Site {
    world: World,
    folder: String,
    fleet: NodeFleet,
}

impl Site {
    fn new() -> Self {
        let world = World::new();
        let folder = world.folder.path().join("edge");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("proxy.kdl"), CONFIG).unwrap();
        let project = world.json(&["project", "get", "edge"])["id"].clone();
        let project = project.as_str().unwrap();
        let fleet = NodeFleet::enrol(world.program.base_url(), &world.key, project, 1);
        Self {
            folder: folder.display().to_string(),
            world,
            fleet,
        }
    }

    fn deploy(&self, name: &str, flags: &[&str]) -> Done {
        let deploy = ["deploy", &self.folder, "--name", name];
        self.world.ctl(&[&deploy, flags].concat())
    }

    fn wait(&self, name: &str, flags: &[&str]) -> Done {
        self.deploy(name, &[&QUICK, flags, &["--wait"]].concat())
    }

    /// Creates the bundle of the folder before its deployment; returns its ID.
    fn bundle(&self, name: &str) -> String {
        let create = ["bundle", "create", "--name", name, "-f", &self.folder];
        id(&self.world.json(&create))
    }

    /// The states of all rollouts, newest first.
    fn rollouts(&self) -> Vec<String> {
        let listed = self.world.json(&["rollout", "list"]);
        let items = listed["items"].as_array().unwrap().iter();
        items
            .map(|item| item["state"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Waits until the node has reported that it accepted the bundle.
    fn wait_for_node(&self, bundle: &str) {
        until_every(INTERVAL, "the node has accepted", || {
            let nodes = self.world.json(&["node", "list"]);
            let status = &nodes["items"][0]["status"];
            status["active"] == bundle && status["verdict"] == "accepted"
        });
    }
}

fn id(made: &Value) -> String {
    made["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_deployment_that_nodes_rejected_fails_again() {
    let site = Site::new();
    let bundle = site.bundle("v1");
    site.fleet.behave(&bundle, Behaviour::Rejecting);
    // The node has no former bundle: its order stays.
    for rollouts in 1..=2 {
        let rejected = site.wait("v1", &[]);
        assert_eq!(rejected.code, 1, "{}", rejected.out);
        assert!(
            rejected.error.contains("rolled_back: node "),
            "{}",
            rejected.error
        );
        assert_eq!(site.rollouts(), vec!["rolled_back"; rollouts]);
    }
    site.fleet.behave(&bundle, Behaviour::Well);
    let accepted = site.wait("v1", &[]);
    assert_eq!(accepted.code, 0, "{}", accepted.error);
    let again = site.wait("v1", &[]);
    assert_eq!(again.code, 0, "{}", again.error);
    assert_eq!(site.rollouts().len(), 3);
}

#[test]
fn a_deployment_that_was_paused_is_not_done() {
    let site = Site::new();
    site.fleet.behave(&site.bundle("v1"), Behaviour::Rejecting);
    for _ in 0..2 {
        let paused = site.wait("v1", &["--on-failure", "pause"]);
        assert_eq!(paused.code, 1, "{}", paused.out);
        assert!(paused.error.contains("paused: node "), "{}", paused.error);
        assert_eq!(site.rollouts(), ["paused"]);
    }
    let repeated = [&QUICK[..], &["--on-failure", "pause"]].concat();
    let repeated = site.deploy("v1", &repeated);
    assert_eq!(repeated.code, 1, "it has not started");
    assert!(
        repeated.error.contains("paused: node "),
        "{}",
        repeated.error
    );
}

#[test]
fn a_repetition_follows_the_rollout_that_is_under_way() {
    let site = Site::new();
    let bundle = site.bundle("v1");
    let first = site.deploy("v1", &TEN_MINUTE_SOAK);
    assert_eq!(first.code, 0, "{}", first.error);
    site.wait_for_node(&bundle);
    let followed = site.deploy(
        "v1",
        &[&TEN_MINUTE_SOAK[..], &["--wait", "--timeout", "10"]].concat(),
    );
    assert_eq!(followed.code, 1, "{}", followed.out);
    assert!(
        followed.error.contains("still running after 10 s"),
        "{}",
        followed.error
    );
    // Other settings are named, and start no second rollout, which would be refused.
    let other = ["--soak-secs", "1", "--skip-gate", "true"];
    let kept = site.deploy("v1", &other);
    assert_eq!(kept.code, 0, "{}", kept.error);
    let reported = "goes on with its own settings: soak-secs 600";
    assert!(kept.error.contains(reported), "{}", kept.error);
    let started = site.deploy("v2", &[&TEN_MINUTE_SOAK[..], &["-o", "json"]].concat());
    assert_eq!(started.code, 0, "{}", started.error);
    let shown: Value = serde_json::from_str(&started.out).unwrap();
    assert_eq!(shown["state"], "running");
    assert_eq!(shown["bundle"], bundle);
    assert_eq!(site.rollouts(), ["running"]);

    // Its nodes take part in no other rollout, and no planned one is left.
    let other = CONFIG.replace("\"a\"", "\"b\"");
    fs::write(format!("{}/proxy.kdl", site.folder), other).unwrap();
    let refused = site.deploy("v3", &QUICK);
    assert_eq!(refused.code, 1, "{}", refused.out);
    for part in ["WRONG_STATE", "was not started", "it was cancelled"] {
        assert!(refused.error.contains(part), "{part}: {}", refused.error);
    }
    assert_eq!(site.rollouts(), ["cancelled", "running"]);
}

#[test]
fn a_revoked_bundle_is_not_in_force() {
    let site = Site::new();
    let bundle = site.bundle("v1");
    assert_eq!(site.wait("v1", &[]).code, 0);
    let revoked = site.world.ctl(&["bundle", "revoke", &bundle]);
    assert_eq!(revoked.code, 0, "{}", revoked.error);
    let again = site.wait("v1", &[]);
    assert_eq!(again.code, 1, "{}", again.out);
    assert!(again.error.contains("was revoked"), "{}", again.error);
    let renamed = site.wait("v2", &[]);
    assert_eq!(renamed.code, 0, "{}", renamed.error);
    assert_eq!(site.rollouts(), ["completed", "completed"]);
}

#[test]
fn a_key_that_reads_no_nodes_repeats_the_rollout() {
    let mut site = Site::new();
    let scopes = "bundles:read,bundles:write,rollouts:read,rollouts:write";
    let create = ["api-key", "create", "--name", "ci", "--project", "edge"];
    let made = [&create[..], &["--scopes", scopes]].concat();
    let made = site.world.json(&made);
    let project = id(&site.world.json(&["project", "get", "edge"]));
    made["secret"]
        .as_str()
        .unwrap()
        .clone_into(&mut site.world.key);
    for rollouts in 1..=2 {
        let deployed = site.wait("v1", &["--project", &project]);
        assert_eq!(deployed.code, 0, "{}", deployed.error);
        assert_eq!(deployed.error.contains("nodes:read"), rollouts == 2);
        let list = ["rollout", "list", "--project", &project];
        let listed = site.world.json(&list);
        assert_eq!(listed["items"].as_array().unwrap().len(), rollouts);
    }
}
