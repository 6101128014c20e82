//! Rollouts: batch by batch to the end, with commands of operators, and separate from each other.

use crate::fleet::{Fleet, ROLLOUTS};
use crate::world::{World, app, sample, worlds};
use axum::http::{Method, StatusCode};
use control_domain::{
    ROLLOUT_TRANSITIONS, Rollout, RolloutCommand, RolloutEvent, RolloutState, Tenant, next_state,
};
use control_wire::NodeId;
use serde_json::{Value, json};
use uuid::Uuid;

/// Returns the bundle that each node has an order for.
async fn orders(fleet: &Fleet<'_>) -> Vec<Option<String>> {
    let mut orders = Vec::new();
    for index in 0..fleet.nodes.len() {
        let order = fleet.order(index).await;
        orders.push(order.map(|order| order.bundle.to_string()));
    }
    orders
}

#[tokio::test]
async fn good_batches_follow_each_other_to_the_end() {
    for world in worlds().await {
        let (mut fleet, old, new) = Fleet::running(&world, 4).await;
        let id = fleet.start(&new, json!({})).await;
        assert_eq!(fleet.tick(0).await, 1, "the first batch is opened");
        let (was, is) = (Some(old.clone()), Some(new.clone()));
        let first = [is.clone(), is.clone(), was.clone(), was];
        assert_eq!(orders(&fleet).await, first);
        assert_eq!(fleet.tick(0).await, 0, "the nodes have not answered");
        fleet.follow_order(0).await;
        assert_eq!(fleet.tick(0).await, 0, "one node is awaited");
        fleet.follow_order(1).await;
        let open = fleet.view(&id).await;
        assert_eq!(open["progress"]["ready"], 2, "{open}");
        fleet.tick(0).await;
        assert_eq!(
            fleet.state(&id).await,
            "running",
            "the others served nothing since"
        );
        fleet.serve(2..4).await;
        assert_eq!(
            fleet.tick(0).await,
            0,
            "the batch has not reported since it switched"
        );
        fleet.serve(0..2).await;
        assert_eq!(
            fleet.tick(0).await,
            2,
            "the batch passes, the next one is opened"
        );
        let view = fleet.view(&id).await;
        assert_eq!(view["batches"][0]["state"], "passed");
        let figures = &view["batches"][0]["figures"];
        assert_eq!(figures["batch"]["requests"], 4_000, "{view}");
        // Two nodes are too few, so the batch before its switch is also compared.
        assert_eq!(figures["rest"]["nodes"], 4, "{view}");
        assert_eq!(figures["rest"]["requests"], 4_000, "{view}");
        assert_eq!(view["batch"], 2);
        for index in 2..4 {
            fleet.follow_order(index).await;
        }
        fleet.tick(0).await;
        fleet.serve(2..4).await;
        fleet.tick(0).await;
        let done = fleet.view(&id).await;
        assert_eq!(done["state"], "completed", "{done}");
        assert_eq!(orders(&fleet).await, vec![is; 4]);
        let nodes = format!("{ROLLOUTS}/{id}/nodes");
        let nodes = world.get(&nodes, &fleet.operator).await;
        let nodes = nodes.body["items"].as_array().unwrap();
        assert_eq!(nodes.len(), 4);
        for node in nodes {
            assert_eq!(node["state"], "switched", "{node}");
            assert_eq!(node["previous"], json!(old), "{node}");
        }
        assert_eq!(world.app.verify_audit().await.unwrap(), None);
    }
}

