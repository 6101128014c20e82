//! Pages of `docs/operate/tutorial.md` in its order: each contains the sentence that the tutorial
//! quotes, and is the source of its picture.
//!
//! Pictures are stored in the folder of the browser test. `cargo xtask screenshots` sets
//! `CONTROLD_SCREENSHOTS` to the tutorial's folder instead.

use crate::fleet::{bundle, node};
use crate::reports::{Outcome, Reports};
use crate::world::World;
use axum::serve;
use control_app::NodeSelection;
use control_domain::{
    BatchSize, Gate, NewRollout, OnFailure, RolloutCommand, RolloutState, Strategy,
};
use control_http::SessionCookie;
use control_testkit::{Database, installed};
use control_wire::{BundleId, NodeId, RolloutId};
use jiff::SignedDuration;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::net::TcpListener;
use tokio::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pages/screenshots.mjs");
const TUTORIAL: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/operate/tutorial.md"
);
/// Pictures are loaded with the tutorial, so they must be small.
const MAX_PICTURE_BYTES: u64 = 60_000;
const ROUND_SECS: i64 = 2;
const MAX_ROUNDS: usize = 60;

/// The control plane of the tutorial.
struct Tutorial {
    world: World,
    nodes: Vec<NodeId>,
    reports: Reports,
    text: String,
}

impl Tutorial {
    async fn new() -> Self {
        let world = World::new(Database::sqlite(), SessionCookie::Loopback).await;
        let mut nodes = Vec::new();
        for number in 1..=3 {
            nodes.push(node(&world, &format!("edge-{number}"), "home").await);
        }
        let reports = Reports::new(world.app.now() - SignedDuration::from_mins(3), "site");
        Self {
            world,
            nodes,
            reports,
            text: fs::read_to_string(TUTORIAL).unwrap().replace('\n', " "),
        }
    }

    /// Sends a heartbeat of each node. Requests under `second` fail.
    async fn round(&mut self, second: Option<BundleId>) {
        self.reports.now += SignedDuration::from_secs(ROUND_SECS);
        for node in &self.nodes {
            let outcome = |active| Outcome {
                requests: 60,
                errors: if Some(active) == second { 60 } else { 0 },
            };
            self.reports.send(&self.world, *node, None, outcome).await;
        }
    }

    /// Opens a page in a browser, and checks that its heading is a sentence of the tutorial.
    async fn picture(&self, name: &str, path: &str, heading: &str) {
        let quoted = self.text.contains(heading.trim_end_matches('.'));
        assert!(quoted, "the tutorial does not say: {heading}");
        let path = self.world.path(path);
        take(&self.world, name, &path, heading).await;
    }

    async fn plan(&self, bundle: BundleId) -> RolloutId {
        let new = NewRollout {
            bundle,
            strategy: Strategy {
                batch: BatchSize::Percent(34),
                max_unavailable: 0,
                deadline_secs: 600,
                soak_secs: 5,
                gate: Some(Gate {
                    min_requests: 50,
                    ..Gate::DEFAULT
                }),
                needs_approval: false,
                on_failure: OnFailure::RollBack,
            },
            condition: None,
            labels: BTreeMap::new(),
            not_before: None,
        };
        let call = self.world.call_at(self.reports.now).await;
        let selection = NodeSelection::Named(self.nodes.clone());
        let made = self
            .world
            .app
            .create_rollout(&call, self.world.project, new, selection);
        made.await.unwrap().value.id
    }

    /// Sends heartbeats until the rollout is in this state.
    async fn until(&mut self, rollout: RolloutId, state: RolloutState, second: BundleId) {
        for _ in 0..MAX_ROUNDS {
            self.round(Some(second)).await;
            let now = self.reports.now;
            self.world.app.advance_rollout(rollout, now).await.unwrap();
            let call = self.world.call_at(now).await;
            let found = self.world.app.rollout(&call, self.world.project, rollout);
            if found.await.unwrap().value.rollout.state == state {
                return;
            }
        }
        panic!("the rollout is never {state:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tutorial_shows_its_pages_as_they_are() {
    let mut tutorial = Tutorial::new().await;
    tutorial.round(None).await;
    let overview = "/projects/{project}";
    let heading = "3 nodes wait for a first bundle.";
    tutorial.picture("nodes", overview, heading).await;
    let first = bundle(&tutorial.world, "first", &configuration(3_000)).await;
    let second = bundle(&tutorial.world, "second", &configuration(3_001)).await;
    let call = tutorial.world.call_at(tutorial.reports.now).await;
    let world = &tutorial.world;
    let assigned = world
        .app
        .assign_bundle(&call, world.project, first, &tutorial.nodes);
    assigned.await.unwrap();
    for _ in 0..4 {
        tutorial.round(Some(second)).await;
    }
    let rollout = tutorial.plan(second).await;
    let page = format!("/projects/{{project}}/rollouts/{rollout}");
    let heading = "3 nodes in 2 batches wait for the start.";
    tutorial.picture("plan", &page, heading).await;
    let call = tutorial.world.call_at(tutorial.reports.now).await;
    let world = &tutorial.world;
    let started = world
        .app
        .command_rollout(&call, world.project, rollout, RolloutCommand::Start);
    started.await.unwrap();
    tutorial
        .until(rollout, RolloutState::RolledBack, second)
        .await;
    let heading = "Rolled back at batch 1 of 2: too many requests fail.";
    tutorial.picture("rolled-back", &page, heading).await;
}

#[test]
fn the_pictures_of_the_tutorial_are_there_and_small() {
    let folder = Path::new(TUTORIAL).with_extension("");
    let text = fs::read_to_string(TUTORIAL).unwrap();
    for name in ["nodes", "plan", "rolled-back"] {
        let picture = folder.join(name).with_extension("png");
        let bytes = fs::metadata(&picture).unwrap().len();
        assert!(bytes <= MAX_PICTURE_BYTES, "{name} has {bytes} bytes");
        assert!(text.contains(&format!("](tutorial/{name}.png)")), "{name}");
    }
}

fn configuration(port: u16) -> String {
    format!(
        r#"listeners {{ listener "web" {{ address "127.0.0.1:0" }} }}
routes {{ route "site" {{ upstream "site" }} }}
upstreams {{ upstream "site" {{ target "127.0.0.1:{port}" }} }}
"#
    )
}

/// Returns the folder for pictures.
fn folder(modules: &Path) -> PathBuf {
    match std::env::var_os("CONTROLD_SCREENSHOTS") {
        Some(folder) => folder.into(),
        None => modules.ancestors().nth(1).unwrap().join("shots/tutorial"),
    }
}

async fn take(world: &World, name: &str, path: &str, heading: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = world.router.clone();
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let server = tokio::spawn(async move { serve(listener, service).await });
    let browser = installed("browser/node_modules/playwright-core/package.json");
    let modules = browser.ancestors().nth(2).unwrap();
    let run = Command::new("node")
        .arg(SCRIPT)
        .arg(modules)
        .arg(format!("http://{address}{path}"))
        .arg(&world.admin)
        .arg(folder(modules).join(name).with_extension("png"))
        .arg(heading)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output();
    let output = run.await.unwrap();
    server.abort();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{name}: {printed}");
    assert_eq!(printed, "", "{name}");
}
