//! A control plane that is killed in every state of a rollout and of a batch, with real nodes.
//!
//! States that last for one transaction only are held by a database that refuses the next one.

use crate::fleet::{ARGUMENTS, Fleet, wrong};
use crate::traffic::Outcome;
use crate::world::{World, operator};
use control_testkit::{Client, Database, RefusedWrite};
use proxy_testkit::closed_port;
use serde_json::{Value, json};

const NONE: [&Outcome; 0] = [];
const LATER: &str = "2100-01-01T00:00:00Z";

/// A fleet with a database that can refuse a write.
struct CrashTest {
    fleet: Fleet,
    refused: RefusedWrite,
    _database: Database,
}

impl CrashTest {
    fn start() -> Self {
        let database = Database::sqlite();
        let [heartbeat, secs] = ARGUMENTS;
        let world = World::start_with(&[heartbeat, secs, "--database", &database.url]);
        Self {
            refused: RefusedWrite::in_database(&database.url),
            fleet: Fleet::with_five_nodes(world),
            _database: database,
        }
    }

    fn plan(&self, bundle: &str, settings: &Value) -> String {
        let planned = self.fleet.plan_rollout(bundle, settings);
        planned["id"].as_str().unwrap().to_owned()
    }

    fn command(&self, rollout: &str, command: &str) {
        let path = format!("rollouts/{rollout}/{command}");
        self.fleet.world.post(&path, &Value::Null);
    }

    /// Waits until the rollout is in this state, kills the control plane, starts it again, and finds the
    /// rollout there. `batches` are the states of those that were opened.
    fn crash_in(&mut self, rollout: &str, state: &str, batches: &[&str]) {
        let expected = (json!(state), json!(batches));
        let before = self
            .fleet
            .until_rollout(rollout, |found| stage(found) == expected);
        self.fleet.world.kill();
        self.fleet.world.restart();
        let after = self.fleet.world.get(&format!("rollouts/{rollout}"));
        assert_eq!(stage(&after), expected, "{after}");
        assert_eq!(after["reason"], before["reason"], "{after}");
    }

    /// Kills the control plane at a point where it blocks until it can write this.
    fn crash_before(&mut self, write: &str, rollout: &str, state: &str, batches: &[&str]) {
        self.refused.set(write);
        self.crash_in(rollout, state, batches);
    }

    /// Approves the rollout by a second person, as required.
    fn approve(&self, rollout: &str) {
        let world = &self.fleet.world;
        let orgs = world.operator.get("/api/v1/orgs").json();
        let org = orgs["items"][0]["id"].as_str().unwrap();
        let body = json!({"email": "bob@example.com", "role": "operator"});
        let invitations = format!("/api/v1/orgs/{org}/invitations");
        let link = world.operator.post(&invitations, &body).json();
        let link = operator(&world.url, link["secret"].as_str().unwrap());
        let body = json!({"user_name": "Bob", "password": "correct horse"});
        let joined = link.post("/api/v1/invitations/accept", &body);
        assert_eq!(joined.status, 201, "{}", joined.text);
        let cookie = joined.header("set-cookie").split(';').next().unwrap();
        let path = world.path(&format!("rollouts/{rollout}/approve"));
        let answer = Client::new(&world.url).send("POST", &path, &[("cookie", cookie)], None);
        assert_eq!(answer.status, 200, "{}", answer.text);
    }

    /// Number of orders per node.
    fn orders(&self) -> Vec<i64> {
        let nodes = self.fleet.nodes.iter();
        let views = nodes.map(|node| self.fleet.world.view(&node.id));
        views
            .map(|view| view["desired"]["order"].as_i64().unwrap())
            .collect()
    }
}

/// The state of a rollout, and of its batches.
fn stage(rollout: &Value) -> (Value, Value) {
    let batches = rollout["batches"].as_array().into_iter().flatten();
    let states = batches.map(|batch| batch["state"].clone()).collect();
    (rollout["state"].clone(), states)
}

