//! Repeated requests, and concurrent requests for one version.

use crate::world::{Credential, World, sample, worlds};
use axum::http::{Method, StatusCode};
use control_domain::{Membership, Role};
use control_wire::UserId;
use futures_util::future::join_all;
use serde_json::{Value, json};

const UPSTREAMS: &str = "/projects/{project}/upstreams";
const KEY: [(&str, &str); 1] = [("idempotency-key", "one")];

/// Creates an operator of two organizations.
async fn operator_of_two(world: &World) -> (Credential, UserId) {
    let operator = world.user(world.org, Role::Operator).await;
    let me = world.get("/users/me", &operator).await;
    let user: UserId = me.text("id").parse().unwrap();
    let elsewhere = Membership {
        org: world.other.org,
        user,
        role: Role::Operator,
        created_at: world.app.now(),
    };
    let mut tx = world.store.begin().await.unwrap();
    tx.insert_membership(elsewhere).await.unwrap();
    tx.commit().await.unwrap();
    (operator, user)
}

#[tokio::test]
async fn a_request_with_two_keys_is_refused() {
    for world in worlds().await {
        let full = world.full_key().await;
        let keys = [("idempotency-key", "one"), ("idempotency-key", "two")];
        let body = sample(UPSTREAMS);
        let refused = world.send(&Method::POST, UPSTREAMS, &full, &body, &keys);
        let refused = refused.await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
        let listed = world.get(UPSTREAMS, &full).await;
        assert_eq!(listed.body["items"], json!([]), "{}", listed.text);
    }
}

#[tokio::test]
async fn a_question_is_answered_again_with_the_same_key() {
    const PREVIEW: &str = "/projects/{project}/bundles/preview";
    for world in worlds().await {
        let full = world.full_key().await;
        for port in [80, 81] {
            let text = format!("listeners {{ listener \"a\" {{ address \"127.0.0.1:{port}\" }} }}");
            let body = json!({"files": {"proxy.kdl": text}});
            let asked = world.send(&Method::POST, PREVIEW, &full, &body, &KEY).await;
            assert_eq!(asked.status, StatusCode::OK, "{}", asked.text);
        }
    }
}

#[tokio::test]
async fn a_repetition_needs_the_right_that_its_actor_has_now() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let (operator, user) = operator_of_two(&world).await;
        let body = sample(UPSTREAMS);
        let send = || world.send(&Method::POST, UPSTREAMS, &operator, &body, &KEY);
        assert_eq!(send().await.status, StatusCode::CREATED);
        assert_eq!(send().await.status, StatusCode::CREATED, "repeated");

        let member = format!("/orgs/{{org}}/members/{user}");
        let demoted = json!({"role": "reader"});
        let done = world
            .send(&Method::PATCH, &member, &admin, &demoted, &[])
            .await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.text);
        let refused = send().await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);

        let done = world
            .send(&Method::DELETE, &member, &admin, &Value::Null, &[])
            .await;
        assert_eq!(done.status, StatusCode::NO_CONTENT, "{}", done.text);
        let unseen = send().await;
        assert_eq!(unseen.status, StatusCode::NOT_FOUND, "{}", unseen.text);
    }
}

#[tokio::test]
async fn a_repetition_without_the_demanded_second_factor_is_refused() {
    for world in worlds().await {
        let operator = world.user(world.org, Role::Operator).await;
        let body = sample(UPSTREAMS);
        let send = || world.send(&Method::POST, UPSTREAMS, &operator, &body, &KEY);
        assert_eq!(send().await.status, StatusCode::CREATED);

        let mut tx = world.store.begin().await.unwrap();
        let found = tx.org_security(world.org).await.unwrap().unwrap();
        let mut security = found.value;
        security.second_factor = true;
        tx.update_org_security(world.org, security, found.version)
            .await
            .unwrap();
        tx.commit().await.unwrap();

        let refused = send().await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
        assert_eq!(refused.code(), "SECOND_FACTOR_REQUIRED");
    }
}

#[tokio::test]
async fn a_repeated_request_does_not_return_a_resource_deleted_meanwhile() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let made = world.post(UPSTREAMS, &admin, sample(UPSTREAMS)).await;
        let own = format!("{UPSTREAMS}/{}", made.text("id"));
        let body = sample(UPSTREAMS);
        let change = || world.send(&Method::PUT, &own, &admin, &body, &KEY);
        let delete = || world.send(&Method::DELETE, &own, &admin, &Value::Null, &KEY);

        assert_eq!(change().await.status, StatusCode::OK);
        assert_eq!(change().await.status, StatusCode::OK, "repeated");
        assert_eq!(delete().await.status, StatusCode::NO_CONTENT);

        let gone = change().await;
        assert_eq!(gone.status, StatusCode::CONFLICT, "{}", gone.text);
        assert!(gone.text.contains("deleted since"), "{}", gone.text);
        let repeated = delete().await;
        assert_eq!(repeated.status, StatusCode::NO_CONTENT, "{}", repeated.text);
    }
}

#[tokio::test]
async fn a_deleted_project_is_deleted_for_its_repetition() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let projects = "/orgs/{org}/projects";
        let made = world.post(projects, &admin, json!({"name": "short"})).await;
        let own = format!("/projects/{}", made.text("id"));
        let delete = || world.send(&Method::DELETE, &own, &admin, &Value::Null, &KEY);
        assert_eq!(delete().await.status, StatusCode::NO_CONTENT);
        assert_eq!(delete().await.status, StatusCode::NO_CONTENT, "repeated");
    }
}

#[tokio::test]
async fn of_concurrent_updates_of_a_version_one_succeeds() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let made = world.post(UPSTREAMS, &admin, sample(UPSTREAMS)).await;
        let own = format!("{UPSTREAMS}/{}", made.text("id"));
        let tag = [("if-match", made.header("etag"))];
        let bodies: Vec<Value> = (0..6).map(|_| sample(UPSTREAMS)).collect();
        let changes = bodies
            .iter()
            .map(|body| world.send(&Method::PUT, &own, &admin, body, &tag));
        let answers = join_all(changes).await;

        let mut statuses: Vec<u16> = answers.iter().map(|it| it.status.as_u16()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 412, 412, 412, 412, 412]);
        let mut lost = answers.iter().filter(|it| it.status != StatusCode::OK);
        assert!(lost.all(|it| it.code() == "PRECONDITION_FAILED"));
    }
}
