//! Changes that update live pages: only those in the user's own organizations.

use crate::world::{Credential, World, app, sample, worlds};
use axum::http::StatusCode;
use control_app::{App, ChangeScope, Presented, Waiter, Wake};
use control_domain::{Role, Tenant};
use std::sync::Arc;
use std::time::Duration;

const WAIT_LIMIT: Duration = Duration::from_mins(1);

/// Subscribes a live page of the session at this replica.
async fn page(app: &Arc<App>, session: &Credential) -> Waiter {
    let Credential::Session(secret) = session else {
        unreachable!("a session");
    };
    let presented = Presented::Session(secret);
    let actor = app.authenticate(presented, None, app.now()).await.unwrap();
    app.changes.subscribe(ChangeScope::from(&actor))
}

/// Changes something in the second organization.
async fn change_other(world: &World) {
    let key = world.key(Tenant::org(world.other.org), &[]);
    let key = world.store_key(&key).await;
    let all = "/orgs/{org}/projects";
    let path = all.replace("{org}", &world.other.org.to_string());
    let made = world.post(&path, &key, sample(all)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
}

#[tokio::test]
async fn a_page_is_woken_by_changes_in_the_users_organizations_at_every_replica() {
    for world in worlds().await {
        let (second, _) = app(&world.database.url, world.objects.path()).await;
        let reader = world.user(world.org, Role::Reader).await;
        let root = world.instance_admin().await;
        let mut pages = Vec::new();
        for replica in [&world.app, &second] {
            replica.relay().await.unwrap();
            pages.push((page(replica, &reader).await, page(replica, &root).await));
        }
        change_other(&world).await;
        second.relay().await.unwrap();
        world.app.relay().await.unwrap();
        for (own, all) in &mut pages {
            assert_eq!(own.wait(Duration::ZERO).await, Wake::TimedOut);
            assert_eq!(all.wait(WAIT_LIMIT).await, Wake::Changed);
        }
        let path = "/orgs/{org}/projects";
        let made = world
            .post(path, &world.full_key().await, sample(path))
            .await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        second.relay().await.unwrap();
        for (own, all) in &mut pages {
            assert_eq!(own.wait(WAIT_LIMIT).await, Wake::Changed);
            assert_eq!(all.wait(WAIT_LIMIT).await, Wake::Changed);
        }
    }
}

#[tokio::test]
async fn a_page_of_a_session_that_ended_has_no_actor() {
    for world in worlds().await {
        let session = world.user(world.org, Role::Reader).await;
        let listed = world.get("/users/me/sessions", &session).await;
        let id = listed.body["items"][0]["id"].as_str().unwrap();
        let id = id.parse().unwrap();
        assert!(world.app.actor_of_live_page(id).await.is_ok());
        let out = world.post("/sign-out", &session, serde_json::Value::Null);
        assert_eq!(out.await.status, StatusCode::NO_CONTENT);
        assert!(world.app.actor_of_live_page(id).await.is_err());
    }
}
