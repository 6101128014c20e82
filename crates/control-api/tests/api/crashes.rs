//! Crashes of the scheduler: every row of the rollout's table, with a crash before, during and
//! after its write.
//!
//! The state before a row is stored as a file. The step runs on copies of it: once completely, and
//! once for each written table with a database that refuses that write. Then no part of the step
//! may be stored.

use crate::fleet::Fleet;
use crate::world::{World, app};
use control_app::{App, Call, NodeSelection};
use control_domain::{
    Actor, BatchSize, NewRollout, OnFailure, ROLLOUT_TRANSITIONS, Role, RolloutCommand,
    RolloutEvent, RolloutState, Strategy,
};
use control_store::Store;
use control_testkit::Database;
use control_wire::{
    BundleId, Health, HeartbeatRequest, NodeId, NodeStatus, OrgId, ProjectId, RolloutId, SessionId,
    UserId, Verdict,
};
use jiff::Timestamp;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row, query};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uuid::Uuid;

/// Tables that a step may write, except the audit log: its entries have random IDs.
const TABLES: [&str; 5] = [
    "rollouts",
    "rollout_batches",
    "rollout_nodes",
    "rollout_samples",
    "node_orders",
];
const NODES: usize = 3;
/// More steps than any rollout in the test needs.
const MAX_STEPS: usize = 50;

/// Step on the way to a state.
#[derive(Clone, Copy, Debug)]
enum Action {
    Command(RolloutCommand),
    /// One step of the scheduler.
    Step,
    /// Each node with an order reports this verdict.
    Nodes(Verdict),
    /// Leaves a node of the batch without an order, as in a batch of more than 200.
    Pend,
    Revoke,
}

/// Plan of a rollout, the steps to the state before a row, and the trigger of the row.
struct Scenario {
    needs_approval: bool,
    batch_count: i64,
    actions: Vec<Action>,
    last: Action,
}

fn scenario(state: RolloutState, event: RolloutEvent) -> Scenario {
    use RolloutCommand as Command;
    use RolloutEvent as Event;
    let start = Action::Command(Command::Start);
    let (accept, reject) = (
        Action::Nodes(Verdict::Accepted),
        Action::Nodes(Verdict::Rejected),
    );
    let command = match event {
        Event::Submit | Event::Start => Some(Command::Start),
        Event::Approve => Some(Command::Approve),
        Event::Pause => Some(Command::Pause),
        Event::Resume => Some(Command::Resume),
        Event::RollBack if state != RolloutState::Failed => Some(Command::RollBack),
        Event::Cancel => Some(Command::Cancel),
        Event::OpenBatch
        | Event::OrderNodes
        | Event::SwitchBatch
        | Event::PassBatch
        | Event::Complete
        | Event::Fail
        | Event::RollBack
        | Event::RevertNodes
        | Event::FinishRollback => None,
    };
    let opened = vec![start, Action::Step];
    let then = |more: &[Action]| [opened.as_slice(), more].concat();
    let back = Action::Command(Command::RollBack);
    let actions = match (state, event) {
        (RolloutState::Planned, _) => vec![],
        (RolloutState::AwaitingApproval, _) | (_, Event::OpenBatch) => vec![start],
        (_, Event::OrderNodes) => then(&[Action::Pend]),
        (_, Event::PassBatch) => then(&[accept, Action::Step]),
        (_, Event::Complete) => then(&[accept, Action::Step, Action::Step]),
        (RolloutState::Running, Event::Fail) => then(&[reject]),
        (RolloutState::Paused, Event::Fail) => {
            then(&[accept, Action::Command(Command::Pause), Action::Revoke])
        }
        (RolloutState::Paused, _) => then(&[Action::Command(Command::Pause)]),
        (RolloutState::Running, _) => then(&[accept]),
        (RolloutState::Failed, _) => then(&[reject, Action::Step]),
        (_, Event::RevertNodes) => then(&[accept, back]),
        (_, Event::FinishRollback) => then(&[accept, back, Action::Step, accept]),
        _ => unreachable!("{event} while {state}"),
    };
    Scenario {
        needs_approval: matches!(event, Event::Submit) || state == RolloutState::AwaitingApproval,
        batch_count: if event == Event::Complete { 3 } else { 2 },
        actions,
        last: command.map_or(Action::Step, Action::Command),
    }
}

/// A control plane on a copy of the database, with one rollout.
struct Copy {
    app: Arc<App>,
    store: Store,
    url: String,
    /// Time of all events.
    now: Timestamp,
    rollout: RolloutId,
}

/// Database and key from which all copies start.
struct Base {
    world: World,
    nodes: Vec<NodeId>,
    bundle: BundleId,
    now: Timestamp,
    folder: tempfile::TempDir,
}

