//! Reviews of access and changes: the audit log by day and user, and roles in single projects.

use crate::fleet::Fleet;
use crate::sign_in::Browser;
use crate::world::{World, between, worlds};
use axum::http::StatusCode;
use control_auth::Secret;
use control_domain::{ApiKey, Creator, Name, Role, Scope, Tenant};
use control_http::SessionCookie;
use control_testkit::Database;
use control_wire::{ApiKeyId, UserId};
use jiff::{SignedDuration, tz::TimeZone};
use std::collections::BTreeSet;
use uuid::Uuid;

const AUDIT: &str = "/orgs/{org}/audit";

#[tokio::test]
async fn the_audit_log_is_limited_to_days_and_its_links_keep_the_rest() {
    for world in worlds().await {
        let today = world.app.now().to_zoned(TimeZone::UTC).date();
        let week = (world.app.now() - SignedDuration::from_hours(7 * 24)).to_zoned(TimeZone::UTC);
        let week = week.date();
        let of_week = format!("{AUDIT}?action=project.&since={week}");
        let shown = world.get(&of_week, &world.admin).await;
        assert!(shown.text.contains("Project created"), "{}", shown.text);
        assert!(!shown.text.contains(">org.created<"), "{}", shown.text);
        for link in [
            format!("href=\"?action=rollout.&#38;since={week}\""),
            "href=\"?action=project.\"".to_owned(),
            format!("/audit/export?action=project.&#38;since={week}T00%3A00%3A00Z"),
        ] {
            assert!(shown.text.contains(&link), "{link}: {}", shown.text);
        }
        let before = format!("{AUDIT}?until={week}");
        let before = world.get(&before, &world.admin).await;
        assert_eq!(before.heading(), "No entry matches this filter.");
        let own = world.admin_user().await;
        world.add_project("other").await;
        let by_one = format!("{AUDIT}?actor={own}&until={today}");
        let by_one = world.get(&by_one, &world.admin).await;
        assert!(by_one.text.contains(">By Ann Brandt"), "{}", by_one.text);
        assert!(!by_one.text.contains(">admin.created<"), "{}", by_one.text);
    }
}

#[tokio::test]
async fn an_entry_about_a_member_has_its_name() {
    for world in worlds().await {
        let user = world.add_member(Role::Reader).await;
        let mut browser = Browser::with_session(&world, &world.admin);
        browser.open("/orgs/{org}/members").await;
        let path = format!("/orgs/{{org}}/members/{user}");
        browser.post(&path, &[("role", "operator")]).await;
        let shown = world
            .get(&format!("{AUDIT}?action=member."), &world.admin)
            .await;
        let row = between(&shown.text, "Member role changed", "</tr>");
        assert!(row.contains(">Bo Lindqvist</a>"), "{row}");
    }
}

#[tokio::test]
async fn members_with_a_role_in_a_single_project_are_listed_with_it() {
    for world in worlds().await {
        let members = "/orgs/{org}/members";
        let before = world.get(members, &world.admin).await;
        let sign_in = "data-label=\"Last sign-in\"><time";
        assert!(before.text.contains(sign_in), "{}", before.text);
        let none = "data-label=\"Last sign-in\"><span class=\"muted\">none on record";
        assert!(!before.text.contains(none), "{}", before.text);
        world.add_member(Role::Reader).await;
        let shown = world.get(members, &world.admin).await;
        assert!(shown.text.contains(none), "{}", shown.text);
        assert!(!before.text.contains("Roles in single projects"));
        world.project_member(world.project, Role::Operator).await;
        let (_, foreign) = world.other_org("other").await;
        let (org, user) = (world.org, world.add_member(Role::Reader).await);
        let shown = world.get(members, &world.admin).await;
        let panel = between(&shown.text, "id=\"in-projects\"", "</section>");
        for part in [
            "Bo Lindqvist</a>".to_owned(),
            format!("href=\"/projects/{}\">edge</a>", world.project),
            ">operator</td>".to_owned(),
        ] {
            assert!(panel.contains(&part), "{part}: {panel}");
        }
        assert!(!panel.contains(&foreign.to_string()), "{panel}");
        let entries = format!("href=\"/orgs/{org}/audit?actor={user}\"");
        assert!(shown.text.contains(&entries), "{}", shown.text);
    }
}

#[tokio::test]
async fn a_key_is_listed_with_its_project_and_its_maker() {
    for world in worlds().await {
        let mut browser = Browser::with_session(&world, &world.admin);
        browser.open("/api-keys?org={org}").await;
        let (org, project) = (world.org.to_string(), world.project.to_string());
        let fields = [
            ("org", org.as_str()),
            ("name", "deploy"),
            ("project", project.as_str()),
            ("days", "30"),
        ];
        browser.post("/api-keys", &fields).await;
        let shown = browser.open("/api-keys?org={org}").await;
        assert_eq!(shown.heading(), "1 API key is active, with full access.");
        for part in ["in project edge", "by Ann Brandt"] {
            assert!(shown.text.contains(part), "{part}: {}", shown.text);
        }
    }
}

