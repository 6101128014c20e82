//! Bundles with certificates that nodes cannot obtain.

use crate::world::{Credential, World, sample, worlds};
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

const BUNDLES: &str = "/projects/{project}/bundles";
const CERTIFICATES: &str = "/projects/{project}/certificates";

async fn certificate(world: &World, by: &Credential) -> String {
    let made = world.post(CERTIFICATES, by, sample(CERTIFICATES)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    made.text("id")
}

/// A listener with TLS by the key of one certificate; with the chain of each of `chains`.
fn bundle(named: &str, key: &str, chains: &[&str]) -> Value {
    let config = format!(
        "listeners {{ listener \"a\" {{ address \"127.0.0.1:8443\"; protocol \"https\"\n\
         tls {{ cert-file \"certificates/{named}.pem\"; key-file \"certificates/{key}.key\" }} }} }}"
    );
    let mut files = json!({ "proxy.kdl": config });
    for chain in chains {
        files[format!("certificates/{chain}.pem")] = json!("");
    }
    json!({"name": "edge", "files": files})
}

#[tokio::test]
async fn a_bundle_with_a_certificate_that_does_not_exist_is_rejected_when_it_is_made() {
    for world in worlds().await {
        let full = world.full_key().await;
        let known = certificate(&world, &full).await;
        let other = Uuid::now_v7().to_string();
        let no_certificate =
            format!("the project has no certificate for `certificates/{other}.pem`");
        let no_chain = format!("the certificate `certificates/{other}.pem` is not in the bundle");
        let no_key = format!(
            "the private key `certificates/{other}.key` is of no certificate in the bundle"
        );
        for (new, expected) in [
            (bundle(&known, &known, &[&known]), vec![]),
            (
                bundle(&other, &other, &[&other]),
                vec![(2, &no_certificate), (2, &no_key)],
            ),
            (bundle(&other, &known, &[&known]), vec![(2, &no_chain)]),
            (bundle(&known, &other, &[&known]), vec![(2, &no_key)]),
            (
                bundle(&known, &known, &[&known, &other]),
                vec![(1, &no_certificate)],
            ),
        ] {
            let made = world.post(BUNDLES, &full, new).await;
            let state = if expected.is_empty() {
                "signed"
            } else {
                "rejected"
            };
            assert_eq!(made.text("state"), state, "{}", made.body);
            let found = made.body["diagnostics"].as_array().cloned();
            let found = found.unwrap_or_default().into_iter();
            let errors = found.filter(|one| one["severity"] == "error");
            let errors: Vec<Value> = errors
                .map(|one| json!([one["code"], one["line"], one["message"]]))
                .collect();
            let expected: Vec<Value> = expected
                .iter()
                .map(|(line, message)| json!(["missing-file", line, message]))
                .collect();
            assert_eq!(errors, expected, "{}", made.body);
        }
    }
}

#[tokio::test]
async fn a_bundle_whose_certificate_was_deleted_is_ordered_for_no_node() {
    for world in worlds().await {
        let full = world.full_key().await;
        let known = certificate(&world, &full).await;
        let made = world.post(BUNDLES, &full, bundle(&known, &known, &[&known]));
        let made = made.await.text("id");
        let path = format!("{CERTIFICATES}/{known}");
        let deleted = world.send(&Method::DELETE, &path, &full, &Value::Null, &[]);
        let deleted = deleted.await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.body);
        let rollout = json!({
            "bundle": made, "nodes": [world.node], "skip_gate": true, "batch_count": 1,
            "soak_secs": 0, "deadline_secs": 60,
        });
        let assign = format!("{BUNDLES}/{made}/assign");
        for (path, body) in [
            ("/projects/{project}/rollouts", rollout),
            (&*assign, json!({"nodes": [world.node]})),
        ] {
            let refused = world.post(path, &full, body).await;
            assert_eq!(
                refused.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{}",
                refused.body
            );
            let text = refused.body.to_string();
            assert!(
                text.contains("names a certificate that was deleted"),
                "{text}"
            );
        }
    }
}