impl Base {
    /// Creates three nodes that run a bundle, and a newer bundle.
    async fn new() -> Self {
        let world = World::new(Database::sqlite()).await;
        let (fleet, _, new) = Fleet::running(&world, NODES).await;
        let nodes = fleet.nodes.iter().map(|node| node.id).collect();
        Self {
            nodes,
            bundle: BundleId(new.parse().unwrap()),
            now: world.app.now(),
            folder: tempfile::tempdir().unwrap(),
            world,
        }
    }

    async fn copy(&self, of: &Store, rollout: RolloutId) -> Copy {
        let file = self.folder.path().join(Uuid::now_v7().to_string());
        of.back_up(&file.display().to_string()).await.unwrap();
        self.open(&file, rollout).await
    }

    async fn open(&self, file: &Path, rollout: RolloutId) -> Copy {
        let url = format!("sqlite://{}", file.display());
        let (app, store) = app(&url, self.world.objects.path()).await;
        Copy {
            app,
            store,
            url,
            now: self.now,
            rollout,
        }
    }

    /// Creates a copy with a rollout in the state before the row.
    async fn prepare(&self, scenario: &Scenario) -> Copy {
        let mut copy = self.copy(&self.world.store, RolloutId(Uuid::nil())).await;
        let new = NewRollout {
            bundle: self.bundle,
            strategy: Strategy {
                batch: BatchSize::Count(scenario.batch_count),
                max_unavailable: 0,
                deadline_secs: 60,
                soak_secs: 0,
                gate: None,
                needs_approval: scenario.needs_approval,
                on_failure: OnFailure::RollBack,
            },
            condition: None,
            labels: BTreeMap::new(),
            not_before: None,
        };
        let call = copy.call(self.world.org, 1);
        let nodes = NodeSelection::Named(self.nodes.clone());
        let made = copy
            .app
            .create_rollout(&call, self.world.project, new, nodes);
        copy.rollout = made.await.unwrap().value.id;
        for action in &scenario.actions {
            copy.act(self, *action).await;
        }
        copy
    }
}

impl Copy {
    fn call(&self, org: OrgId, user: u128) -> Call {
        let actor = Actor::User {
            id: UserId(Uuid::from_u128(user)),
            session: SessionId(Uuid::from_u128(user)),
            instance_admin: false,
            roles: BTreeMap::from([(org, Role::Operator)]),
            project_roles: BTreeMap::new(),
            locked: BTreeSet::new(),
            is_fresh: true,
            owns_account: true,
        };
        Call {
            actor,
            ..Call::system(self.now)
        }
    }

    async fn run(&self, statement: &str) {
        let mut connection = AnyConnection::connect(&self.url).await.unwrap();
        let statement = query(AssertSqlSafe(statement.to_owned()));
        statement.execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    async fn act(&self, base: &Base, action: Action) {
        let (org, project) = (base.world.org, base.world.project);
        match action {
            Action::Step => self.step().await,
            Action::Nodes(verdict) => self.answer(&base.nodes, verdict).await,
            Action::Pend => {
                let pend = "UPDATE rollout_nodes SET pending = 1 WHERE batch = 1";
                self.run(pend).await;
            }
            Action::Revoke => {
                let bundle = base.bundle;
                let revoke = format!("UPDATE bundles SET state = 'revoked' WHERE id = '{bundle}'");
                self.run(&revoke).await;
            }
            Action::Command(command) => self.command(org, project, command).await,
        }
    }

    /// Gives an operator's command. Its error is ignored, because the database shows the effect.
    async fn command(&self, org: OrgId, project: ProjectId, command: RolloutCommand) {
        let user = if command == RolloutCommand::Approve {
            2
        } else {
            1
        };
        let call = self.call(org, user);
        let done = self
            .app
            .command_rollout(&call, project, self.rollout, command);
        drop(done.await);
    }

    /// Runs exactly one step of the scheduler.
    async fn step(&self) {
        let version = self.version().await;
        self.run(&format!(
            "CREATE TRIGGER one_step BEFORE UPDATE ON rollouts WHEN NEW.version > {}
             BEGIN SELECT RAISE(ABORT, 'one step'); END",
            version + 1
        ))
        .await;
        drop(self.app.advance_rollout(self.rollout, self.now).await);
        self.run("DROP TRIGGER one_step").await;
    }

    async fn version(&self) -> i64 {
        let mut tx = self.store.read().await.unwrap();
        tx.rollout(self.rollout).await.unwrap().unwrap().version
    }

    async fn state(&self) -> RolloutState {
        let mut tx = self.store.read().await.unwrap();
        let found = tx.rollout(self.rollout).await.unwrap().unwrap();
        found.value.state
    }

    /// Reports this verdict for each node's newest order.
    async fn answer(&self, nodes: &[NodeId], verdict: Verdict) {
        let mut tx = self.store.begin().await.unwrap();
        for node in nodes {
            let order = tx.order(*node).await.unwrap().unwrap().order;
            let runs = (verdict == Verdict::Accepted).then_some(order.bundle);
            let heartbeat = HeartbeatRequest {
                health: Health { cpu_percent: 1.0 },
                version: None,
                status: Some(NodeStatus {
                    active: runs,
                    last_good: runs,
                    order: Some(order.counter),
                    verdict: Some(verdict),
                    ..NodeStatus::default()
                }),
                traffic: None,
                instance: None,
            };
            let written = tx.write_heartbeat(*node, &heartbeat, self.now).await;
            assert!(written.unwrap().is_some());
        }
        tx.commit().await.unwrap();
    }

    /// Returns the rows of each table.
    async fn dump(&self) -> BTreeMap<&'static str, String> {
        let mut connection = AnyConnection::connect(&self.url).await.unwrap();
        let mut dump = BTreeMap::new();
        for table in TABLES {
            let columns =
                format!("SELECT group_concat(name) AS text FROM pragma_table_info('{table}')");
            let columns = text(&mut connection, &columns).await;
            let rows = format!(
                "SELECT coalesce(group_concat(json_array({columns}), char(10)), '') AS text
                 FROM (SELECT * FROM {table} ORDER BY 1, 2, 3)"
            );
            dump.insert(table, text(&mut connection, &rows).await);
        }
        let audit = "SELECT count(*) || '' AS text FROM audit";
        dump.insert("audit", text(&mut connection, audit).await);
        connection.close().await.unwrap();
        dump
    }

