//! Rollouts by the real program to simulated nodes: completed, rolled back, and interrupted by
//! crashes.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop"
)]

use control_testkit::{Behaviour, Client, Database, NodeFleet, Program, databases, until};
use proxy_load::clock::pause;
use serde_json::{Value, json};
use std::process::{Command, Output};
use std::time::Duration;
use tempfile::TempDir;

const CONTROLD: &str = env!("CARGO_BIN_EXE_controld");
const NODES: usize = 4;

/// A control plane with nodes that already run a bundle.
struct World {
    folder: TempDir,
    url: String,
    program: Program,
    key: String,
    project: String,
    fleet: NodeFleet,
    old: String,
}

fn arguments(folder: &TempDir, url: &str) -> Vec<String> {
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut arguments = vec!["--data-dir".to_owned(), path("data")];
    arguments.extend(["--database".to_owned(), url.to_owned()]);
    // Nodes report twice a second: their silence is known after three seconds, not ninety.
    arguments.push("--heartbeat-secs=1".to_owned());
    arguments
}

impl World {
    fn new(database: &Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut program = Program::start(CONTROLD, &arguments(&folder, &database.url));
        let link = program.setup_token();
        let body = json!({
            "org_name": "acme", "project_name": "edge", "api_key_name": "first",
            "email": "ann@example.com", "user_name": "Ann", "password": "correct horse",
        });
        let client = program.client().with_bearer(&link);
        let made = client.post("/api/v1/setup", &body).json();
        let key = made["api_key"]["secret"].as_str().unwrap().to_owned();
        let project = made["project"]["id"].as_str().unwrap().to_owned();
        let fleet = NodeFleet::enrol(program.base_url(), &key, &project, NODES);
        let mut world = Self {
            folder,
            url: database.url.clone(),
            program,
            key,
            project,
            fleet,
            old: String::new(),
        };
        world.old = world.bundle(81);
        let assign = format!("bundles/{}/assign", world.old);
        world.post(&assign, &json!({"nodes": world.fleet.ids()}));
        world.until_all_run(&world.old);
        world
    }

    fn client(&self) -> Client {
        // A killed control plane has lost the tokens of the rate limit, which are in memory.
        let client = self.program.client().with_bearer(&self.key);
        client.obeying_rate_limits()
    }

    fn path(&self, rest: &str) -> String {
        format!("/api/v1/projects/{}/{rest}", self.project)
    }

    fn get(&self, rest: &str) -> Value {
        // A key may send five requests a second.
        pause(Duration::from_millis(250));
        let answer = self.client().get(&self.path(rest));
        assert_eq!(answer.status, 200, "{rest}: {}", answer.text);
        answer.json()
    }

    fn post(&self, rest: &str, body: &Value) -> Value {
        let answer = self.client().post(&self.path(rest), body);
        assert!(answer.status < 300, "{rest}: {}", answer.text);
        answer.json()
    }