#[test]
fn a_control_plane_killed_in_each_state_of_a_rollout_continues_without_repeated_orders() {
    let mut test = CrashTest::start();
    let new = test.fleet.bundle("new", test.fleet.upstream.address(), "");
    let id = test.plan(&new, &json!({"batch_count": 3, "needs_approval": true}));
    test.crash_in(&id, "planned", &[]);
    test.command(&id, "start");
    test.crash_in(&id, "awaiting_approval", &[]);

    let opened = "INSERT ON rollout_batches WHEN NEW.number = 1";
    test.refused.set(opened);
    test.approve(&id);
    test.crash_in(&id, "running", &[]);
    let switched = "INSERT ON rollout_batches WHEN NEW.state = 'switched'";
    test.crash_before(switched, &id, "running", &["open"]);
    let passed = "INSERT ON rollout_batches WHEN NEW.state = 'passed'";
    test.crash_before(passed, &id, "running", &["switched"]);
    let next = "INSERT ON rollout_batches WHEN NEW.number = 2";
    test.crash_before(next, &id, "running", &["passed"]);

    test.refused
        .set("INSERT ON rollout_batches WHEN NEW.number = 2 AND NEW.state = 'passed'");
    let second = (json!("running"), json!(["passed", "switched"]));
    test.fleet
        .until_rollout(&id, |found| stage(found) == second);
    test.command(&id, "pause");
    test.crash_in(&id, "paused", &["passed", "switched"]);
    test.command(&id, "resume");
    let completed = "UPDATE ON rollouts WHEN NEW.state = 'completed'";
    test.crash_before(completed, &id, "running", &["passed", "passed"]);
    test.refused.clear();
    test.crash_in(&id, "completed", &["passed", "passed"]);

    test.fleet.until_all_run(&new);
    assert_eq!(test.orders(), [2; 5], "the first bundle, and this one");
    assert_eq!(wrong(&test.fleet.traffic.take(), &["old", "new"]), NONE);
}

#[test]
fn a_control_plane_killed_in_each_state_of_a_rollback_reverts_its_nodes() {
    let mut test = CrashTest::start();
    let bad = test.fleet.bundle("bad", closed_port(), "");
    let old = test.fleet.old.clone();

    let scheduled = test.plan(&bad, &json!({"not_before": LATER}));
    test.command(&scheduled, "start");
    test.crash_in(&scheduled, "running", &[]);
    test.command(&scheduled, "cancel");
    test.crash_in(&scheduled, "cancelled", &[]);
    assert_eq!(test.orders(), [1; 5], "nothing was ordered before its time");

    let by_hand = test.plan(&bad, &json!({"on_failure": "pause"}));
    test.command(&by_hand, "start");
    test.crash_in(&by_hand, "paused", &["failed"]);
    let reverted = "UPDATE OF back_counter ON rollout_nodes";
    test.refused.set(reverted);
    test.command(&by_hand, "rollback");
    test.crash_in(&by_hand, "rolling_back", &["failed"]);
    let finished = "UPDATE ON rollouts WHEN NEW.state = 'rolled_back'";
    test.refused.set(finished);
    test.fleet.until_all_run(&old);
    test.crash_in(&by_hand, "rolling_back", &["failed"]);
    test.refused.clear();
    test.crash_in(&by_hand, "rolled_back", &["failed"]);

    let by_gate = test.plan(&bad, &json!({"on_failure": "roll_back"}));
    let begun = "UPDATE ON rollouts WHEN NEW.state = 'rolling_back'";
    test.refused.set(begun);
    test.command(&by_gate, "start");
    test.crash_in(&by_gate, "failed", &["failed"]);
    test.refused.clear();
    test.crash_in(&by_gate, "rolled_back", &["failed"]);

    test.fleet.until_all_run(&old);
    assert_eq!(
        test.orders(),
        [5, 1, 1, 1, 1],
        "the first node there and back, twice"
    );
    let all = test.fleet.traffic.take();
    let (_, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.node == 0);
    assert_eq!(wrong(&others, &["old"]), NONE);
}