    /// Runs scheduler and nodes, as after a start, until an operator must act.
    async fn finish(&self, nodes: &[NodeId]) {
        for _ in 0..MAX_STEPS {
            self.answer(nodes, Verdict::Accepted).await;
            let steps = self.app.advance_rollout(self.rollout, self.now).await;
            if steps.unwrap() == 0 {
                return;
            }
        }
        unreachable!("{MAX_STEPS} steps are enough");
    }
}

async fn text(connection: &mut AnyConnection, select: &str) -> String {
    let row = query(AssertSqlSafe(select.to_owned())).fetch_one(connection);
    row.await.unwrap().get("text")
}

fn file(copy: &Copy) -> PathBuf {
    PathBuf::from(copy.url.strip_prefix("sqlite://").unwrap())
}

#[tokio::test]
async fn a_crash_within_a_transition_leaves_nothing_of_it_and_one_behind_it_all() {
    let base = Base::new().await;
    for row in ROLLOUT_TRANSITIONS {
        let name = format!("{} while {}", row.event, row.from);
        let scenario = scenario(row.from, row.event);
        let before = base.prepare(&scenario).await;
        assert_eq!(before.state().await, row.from, "{name}");
        let is = before.dump().await;

        let whole = base.copy(&before.store, before.rollout).await;
        whole.act(&base, scenario.last).await;
        let becomes = whole.dump().await;
        assert_eq!(whole.state().await, row.to, "{name}");
        let written = becomes.iter().filter(|(table, rows)| is[*table] != **rows);
        let written: Vec<&str> = written.map(|(table, _)| *table).collect();
        assert!(written.contains(&"rollouts"), "{name}: {written:?}");
        assert!(written.contains(&"audit"), "{name}: {written:?}");

        for table in written {
            let copy = base.copy(&before.store, before.rollout).await;
            for event in ["INSERT", "UPDATE", "DELETE"] {
                copy.run(&format!(
                    "CREATE TRIGGER crash_{event} BEFORE {event} ON {table}
                     BEGIN SELECT RAISE(ABORT, 'crash'); END"
                ))
                .await;
            }
            copy.act(&base, scenario.last).await;
            assert_eq!(copy.dump().await, is, "{name}: a crash before {table}");
            for event in ["INSERT", "UPDATE", "DELETE"] {
                copy.run(&format!("DROP TRIGGER crash_{event}")).await;
            }
            copy.app.close().await;
            let restarted = base.open(&file(&copy), copy.rollout).await;
            restarted.act(&base, scenario.last).await;
            assert_eq!(restarted.dump().await, becomes, "{name}: after {table}");
        }
    }
}

#[tokio::test]
async fn a_crash_after_a_transition_does_not_change_later_transitions() {
    let base = Base::new().await;
    for row in ROLLOUT_TRANSITIONS {
        let name = format!("{} while {}", row.event, row.from);
        let scenario = scenario(row.from, row.event);
        let crashed = base.prepare(&scenario).await;
        let whole = base.copy(&crashed.store, crashed.rollout).await;
        whole.act(&base, scenario.last).await;
        whole.finish(&base.nodes).await;
        crashed.act(&base, scenario.last).await;
        crashed.app.close().await;
        let restarted = base.open(&file(&crashed), crashed.rollout).await;
        restarted.finish(&base.nodes).await;
        assert_eq!(restarted.dump().await, whole.dump().await, "{name}");
        let end = restarted.state().await;
        let waits = matches!(end, RolloutState::Paused | RolloutState::AwaitingApproval);
        assert!(end.is_final() || waits, "{name} ends as {end}");
    }
}
