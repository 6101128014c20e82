//! Pages for a new user: from the first project to a rollout and a second member.

use crate::fleet::{Fleet, bundle, node};
use crate::sign_in::Browser;
use crate::world::{World, between, worlds};
use axum::http::StatusCode;
use control_app::NodeSelection;
use control_domain::{BatchSize, NewRollout, OnFailure, Role, RolloutCommand, Strategy};
use control_http::SessionCookie;
use control_testkit::Database;
use control_wire::{BundleId, NodeId, RolloutId};
use std::collections::BTreeMap;

const OVERVIEW: &str = "/projects/{project}";
const TEXT: &str = "listeners { listener \"web\" { address \"0.0.0.0:8080\" } }\n";

/// Plans a rollout of the bundle to the node, without a gate.
pub(crate) async fn plan(world: &World, bundle: BundleId, node: NodeId) -> RolloutId {
    let new = NewRollout {
        bundle,
        strategy: Strategy {
            batch: BatchSize::Percent(100),
            max_unavailable: 0,
            deadline_secs: 600,
            soak_secs: 60,
            gate: None,
            needs_approval: false,
            on_failure: OnFailure::Pause,
        },
        condition: None,
        labels: BTreeMap::new(),
        not_before: None,
    };
    let call = world.call().await;
    let selection = NodeSelection::Named(vec![node]);
    let made = world
        .app
        .create_rollout(&call, world.project, new, selection);
    made.await.unwrap().value.id
}

/// Gives a command to a rollout.
pub(crate) async fn command(world: &World, rollout: RolloutId, command: RolloutCommand) {
    let call = world.call().await;
    world
        .app
        .command_rollout(&call, world.project, rollout, command)
        .await
        .unwrap();
}

#[tokio::test]
async fn the_overview_offers_the_next_step_and_shows_what_is_in_progress() {
    for world in worlds().await {
        let node = node(&world, "edge-1", "home").await;
        let before = world.get(OVERVIEW, &world.admin).await;
        assert_eq!(before.heading(), "1 node waits for a first bundle.");
        assert!(
            before.text.contains(">Write a bundle</a>"),
            "{}",
            before.text
        );
        assert!(!before.text.contains(">New rollout</a>"));
        let bundle = bundle(&world, "first", TEXT).await;
        let after = world.get(OVERVIEW, &world.admin).await;
        assert!(after.text.contains(">New rollout</a>"), "{}", after.text);
        assert!(!after.text.contains("Rollouts under way"));
        let rollout = plan(&world, bundle, node).await;
        command(&world, rollout, RolloutCommand::Start).await;
        let moving = world.get(OVERVIEW, &world.admin).await;
        let panel = between(&moving.text, "id=\"under-way-panel\"", "</section>");
        assert!(panel.contains("0 of 1 node runs “first”."), "{panel}");
        assert!(panel.contains(&rollout.to_string()), "{panel}");
    }
}

#[tokio::test]
async fn the_form_of_a_rollout_has_the_bundle_that_it_was_opened_for() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let old = bundle(&world, "old", TEXT).await;
    for number in 0..51 {
        bundle(&world, &format!("newer-{number}"), TEXT).await;
    }
    let form = format!("/projects/{{project}}/rollouts/new?bundle={old}");
    let shown = world.get(&form, &world.admin).await;
    let own = format!("<option value=\"{old}\" selected>old (…");
    assert!(shown.text.contains(&own), "{}", shown.text);
    assert_eq!(
        shown.text.matches(" selected>").count(),
        2,
        "{}",
        shown.text
    );
}

