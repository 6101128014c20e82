//! Quotas: an organization at its limit gets errors, the rest is unaffected.

use crate::world::{Credential, World, sample, worlds};
use axum::http::{Method, StatusCode};
use control_domain::{Quotas, Tenant};
use serde_json::Value;

const NONE: Quotas = Quotas {
    projects: 1,
    nodes: 1,
    api_keys: 1,
    bundles: 0,
    archive_bytes: 0,
    webhooks: 0,
};

/// Routes that create objects with a quota, and the end of the error message.
const CREATED: &[(&str, &str)] = &[
    (
        "/orgs/{org}/projects",
        "projects - an organization may have 1",
    ),
    (
        "/projects/{project}/nodes/register",
        "nodes - an organization may have 1",
    ),
    ("/api-keys", "API keys - an organization may have 1"),
    (
        "/projects/{project}/bundles",
        "bundles - an organization may have 0",
    ),
    (
        "/projects/{project}/webhooks",
        "webhooks - an organization may have 0",
    ),
];

async fn rows(world: &World, by: &Credential) -> Value {
    let mut found = Vec::new();
    for path in [
        "/orgs/{org}/projects",
        "/projects/{project}/nodes",
        "/api-keys",
    ] {
        found.push(world.get(path, by).await.body);
    }
    Value::from(found)
}

#[tokio::test]
async fn an_organization_has_no_more_than_its_quotas() {
    for mut world in worlds().await {
        let key = world.full_key().await;
        world.set_quotas(NONE);
        let before = rows(&world, &key).await;
        for (path, message) in CREATED {
            let answer = world.post(path, &key, sample(path)).await;
            assert_eq!(
                answer.status,
                StatusCode::CONFLICT,
                "{path} {}",
                answer.body
            );
            assert_eq!(answer.code(), "QUOTA_EXCEEDED");
            let error_message = answer.body["error"]["message"].as_str().unwrap();
            assert_eq!(error_message, format!("Quota exceeded: {message}"));
        }
        assert_eq!(rows(&world, &key).await, before, "nothing is created");
        world.set_quotas(Quotas { bundles: 1, ..NONE });
        let path = "/projects/{project}/bundles";
        let answer = world.post(path, &key, sample(path)).await;
        let error_message = answer.body["error"]["message"].as_str().unwrap();
        assert_eq!(
            error_message,
            "Quota exceeded: bytes of archives - an organization may have 0"
        );
        // Deletion makes room, and each organization has its own quotas.
        world.set_quotas(Quotas { nodes: 2, ..NONE });
        // The former replica reserved tokens of the first key's rate limit.
        let key = world.full_key().await;
        let path = "/projects/{project}/nodes/register";
        let made = world.post(path, &key, sample(path)).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        let second = world.post(path, &key, sample(path)).await;
        assert_eq!(second.code(), "QUOTA_EXCEEDED");
        let node = format!("/projects/{{project}}/nodes/{}", made.text("node_id"));
        let gone = world.send(&Method::DELETE, &node, &key, &Value::Null, &[]);
        assert_eq!(gone.await.status, StatusCode::NO_CONTENT);
        let third = world.post(path, &key, sample(path)).await;
        assert_eq!(third.status, StatusCode::CREATED, "{}", third.body);
        let of_other = world.key(Tenant::org(world.other.org), &[]);
        let of_other = world.store_key(&of_other).await;
        let other = format!("/projects/{}/nodes/register", world.other.project.unwrap());
        let made = world.post(&other, &of_other, sample(path)).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    }
}