    fn bundle(&self, port: u16) -> String {
        let text = format!("listeners {{ listener \"a\" {{ address \"127.0.0.1:{port}\" }} }}");
        let body = json!({"name": port.to_string(), "files": {"proxy.kdl": text}});
        self.post("bundles", &body)["id"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Creates a rollout with batches of one node.
    fn plan(&self, bundle: &str, settings: &Value) -> String {
        let mut body = json!({
            "bundle": bundle, "labels": {"tier": "edge"}, "batch_count": 1, "soak_secs": 1,
            "deadline_secs": 60,
        });
        for (name, value) in settings.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        self.post("rollouts", &body)["id"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn command(&self, rollout: &str, command: &str) {
        self.post(&format!("rollouts/{rollout}/{command}"), &Value::Null);
    }

    fn rollout(&self, rollout: &str) -> Value {
        self.get(&format!("rollouts/{rollout}"))
    }

    fn until_rollout(&self, rollout: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        until("the rollout has come so far", || {
            last = self.rollout(rollout);
            is_so(&last)
        });
        last
    }

    fn until_all_run(&self, bundle: &str) {
        let all = vec![Some(bundle.to_owned()); NODES];
        until("all nodes run the bundle", || self.fleet.active() == all);
    }

    /// Kills the program, as in a crash, and starts it again.
    fn crash(&mut self) {
        self.program.kill();
        self.program = Program::start(CONTROLD, &arguments(&self.folder, &self.url));
        self.fleet.follow(self.program.base_url());
    }

    fn ctl(&self, words: &[&str]) -> Output {
        let mut command = Command::new(CONTROLD);
        command
            .arg("ctl")
            .args(words)
            .env_clear()
            .env("XDG_CONFIG_HOME", self.folder.path())
            .env("CONTROLD_URL", self.program.base_url())
            .env("CONTROLD_API_KEY", &self.key);
        command.output().unwrap()
    }

    fn ctl_text(&self, words: &[&str]) -> String {
        let done = self.ctl(words);
        assert!(done.status.success(), "{words:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }
}

fn is(state: &'static str) -> impl Fn(&Value) -> bool {
    move |found| found["state"] == state
}

#[test]
fn a_bad_bundle_is_stopped_in_its_first_batch_and_reverted() {
    let database = Database::sqlite();
    let world = World::new(&database);
    let cases = [
        (Behaviour::Failing, "5xx"),
        (Behaviour::Slow, "99 % of requests"),
        (Behaviour::Unreachable, "connect_refused"),
        (Behaviour::Rejecting, "the port is taken"),
    ];
    for (port, (behaviour, reason)) in (90..).zip(cases) {
        let bad = world.bundle(port);
        world.fleet.behave(&bad, behaviour);
        let id = world.plan(&bad, &json!({}));
        world.command(&id, "start");
        let back = world.until_rollout(&id, is("rolled_back"));
        let message = back["reason"].as_str().unwrap();
        assert!(message.contains(reason), "{behaviour:?}: {message}");
        assert_eq!(back["batch"], 1, "{behaviour:?}: {back}");
        world.until_all_run(&world.old);
    }
}

#[test]
fn a_control_plane_that_is_killed_at_any_state_continues() {
    for database in databases() {
        let mut world = World::new(&database);
        let new = world.bundle(82);
        let id = world.plan(&new, &json!({"soak_secs": 2}));
        world.crash();
        assert_eq!(world.rollout(&id)["state"], "planned");
        world.command(&id, "start");
        world.crash();
        for batch in 1..=2 {
            world.until_rollout(&id, |found| {
                found["batches"][batch - 1]["state"] == "switched"
            });
            world.crash();
        }
        world.command(&id, "pause");
        world.crash();
        let paused = world.rollout(&id);
        assert_eq!(paused["state"], "paused");
        world.command(&id, "resume");
        let batch = paused["batch"].as_i64().unwrap();
        world.until_rollout(&id, |found| batch < found["batch"].as_i64().unwrap());
        world.command(&id, "rollback");
        world.crash();
        world.until_rollout(&id, is("rolled_back"));
        world.until_all_run(&world.old);
        world.crash();
        assert_eq!(world.rollout(&id)["state"], "rolled_back");

        let again = world.plan(&new, &json!({"needs_approval": true, "soak_secs": 0}));
        world.command(&again, "start");
        world.crash();
        assert_eq!(world.rollout(&again)["state"], "awaiting_approval");
        world.command(&again, "cancel");
        let last = world.plan(&new, &json!({"soak_secs": 0, "batch_count": 2}));
        world.command(&last, "start");
        world.crash();
        world.until_rollout(&last, is("completed"));
        world.until_all_run(&new);
        // The old bundle, the new one, and the old one again for nodes that had switched; then the
        // new one. No order was given twice.
        for node in world.fleet.ids() {
            let node = world.get(&format!("nodes/{node}"));
            let orders = node["desired"]["order"].as_i64().unwrap();
            assert!([2, 4, 5].contains(&orders), "{node}");
        }
    }
}

#[test]
fn a_rollout_continues_after_one_of_two_replicas_is_killed() {
    let database = Database::postgres();
    let mut world = World::new(&database);
    let second = Program::start(CONTROLD, &arguments(&world.folder, &database.url));
    let new = world.bundle(82);
    let id = world.plan(&new, &json!({}));
    world.command(&id, "start");
    world.until_rollout(&id, |found| found["batch"].as_i64() >= Some(2));
    world.program.kill();
    world.fleet.follow(second.base_url());
    world.program = second;
    world.until_rollout(&id, is("completed"));
    world.until_all_run(&new);
    for node in world.fleet.ids() {
        let node = world.get(&format!("nodes/{node}"));
        assert_eq!(
            node["desired"]["order"], 2,
            "each step was taken once: {node}"
        );
    }
    let audit = world.ctl_text(&[
        "audit",
        "list",
        "--action",
        "rollout.open_batch",
        "-o",
        "id",
    ]);
    assert_eq!(audit.lines().count(), NODES);
}

#[test]
fn a_command_line_follows_a_rollout_to_its_end() {
    let database = Database::sqlite();
    let world = World::new(&database);
    let folder = world.folder.path().join("config");
    std::fs::create_dir(&folder).unwrap();
    let text = "listeners { listener \"a\" { address \"127.0.0.1:82\" } }";
    std::fs::write(folder.join("proxy.kdl"), text).unwrap();
    let folder = folder.display().to_string();
    let made = [
        "bundle", "create", "--name", "new", "-f", &folder, "-o", "id",
    ];
    let new = world.ctl_text(&made).trim().to_owned();
    let labels = r#"{"tier":"edge"}"#;
    let create = [
        "rollout",
        "create",
        "--bundle",
        "new",
        "--labels",
        labels,
        "--batch-percent",
        "50",
        "--soak-secs",
        "0",
        "-o",
        "id",
    ];
    let id = world.ctl_text(&create).trim().to_owned();
    let planned = world.ctl_text(&["rollout", "status", &id]);
    assert!(planned.starts_with("planned "), "{planned}");
    world.ctl_text(&["rollout", "start", &id]);
    let followed = world.ctl_text(&["rollout", "status", &id, "--wait"]);
    let last = "completed         batch 2/2 [####################] 4/4 nodes";
    assert!(followed.contains(last), "{followed}");
    assert!(followed.contains("of 1000 with 5xx, p99 "), "{followed}");
    world.until_all_run(&new);
}

#[test]
fn a_command_line_shows_why_a_rollout_rolled_back() {
    let database = Database::sqlite();
    let world = World::new(&database);
    let bad = world.bundle(83);
    world.fleet.behave(&bad, Behaviour::Failing);
    let create = [
        "rollout",
        "create",
        "--bundle",
        &bad,
        "--soak-secs",
        "0",
        "-o",
        "id",
    ];
    let id = world.ctl_text(&create).trim().to_owned();
    world.ctl_text(&["rollout", "start", &id]);
    let failed = world.ctl(&["rollout", "status", &id, "--wait"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let error = String::from_utf8(failed.stderr).unwrap();
    assert!(
        error.contains("rolled_back: ") && error.contains("5xx"),
        "{error}"
    );
    let listed = world.ctl_text(&["rollout", "list", "--state", "rolled_back", "-o", "id"]);
    assert_eq!(listed.trim(), id);
    let nodes = world.ctl_text(&["node", "list", "--label", "tier=edge", "-o", "id"]);
    assert_eq!(nodes.lines().count(), NODES);
    let node = world.ctl_text(&["node", "get", "edge-1", "-o", "json"]);
    let node: Value = serde_json::from_str(&node).unwrap();
    assert_eq!(node["status"]["active"], json!(world.old));
    assert_eq!(world.ctl_text(&["drift", "list", "-o", "id"]), "");
    let two = ["--nodes", "edge-1", "--nodes", "edge-2"];
    let create = ["rollout", "create", "--bundle", &world.old, "-o", "json"];
    let planned = world.ctl_text(&[create.as_slice(), two.as_slice()].concat());
    let planned: Value = serde_json::from_str(&planned).unwrap();
    assert_eq!(planned["nodes"], 2, "{planned}");
    let unknown = ["bundle", "assign", &world.old, "--nodes", "nowhere"];
    let unknown = world.ctl(&unknown);
    let error = String::from_utf8(unknown.stderr).unwrap();
    assert!(error.contains("node nowhere: does not exist"), "{error}");
    let diff = ["bundle", "diff", &bad, "--before", &world.old, "-o", "json"];
    assert!(world.ctl_text(&diff).contains("127.0.0.1:83"));
    world.ctl_text(&["bundle", "verify", &bad]);
}

#[test]
fn services_that_are_applied_are_rolled_out() {
    let database = Database::sqlite();
    let world = World::new(&database);
    let file = world.folder.path().join("services.json");
    let wanted = json!({
        "upstreams": [{"name": "web", "targets": [{"address": "127.0.0.1:9"}]}],
        "services": [{"name": "shop", "host": "shop.example", "upstream": "web"}],
    });
    std::fs::write(&file, wanted.to_string()).unwrap();
    let file = file.display().to_string();
    let applied = world.ctl_text(&["apply", "-f", &file]);
    assert_eq!(applied, "upstream/web created\nservice/shop created\n");
    let again = world.ctl_text(&["apply", "-f", &file]);
    assert_eq!(again, "upstream/web unchanged\nservice/shop unchanged\n");
    let services = r#"{"http":"127.0.0.1:8080"}"#;
    let create = [
        "bundle",
        "create",
        "--name",
        "shop",
        "--services",
        services,
        "-o",
        "id",
    ];
    let bundle = world.ctl_text(&create).trim().to_owned();
    let id = world.plan(&bundle, &json!({"batch_count": 4, "skip_gate": true}));
    world.command(&id, "start");
    world.until_rollout(&id, is("completed"));
    world.until_all_run(&bundle);
}
