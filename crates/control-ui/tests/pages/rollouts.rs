//! Pages of a rollout that its nodes do not follow, or that is tried again.

use crate::fleet::{bundle, node};
use crate::reports::{Outcome, Reports};
use crate::world::{World, between, worlds};
use axum::http::StatusCode;
use control_app::{NodeSelection, RolloutProgress};
use control_domain::{BatchSize, NewRollout, OnFailure, RolloutCommand, RolloutState, Strategy};
use control_http::SessionCookie;
use control_testkit::Database;
use control_wire::{NodeId, RolloutId};
use jiff::SignedDuration;
use std::collections::BTreeMap;

/// A rollout to three nodes with two in the first batch.
struct Trial<'a> {
    world: &'a World,
    nodes: Vec<NodeId>,
    rollout: RolloutId,
    reports: Reports,
}

fn configuration(port: u16) -> String {
    format!(
        "listeners {{ listener \"web\" {{ address \"127.0.0.1:0\" }} }}\n\
         routes {{ route \"site\" {{ upstream \"site\" }} }}\n\
         upstreams {{ upstream \"site\" {{ target \"127.0.0.1:{port}\" }} }}\n"
    )
}

impl<'a> Trial<'a> {
    async fn new(world: &'a World) -> Self {
        let mut nodes = Vec::new();
        for number in 1..=3 {
            nodes.push(node(world, &format!("edge-{number}"), "fra").await);
        }
        // Batches are in the order of identifiers.
        nodes.sort();
        let start = world.app.now() - SignedDuration::from_mins(5);
        let old = bundle(world, "old", &configuration(3_000)).await;
        let new = bundle(world, "cart", &configuration(3_001)).await;
        let call = world.call_at(start).await;
        let assigned = world.app.assign_bundle(&call, world.project, old, &nodes);
        assigned.await.unwrap();
        let mut trial = Self {
            world,
            nodes,
            rollout: RolloutId(uuid::Uuid::nil()),
            reports: Reports::new(start, "site"),
        };
        trial.report(&[0, 1, 2]).await;
        let new = NewRollout {
            bundle: new,
            strategy: Strategy {
                batch: BatchSize::Count(2),
                max_unavailable: 0,
                deadline_secs: 60,
                soak_secs: 0,
                gate: None,
                needs_approval: false,
                on_failure: OnFailure::Pause,
            },
            condition: None,
            labels: BTreeMap::new(),
            not_before: None,
        };
        let selection = NodeSelection::Named(trial.nodes.clone());
        let made = world
            .app
            .create_rollout(&call, world.project, new, selection);
        trial.rollout = made.await.unwrap().value.id;
        trial.command(RolloutCommand::Start).await;
        trial
    }

    /// Heartbeats of these nodes, by their orders.
    async fn report(&mut self, nodes: &[usize]) {
        for index in nodes {
            let id = self.nodes[*index];
            let outcome = |_| Outcome::default();
            self.reports.send(self.world, id, None, outcome).await;
        }
    }

    async fn advance(&self) {
        let now = self.reports.now;
        let advanced = self.world.app.advance_rollout(self.rollout, now);
        advanced.await.unwrap();
    }

    async fn command(&self, command: RolloutCommand) {
        let call = self.world.call_at(self.reports.now).await;
        let done = self
            .world
            .app
            .command_rollout(&call, self.world.project, self.rollout, command);
        done.await.unwrap();
    }

    async fn progress(&self) -> RolloutProgress {
        let call = self.world.call_at(self.reports.now).await;
        let found = self
            .world
            .app
            .rollout(&call, self.world.project, self.rollout);
        found.await.unwrap().value
    }

    /// Text of the page below the rollout's path.
    async fn page(&self, below: &str) -> String {
        let path = format!("/projects/{{project}}/rollouts/{}{below}", self.rollout);
        let shown = self.world.get(&path, &self.world.admin).await;
        assert_eq!(shown.status, StatusCode::OK, "{}", shown.text);
        shown.text
    }