#[tokio::test]
async fn an_order_is_on_trial_until_its_batch_has_passed_and_a_revert_is_never_on_trial() {
    for world in worlds().await {
        let (mut fleet, _, new) = Fleet::running(&world, 2).await;
        assert_eq!(fleet.trial(0).await, Value::Null, "an assignment stands");
        assert_eq!(fleet.confirmation(0).await, "confirmed");
        let settings = json!({"skip_gate": true, "soak_secs": 30, "batch_count": 1});
        let id = fleet.start(&new, settings).await;
        fleet.tick(0).await;
        // Deadline, one and a half soaks, and three heartbeat intervals.
        let trial = json!({"confirm_secs": 60 + 30 + 15 + 3 * 30});
        assert_eq!(fleet.trial(0).await, trial);
        fleet.follow_order(0).await;
        assert_eq!(fleet.confirmation(0).await, "pending");
        fleet.command(&id, "pause").await;
        assert_eq!(fleet.confirmation(0).await, "held");
        fleet.command(&id, "resume").await;
        assert_eq!(fleet.confirmation(0).await, "pending");
        fleet.tick(0).await;
        fleet.report(0).await;
        fleet.tick(40).await;
        assert_eq!(
            fleet.confirmation(0).await,
            "confirmed",
            "the batch has passed"
        );
        assert_eq!(fleet.trial(0).await, Value::Null);
        assert_eq!(fleet.trial(1).await, trial);
        fleet.follow_order(1).await;
        assert_eq!(fleet.confirmation(1).await, "pending");
        fleet.command(&id, "rollback").await;
        fleet.tick(40).await;
        for index in 0..2 {
            assert_eq!(fleet.trial(index).await, Value::Null, "the way back stands");
            assert_eq!(fleet.confirmation(index).await, "confirmed");
        }
    }
}

#[tokio::test]
async fn a_rollout_is_unchanged_while_its_nodes_report_the_same() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 2).await;
        let new = fleet.bundle(82).await;
        let id = fleet.plan(&new, json!({"skip_gate": true})).await;
        let path = format!("{ROLLOUTS}/{id}");
        let ask = async |fleet: &Fleet<'_>, known: &str| {
            let (get, reader) = (Method::GET, &fleet.operator);
            let known = [("if-none-match", known)];
            world.send(&get, &path, reader, &Value::Null, &known).await
        };
        for change in ["planned", "started", "opened", "switched"] {
            match change {
                "started" => drop(fleet.command(&id, "start").await),
                "opened" => drop(fleet.tick(0).await),
                "switched" => fleet.follow_order(0).await,
                _ => {}
            }
            let found = ask(&fleet, "").await;
            let tag = found.header("etag").to_owned();
            let again = ask(&fleet, &tag).await;
            assert_eq!(again.status, StatusCode::NOT_MODIFIED, "{change} {tag}");
            fleet.beat(1).await;
            let again = ask(&fleet, &tag).await;
            assert_eq!(again.status, StatusCode::NOT_MODIFIED, "{change} {tag}");
        }
        let tag = ask(&fleet, "").await.header("etag").to_owned();
        fleet.follow_order(1).await;
        assert_eq!(ask(&fleet, &tag).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_batch_soaks_before_it_passes_and_begins_at_its_time() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 2).await;
        let new = fleet.bundle(82).await;
        let begin = fleet.now() + jiff::SignedDuration::from_secs(5);
        let settings = json!({"skip_gate": true, "soak_secs": 30, "not_before": begin});
        let id = fleet.start(&new, settings).await;
        assert_eq!(fleet.tick(0).await, 0, "it is too early");
        assert_eq!(fleet.tick(6).await, 1);
        fleet.follow_order(0).await;
        fleet.follow_order(1).await;
        assert_eq!(fleet.tick(6).await, 1, "the nodes have switched");
        assert_eq!(fleet.tick(30).await, 0, "they soak");
        assert_eq!(fleet.tick(40).await, 0, "their reports are older");
        assert_eq!(fleet.state(&id).await, "running");
    }
}

#[tokio::test]
async fn a_batch_passes_after_its_soak_when_its_nodes_have_reported_since_the_switch() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 2).await;
        let new = fleet.bundle(82).await;
        let settings = json!({"skip_gate": true, "soak_secs": 30});
        let id = fleet.start(&new, settings).await;
        fleet.tick(0).await;
        for index in 0..2 {
            fleet.follow_order(index).await;
        }
        assert_eq!(fleet.tick(0).await, 1, "the nodes have switched");
        fleet.report(0).await;
        assert_eq!(fleet.tick(40).await, 0);
        let progress = fleet.view(&id).await["progress"].clone();
        assert_eq!(progress["ready"], 2, "{progress}");
        assert_eq!(progress["reported"], 1, "{progress}");
        let reason = progress["waits_for"].as_str().unwrap();
        assert!(reason.starts_with("the end of its soak at "), "{reason}");
        fleet.report(1).await;
        assert_eq!(fleet.tick(40).await, 2);
        assert_eq!(fleet.state(&id).await, "completed");
    }
}