/// Stores keys of an administrator: `full`, `steering` with a right of operators, and `looking`.
async fn store_keys(world: &World, user: UserId) {
    let mut tx = world.store.begin().await.unwrap();
    for (number, name, scopes) in [
        (1, "full", BTreeSet::new()),
        (2, "steering", BTreeSet::from([Scope::RolloutsWrite])),
        (3, "looking", BTreeSet::from([Scope::NodesRead])),
    ] {
        let key = ApiKey {
            id: ApiKeyId(Uuid::now_v7()),
            tenant: Tenant::org(world.org),
            name: Name::stored(name.to_owned()),
            scopes,
            created_at: world.app.now(),
            expires_at: None,
            revoked_at: None,
            made_by: Some(Creator {
                user,
                role: Some(Role::Admin),
            }),
        };
        let secret = Secret::new([number; 32]);
        tx.insert_api_key(&key, &secret.hash()).await.unwrap();
    }
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_key_is_listed_with_a_role_of_its_maker_that_limits_it() {
    for world in worlds().await {
        let user = world.add_member(Role::Admin).await;
        store_keys(&world, user).await;
        let mut browser = Browser::with_session(&world, &world.admin);
        let member = format!("/orgs/{{org}}/members/{user}");
        for (role, limits) in [
            ("admin", ["", "", ""]),
            ("operator", ["operator", "", ""]),
            ("reader", ["reader", "reader", ""]),
        ] {
            browser.open("/orgs/{org}/members").await;
            browser.post(&member, &[("role", role)]).await;
            let shown = browser.open("/api-keys?org={org}").await;
            for (name, limit) in ["full", "steering", "looking"].into_iter().zip(limits) {
                let row = between(&shown.text, &format!(">{name}</th>"), "</tr>");
                assert!(row.contains("Active</span>"), "{role}: {row}");
                let text = format!("limited to {limit}, the role of its creator");
                assert_eq!(row.contains("limited to"), !limit.is_empty(), "{row}");
                assert!(limit.is_empty() || row.contains(&text), "{role}: {row}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_names_what_stopped_and_the_only_node_of_a_kind() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let fleet = Fleet::new(&world).await;
    let shown = world.get("/projects/{project}", &world.admin).await;
    let panel = between(&shown.text, "id=\"attention-panel\"", "</section>");
    let silent = format!("/nodes/{}\">iad-edge-11</a> is offline", fleet.nodes[10]);
    for part in [
        "Rollout of cart-timeouts</a> stopped at batch 2 of 3",
        silent.as_str(),
    ] {
        assert!(panel.contains(part), "{part}: {panel}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_without_its_archive_can_be_seen_and_revoked() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let fleet = Fleet::new(&world).await;
    let page = format!("/projects/{{project}}/bundles/{}", fleet.cart);
    let unreadable = "The archive cannot be read";
    let shown = world.get(&page, &world.admin).await;
    assert!(!shown.text.contains(unreadable), "{}", shown.text);
    world.lose_archives();
    let shown = world.get(&page, &world.admin).await;
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.text);
    for part in [unreadable, "/revoke\">Revoke</a>"] {
        assert!(shown.text.contains(part), "{part}: {}", shown.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_links_to_its_bundles_changes_and_shows_its_reason() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let fleet = Fleet::new(&world).await;
    let changes = format!("/bundles/{}/diff?before={}", fleet.cart, fleet.spring);
    let reader = world.member(Role::Reader).await;
    for session in [&world.admin, &reader] {
        let page = format!("/projects/{{project}}/rollouts/{}", fleet.stopped);
        let shown = world.get(&page, session).await;
        assert!(shown.text.contains(&changes), "{}", shown.text);
        assert!(shown.text.contains("<p>Started by "), "{}", shown.text);
    }
    let overview = world.get("/projects/{project}", &reader).await;
    assert!(!overview.text.contains(">Decide<"), "a reader cannot");
    let policy = world.get("/projects/{project}/policy", &reader).await;
    assert!(
        policy.text.contains("changes at any time"),
        "{}",
        policy.text
    );
    // Its nodes already run the bundle.
    let page = format!("/projects/{{project}}/rollouts/{}", fleet.planned);
    let same = world.get(&page, &world.admin).await;
    assert!(
        !same
            .text
            .contains(&format!("{}/diff?before={}", fleet.spring, fleet.spring))
    );
}