    /// Lets the deadline of the batch pass.
    async fn fail(&mut self, following: &[usize]) {
        self.advance().await;
        self.reports.now += SignedDuration::from_secs(30);
        self.report(following).await;
        self.advance().await;
        self.reports.now += SignedDuration::from_secs(60);
        self.report(following).await;
        self.advance().await;
        let state = self.progress().await.rollout.state;
        assert_eq!(state, RolloutState::Paused);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_were_ordered_and_did_not_report_are_on_the_pages() {
    for world in worlds().await {
        let mut trial = Trial::new(&world).await;
        trial.fail(&[]).await;
        let page = trial.page("").await;
        assert!(!page.contains("No node has the bundle"), "{page}");
        let reach = "2 nodes were sent it, and have rejected it or not reported yet; \
                     1 node was not reached.";
        assert!(page.contains(reach), "{page}");
        assert!(page.contains("Roll back 2 nodes"), "{page}");
        let asked = trial.page("/rollback").await;
        assert!(
            asked.contains("Roll back 2 nodes to their former bundles?"),
            "{asked}"
        );
        let unreported = "2 of them have not reported that they run it.";
        assert!(asked.contains(unreported), "{asked}");
        let asked = trial.page("/cancel").await;
        assert!(asked.contains("2 nodes still have it assigned"), "{asked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_tried_again_counts_its_nodes_once() {
    for world in worlds().await {
        let mut trial = Trial::new(&world).await;
        trial.fail(&[0]).await;
        let stopped = trial.progress().await;
        assert_eq!(stopped.batches[0].ready, Some(1));
        trial.command(RolloutCommand::Resume).await;
        let tried = trial.progress().await.batches[0].clone();
        assert_eq!(
            (tried.nodes, tried.ready, tried.figures),
            (None, None, None)
        );
        let page = trial.page("").await;
        assert!(page.contains("1 of 3 nodes runs “cart”"), "{page}");
        // The history has the stop, though the rollout has no reason any more.
        let stop = "Stopped automatically: 1 of 2 nodes did not switch in time";
        assert!(page.contains(stop), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_of_a_stop_stays_after_a_rollback_by_hand() {
    for world in worlds().await {
        let mut trial = Trial::new(&world).await;
        trial.fail(&[0]).await;
        trial.command(RolloutCommand::RollBack).await;
        let page = trial.page("").await;
        let reason = "stopped before: 1 of 2 nodes did not switch in time";
        assert!(page.contains(reason), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_was_rolled_back_is_marked_and_not_proposed() {
    for world in worlds().await {
        let mut trial = Trial::new(&world).await;
        trial.fail(&[0]).await;
        trial.command(RolloutCommand::RollBack).await;
        trial.advance().await;
        trial.reports.now += SignedDuration::from_secs(10);
        trial.report(&[0, 1]).await;
        trial.advance().await;
        let rollout = trial.progress().await.rollout;
        assert_eq!(rollout.state, RolloutState::RolledBack);
        let page = trial.page("").await;
        assert!(page.contains("Not reached"), "{page}");
        let again = "&amp;max_unavailable=0&amp;soak_seconds=0&amp;on_failure=pause";
        assert!(page.replace("&#38;", "&amp;").contains(again), "{page}");

        let bundle = format!("/projects/{{project}}/bundles/{}", rollout.bundle);
        let bundle = world.get(&bundle, &world.admin).await;
        let heading = "“cart” was rolled back, and no node runs it.";
        assert_eq!(bundle.heading(), heading);
        let form = "/projects/{project}/rollouts/new";
        let form = world.get(form, &world.admin).await.text;
        let options = between(&form, "name=\"bundle\"", "</select>");
        let (old, cart) = (options.find(">old ("), options.find(">cart ("));
        assert!(old.is_some() && old < cart, "{options}");
        assert!(options.contains("), rolled back</option>"), "{options}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_that_is_ended_by_hand_keeps_the_count_of_its_open_batch() {
    for world in worlds().await {
        let mut trial = Trial::new(&world).await;
        trial.advance().await;
        trial.reports.now += SignedDuration::from_secs(10);
        trial.report(&[0]).await;
        trial.command(RolloutCommand::Cancel).await;
        let ended = trial.progress().await;
        assert_eq!(ended.batches[0].ready, Some(1));
        let page = trial.page("").await;
        assert!(page.contains("1 of 3 nodes runs “cart”"), "{page}");
        assert!(page.contains("1 of 2 nodes switched"), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_of_more_nodes_than_a_page_has_asks_for_a_longer_one() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    for number in 0..101 {
        node(&world, &format!("edge-{number}"), "fra").await;
    }
    let heading = async |name: &str| {
        let path = format!("/projects/{{project}}/nodes?q={name}");
        let shown = world.get(&path, &world.admin).await;
        assert!(!shown.text.contains("rel=\"next\""), "{}", shown.text);
        shown.heading().to_owned()
    };
    assert_eq!(
        heading("edge").await,
        "More than 100 nodes have “edge” in their name; a longer part of the name shows fewer."
    );
    assert_eq!(
        heading("edge-100").await,
        "1 node has “edge-100” in its name."
    );
}