#[tokio::test]
async fn a_node_is_ready_by_its_report_on_the_new_order_and_while_it_is_online() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 2).await;
        let new = fleet.bundle(82).await;
        fleet.run(&new).await;
        let settings = json!({"skip_gate": true, "deadline_secs": 600});
        let id = fleet.start(&new, settings).await;
        assert_eq!(fleet.tick(0).await, 1, "the nodes are ordered again");
        assert_eq!(fleet.tick(0).await, 0, "they run it by an older order");
        for index in 0..2 {
            fleet.follow_order(index).await;
        }
        assert_eq!(fleet.tick(91).await, 0, "they have gone offline");
        fleet.tick(0).await;
        assert_eq!(fleet.state(&id).await, "completed");
    }
}

#[tokio::test]
async fn labels_choose_the_nodes() {
    for world in worlds().await {
        let fleet = Fleet::new(&world, 3).await;
        let new = fleet.bundle(82).await;
        for (index, labels) in [
            (0, json!({"zone": "eu", "tier": "edge"})),
            (1, json!({"zone": "eu", "tier": "core"})),
        ] {
            let path = format!("/projects/{{project}}/nodes/{}", fleet.nodes[index].id);
            let body = json!({ "labels": labels });
            let patch = Method::PATCH;
            world.send(&patch, &path, &fleet.operator, &body, &[]).await;
        }
        for (labels, nodes) in [
            (json!({"zone": "eu"}), 2),
            (json!({"zone": "eu", "tier": "core"}), 1),
            // Includes the node that every test has.
            (json!({}), 4),
        ] {
            let body = json!({"bundle": new, "labels": labels});
            let made = fleet.post(ROLLOUTS, body).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
            assert_eq!(made.body["nodes"], nodes, "{labels}");
        }
        let nowhere = json!({"bundle": new, "labels": {"zone": "us"}});
        let none = fleet.post(ROLLOUTS, nowhere).await;
        assert_eq!(none.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
}

#[tokio::test]
async fn a_wrong_setting_is_refused_by_its_name() {
    for world in worlds().await {
        let fleet = Fleet::new(&world, 1).await;
        let new = fleet.bundle(82).await;
        for (settings, field) in [
            (json!({"batch_count": 0}), "batch_count"),
            (json!({"batch_count": 1, "batch_percent": 1}), "batch_count"),
            (json!({"batch_percent": 101}), "batch_percent"),
            (json!({"max_unavailable": -1}), "max_unavailable"),
            (json!({"deadline_secs": 0}), "deadline_secs"),
            (json!({"deadline_secs": 10, "soak_secs": 11}), "soak_secs"),
            (json!({"gate": {"min_requests": 0}}), "gate.min_requests"),
            (
                json!({"gate": {"max_p99_percent": 99}}),
                "gate.max_p99_percent",
            ),
            (json!({"gate": {}, "skip_gate": true}), "gate"),
            (json!({"labels": {}, "nodes": []}), "nodes"),
            (json!({"nodes": [new]}), "nodes"),
            (json!({"nodes": []}), "nodes"),
            (json!({"labels": {"a": "\0"}}), "labels"),
            (json!({"bundle": world.project}), "bundle"),
        ] {
            let mut body = json!({ "bundle": new });
            for (name, value) in settings.as_object().unwrap() {
                body[name] = value.clone();
            }
            let answer = fleet.post(ROLLOUTS, body).await;
            assert_eq!(
                answer.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{settings}"
            );
            let details = &answer.body["error"]["details"][0];
            assert_eq!(details["field"], field, "{}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_second_person_approves() {
    for world in worlds().await {
        let fleet = Fleet::new(&world, 1).await;
        let new = fleet.bundle(82).await;
        let id = fleet.plan(&new, json!({"needs_approval": true})).await;
        let path = |command: &str| format!("{ROLLOUTS}/{id}/{command}");
        let operator = &fleet.operator;
        let submitted = world.post(&path("start"), operator, Value::Null).await;
        assert_eq!(submitted.text("state"), "awaiting_approval");
        let own = world.post(&path("approve"), operator, Value::Null).await;
        assert_eq!(own.status, StatusCode::FORBIDDEN, "{}", own.body);
        let other = fleet.command(&id, "approve").await;
        assert_eq!(other.text("state"), "running", "{}", other.body);
    }
}

/// Step on the way to a state.
#[derive(Clone, Copy, Debug)]
enum Way {
    Command(&'static str),
    /// Runs the scheduler once.
    Tick,
    /// Lets the node follow its order.
    Obey,
    /// Writes the state, because the scheduler leaves it in the run in which it enters it.
    Write(RolloutState),
}

/// Returns the steps to reach a state.
fn ways(state: RolloutState) -> &'static [Way] {
    use Way::{Command, Obey, Tick, Write};
    match state {
        RolloutState::Planned => &[],
        RolloutState::AwaitingApproval | RolloutState::Running => &[Command("start")],
        RolloutState::Paused => &[Command("start"), Command("pause")],
        RolloutState::Cancelled => &[Command("cancel")],
        RolloutState::RollingBack => &[Command("start"), Tick, Obey, Command("rollback")],
        RolloutState::RolledBack => &[Command("start"), Command("rollback"), Tick],
        RolloutState::Completed => &[Command("start"), Tick, Obey, Tick],
        RolloutState::Failed => &[Command("start"), Write(RolloutState::Failed)],
    }
}

async fn write_state(world: &World, id: &str, state: RolloutState) {
    let mut tx = world.store.begin().await.unwrap();
    let found = tx.rollout(id.parse().unwrap()).await.unwrap().unwrap();
    let written = Rollout {
        state,
        ..found.value
    };
    tx.update_rollout(&written, found.version).await.unwrap();
    tx.commit().await.unwrap();
}

/// Creates a rollout of one node in the state.
async fn rollout_in(world: &World, state: RolloutState) -> String {
    let mut fleet = Fleet::new(world, 1).await;
    let (old, new) = (fleet.bundle(81).await, fleet.bundle(82).await);
    fleet.run(&old).await;
    let approval = state == RolloutState::AwaitingApproval;
    let settings = json!({"skip_gate": true, "needs_approval": approval});
    let id = fleet.plan(&new, settings).await;
    for way in ways(state) {
        match way {
            Way::Command(command) => drop(fleet.command(&id, command).await),
            Way::Tick => drop(fleet.tick(0).await),
            Way::Obey => fleet.follow_order(0).await,
            Way::Write(state) => write_state(world, &id, *state).await,
        }
    }
    assert_eq!(fleet.state(&id).await, state.name());
    id
}

/// Returns the state machine's event for a command.
fn event(state: RolloutState, command: RolloutCommand) -> RolloutEvent {
    match command {
        RolloutCommand::Start if state == RolloutState::AwaitingApproval => RolloutEvent::Submit,
        RolloutCommand::Start => RolloutEvent::Start,
        RolloutCommand::Approve => RolloutEvent::Approve,
        RolloutCommand::Pause => RolloutEvent::Pause,
        RolloutCommand::Resume => RolloutEvent::Resume,
        RolloutCommand::Cancel => RolloutEvent::Cancel,
        RolloutCommand::RollBack => RolloutEvent::RollBack,
    }
}

#[tokio::test]
async fn a_command_is_executed_or_refused_by_the_table_of_states() {
    for world in worlds().await {
        let cases = RolloutState::ALL.iter().flat_map(|state| {
            let commands = RolloutCommand::ALL.iter();
            commands.map(|command| (*state, *command))
        });
        for (state, command) in cases {
            let id = rollout_in(&world, state).await;
            let next = next_state(ROLLOUT_TRANSITIONS, state, event(state, command));
            let refused = (StatusCode::CONFLICT, state.name(), "WRONG_STATE");
            let expected = next.map_or(refused, |next| (StatusCode::OK, next.name(), ""));
            let fleet = Fleet::new(&world, 0).await;
            let answer = fleet.command(&id, command.name()).await;
            let stored = fleet.state(&id).await;
            let found = (answer.status, stored.as_str(), answer.code());
            assert_eq!(found, expected, "{command} while {state}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_node_is_held_by_one_rollout_until_it_ends() {
    for world in worlds().await {
        let fleet = Fleet::new(&world, 2).await;
        let (one, two) = (fleet.bundle(81).await, fleet.bundle(82).await);
        let first = fleet.start(&one, json!({"skip_gate": true})).await;
        let other_node = json!({"nodes": [fleet.nodes[1].id], "skip_gate": true});
        let second = fleet.plan(&two, other_node).await;
        let refused = fleet.command(&second, "start").await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.body);
        assert_eq!(fleet.state(&second).await, "planned");
        let assign = format!("/projects/{{project}}/bundles/{two}/assign");
        let nodes = json!({"nodes": [fleet.nodes[0].id]});
        let assigned = fleet.post(&assign, nodes.clone()).await;
        assert_eq!(assigned.status, StatusCode::CONFLICT, "{}", assigned.body);
        fleet.command(&first, "cancel").await;
        let started = fleet.command(&second, "start").await;
        assert_eq!(started.status, StatusCode::OK, "{}", started.body);
        let assigned = fleet.post(&assign, nodes).await;
        assert_eq!(assigned.status, StatusCode::OK, "{}", assigned.body);
    }
}

#[tokio::test]
async fn an_assignment_does_not_reveal_whether_a_foreign_node_is_held() {
    for world in worlds().await {
        let fleet = Fleet::new(&world, 1).await;
        let new = fleet.bundle(82).await;
        fleet.start(&new, json!({"skip_gate": true})).await;
        let key = world.key(Tenant::org(world.other.org), &[]);
        let other = world.store_key(&key).await;
        let bundles = format!("/projects/{}/bundles", world.other.project.unwrap());
        let made = world
            .post(&bundles, &other, sample("/projects/{project}/bundles"))
            .await;
        let assign = format!("{bundles}/{}/assign", made.text("id"));
        let assigned = async |node: NodeId| {
            let answer = world.post(&assign, &other, json!({"nodes": [node]})).await;
            let error = &answer.body["error"];
            (
                answer.status,
                error["code"].clone(),
                error["message"].clone(),
            )
        };
        let held = assigned(fleet.nodes[0].id).await;
        let unknown = assigned(NodeId(Uuid::now_v7())).await;
        assert_eq!(held, unknown);
        assert_eq!(held.0, StatusCode::UNPROCESSABLE_ENTITY);
    }
}

#[tokio::test]
async fn replicas_take_each_step_once() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 6).await;
        let new = fleet.bundle(82).await;
        let id = fleet.start(&new, json!({"skip_gate": true})).await;
        let (other, _) = app(&world.database.url, world.objects.path()).await;
        for round in 0..3 {
            // Neither waits for the lease, so only versions can separate them.
            let now = fleet.now();
            let (left, right) = tokio::join!(
                world.app.advance_rollout(id.parse().unwrap(), now),
                other.advance_rollout(id.parse().unwrap(), now),
            );
            assert!(left.unwrap() + right.unwrap() >= 1, "{round}");
            for index in round * 2..round * 2 + 2 {
                assert_eq!(fleet.order(index).await.unwrap().counter, 1, "{index}");
                fleet.follow_order(index).await;
            }
        }
        fleet.tick(0).await;
        assert_eq!(fleet.state(&id).await, "completed");
        let path = "/orgs/{org}/audit?action=rollout.&limit=200";
        let log = world.get(path, &fleet.operator).await;
        let opened = log.body["items"].as_array().unwrap().iter();
        let opened = opened.filter(|entry| entry["action"] == "rollout.open_batch");
        assert_eq!(opened.count(), 3);
    }
}

#[tokio::test]
async fn another_replica_takes_over_when_the_lease_ends() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 2).await;
        let new = fleet.bundle(82).await;
        fleet.tick(0).await;
        let id = fleet.start(&new, json!({"skip_gate": true})).await;
        fleet.replica = Uuid::now_v7();
        assert_eq!(fleet.tick(2).await, 0, "the first one has the lease");
        assert_eq!(fleet.tick(11).await, 1);
        assert_eq!(fleet.view(&id).await["batch"], 1);
    }
}