#[tokio::test]
async fn rejected_bundles_do_not_push_signed_ones_out_of_the_form() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    node(&world, "edge-1", "home").await;
    bundle(&world, "good", TEXT).await;
    for number in 0..51 {
        bundle(&world, &format!("typo-{number}"), "limits { typo 5 }\n").await;
    }
    let shown = world
        .get("/projects/{project}/rollouts/new", &world.admin)
        .await;
    assert!(shown.text.contains(">good (…"), "{}", shown.text);
    let call = world.call().await;
    let found = world.app.newest_signed_bundles(&call, world.project, 1);
    let good = found.await.unwrap()[0].value.id;
    let explain = format!("/projects/{{project}}/explain?bundle={good}");
    let explained = world.get(&explain, &world.admin).await;
    assert!(
        explained.text.contains(" selected>good (…"),
        "{}",
        explained.text
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gate_is_off_until_a_node_serves() {
    let is_on = async |world: &World| {
        let form = "/projects/{project}/rollouts/new";
        let shown = world.get(form, &world.admin).await;
        between(&shown.text, "name=\"gate\"", ">").contains("checked")
    };
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    node(&world, "edge-1", "home").await;
    bundle(&world, "first", TEXT).await;
    assert!(!is_on(&world).await);
    let served = World::new(Database::sqlite(), SessionCookie::Tls).await;
    Fleet::new(&served).await;
    assert!(is_on(&served).await);
}

#[tokio::test]
async fn the_link_of_an_invitation_is_whole_and_its_page_says_to_what() {
    for world in worlds().await {
        let mut browser = Browser::with_session(&world, &world.admin);
        browser.open("/orgs/{org}/members").await;
        let fields = [("email", "bo@example.org"), ("role", "operator")];
        let made = browser.post("/orgs/{org}/invitations", &fields).await;
        let begin = "https://control.example.com/invitations/accept?token=";
        let token = between(&made.text, begin, "</pre>");
        assert_eq!(token.len(), 43, "{}", made.text);
        let path = format!("/invitations/accept?token={token}");
        let shown = world.get(&path, "").await;
        assert_eq!(shown.heading(), "You are invited to acme.");
        for part in [
            "the role operator",
            "created for bo@example.org",
            "value=\"bo@example.org\"",
        ] {
            assert!(shown.text.contains(part), "{part}: {}", shown.text);
        }
    }
}

#[tokio::test]
async fn a_person_changes_the_own_name() {
    for world in worlds().await {
        let mut browser = Browser::with_session(&world, &world.admin);
        browser.open("/profile").await;
        let done = browser
            .post("/profile/name", &[("user_name", " Ann B ")])
            .await;
        assert_eq!(done.header("location"), "/profile", "{}", done.text);
        let shown = browser.open("/profile").await;
        assert!(shown.text.contains("<span class=\"name\">Ann B</span>"));
        let refused = browser.post("/profile/name", &[("user_name", "")]).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(
            refused.text.contains("id=\"user_name-fault\""),
            "{}",
            refused.text
        );
    }
}

#[tokio::test]
async fn the_only_project_has_a_way_to_the_page_of_all_projects() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let operator = world.member(Role::Operator).await;
    let shown = world.get(OVERVIEW, &operator).await;
    assert!(
        shown.text.contains("href=\"/?all=1\">All projects"),
        "{}",
        shown.text
    );
    let all = world.get("/?all=1", &operator).await;
    assert_eq!(all.status, StatusCode::OK);
    assert!(all.text.contains(">New project"), "{}", all.text);
}

#[tokio::test]
async fn an_open_id_form_says_what_it_needs_before_it_is_filled() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let mut browser = Browser::with_session(&world, &world.admin);
    let shown = browser.open("/orgs/{org}/sso/oidc").await;
    let redirect = format!(
        "https://control.example.com/sso/{}/oidc/callback",
        world.org
    );
    for part in [redirect.as_str(), "--public-url"] {
        assert!(shown.text.contains(part), "{part}: {}", shown.text);
    }
}

#[tokio::test]
async fn forms_work_on_the_page_that_changed_the_secret_of_the_session() {
    for world in worlds().await {
        let mut browser = Browser::with_session(&world, &world.admin);
        browser.set_up_totp().await;
        let out = browser.post("/sign-out", &[]).await;
        assert_eq!(out.header("location"), "/sign-in", "{}", out.text);
    }
}
