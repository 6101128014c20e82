//! Services, upstreams and certificates.

use crate::world::{Answer, Credential, World, certificate, sample, worlds};
use axum::http::{Method, StatusCode};
use control_domain::Tenant;
use control_testkit::Database;
use serde_json::{Value, json};
use uuid::Uuid;

const UPSTREAMS: &str = "/projects/{project}/upstreams";
const SERVICES: &str = "/projects/{project}/services";
const CERTIFICATES: &str = "/projects/{project}/certificates";

async fn make(world: &World, by: &Credential, path: &str, body: Value) -> Answer {
    let made = world.post(path, by, body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    made
}

async fn put(world: &World, path: &str, by: &Credential, body: &Value, tag: &str) -> Answer {
    let fields = [("if-match", tag)];
    world.send(&Method::PUT, path, by, body, &fields).await
}

async fn delete(world: &World, path: &str, by: &Credential) -> Answer {
    world
        .send(&Method::DELETE, path, by, &Value::Null, &[])
        .await
}

#[tokio::test]
async fn writes_are_read_back_and_an_older_version_does_not_overwrite() {
    for world in worlds().await {
        let full = world.full_key().await;
        let body = json!({
            "name": "app", "load_balancing": "least_connections",
            "targets": [{"address": "10.0.0.1:443", "weight": 3}, {"address": "[::1]:443"}],
            "tls": {"server_name": "inner.example.com"},
        });
        let made = make(&world, &full, UPSTREAMS, body.clone()).await;
        let path = format!("{UPSTREAMS}/{}", made.text("id"));
        let found = world.get(&path, &full).await;
        assert_eq!(found.body, made.body);
        assert_eq!(
            found.body["targets"][1],
            json!({"address": "[::1]:443", "weight": 1})
        );
        assert_eq!(found.header("etag"), "\"1\"");
        let plain = json!({"name": "app", "targets": [{"address": "10.0.0.9:80"}]});
        let stale = put(&world, &path, &full, &plain, "\"2\"").await;
        assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
        let changed = put(&world, &path, &full, &plain, "\"1\"").await;
        assert_eq!(changed.status, StatusCode::OK, "{}", changed.body);
        assert_eq!(changed.header("etag"), "\"2\"");
        assert_eq!(changed.body["tls"], Value::Null);
        assert_eq!(changed.body["load_balancing"], "round_robin");
        assert_eq!(changed.body["targets"].as_array().unwrap().len(), 1);
        let listed = world.get(UPSTREAMS, &full).await;
        assert_eq!(listed.body["items"][0], changed.body);
        let taken = world.post(UPSTREAMS, &full, body).await;
        assert_eq!(taken.code(), "CONFLICT");
    }
}

#[tokio::test]
async fn a_resource_in_use_is_not_deleted() {
    for world in worlds().await {
        let full = world.full_key().await;
        let upstream = make(&world, &full, UPSTREAMS, sample(UPSTREAMS)).await;
        let certificate = make(&world, &full, CERTIFICATES, sample(CERTIFICATES)).await;
        let body = json!({
            "name": "app", "path_prefix": "/api", "priority": 7,
            "upstream": upstream.text("id"), "certificate": certificate.text("id"),
        });
        let service = make(&world, &full, SERVICES, body).await;
        let upstream = format!("{UPSTREAMS}/{}", upstream.text("id"));
        let certificate = format!("{CERTIFICATES}/{}", certificate.text("id"));
        for path in [&upstream, &certificate] {
            let refused = delete(&world, path, &full).await;
            assert_eq!(refused.code(), "CONFLICT", "{}", refused.body);
        }
        let service = format!("{SERVICES}/{}", service.text("id"));
        for path in [&service, &upstream, &certificate] {
            let gone = delete(&world, path, &full).await;
            assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.body);
            let missing = world.get(path, &full).await;
            assert_eq!(missing.status, StatusCode::NOT_FOUND);
        }
    }
}

#[tokio::test]
async fn a_service_refers_to_its_own_project_only() {
    for world in worlds().await {
        let full = world.full_key().await;
        let stranger = world
            .store_key(&world.key(Tenant::org(world.other.org), &[]))
            .await;
        let other = world.other.project.unwrap().to_string();
        let elsewhere = |path: &str| path.replace("{project}", &other);
        let foreign_upstream = sample(UPSTREAMS);
        let foreign = make(&world, &stranger, &elsewhere(UPSTREAMS), foreign_upstream).await;
        let own = make(&world, &full, UPSTREAMS, sample(UPSTREAMS)).await;
        let chain = sample(CERTIFICATES);
        let chain = make(&world, &stranger, &elsewhere(CERTIFICATES), chain).await;
        let bodies = [
            (
                json!({"name": "a", "upstream": foreign.text("id")}),
                "upstream",
            ),
            (
                json!({
                    "name": "a", "upstream": own.text("id"), "certificate": chain.text("id"),
                }),
                "certificate",
            ),
            (
                json!({"name": "a", "upstream": own.text("id"), "path_prefix": "a"}),
                "path_prefix",
            ),
            (
                json!({"name": "a", "upstream": own.text("id"), "host": "a b"}),
                "host",
            ),
        ];
        for (body, field) in bodies {
            let refused = world.post(SERVICES, &full, body).await;
            let found = &refused.body["error"]["details"][0]["field"];
            assert_eq!(found, field, "{}", refused.body);
        }
        // Below its own project's path, a resource of another project does not exist.
        let path = format!("{UPSTREAMS}/{}", foreign.text("id"));
        let missing = world.get(&path, &full).await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn a_private_key_is_stored_and_never_returned() {
    for world in worlds().await {
        let full = world.full_key().await;
        let body = sample(CERTIFICATES);
        let key = body["private_key_pem"].as_str().unwrap().to_owned();
        let secret = key.lines().nth(1).unwrap();
        let made = make(&world, &full, CERTIFICATES, body.clone()).await;
        assert_eq!(made.body["hosts"], json!(["a.example.com"]));
        assert_eq!(made.text("state"), "valid");
        let path = format!("{CERTIFICATES}/{}", made.text("id"));
        let id = made.text("id").parse().unwrap();
        let mut tx = world.store.read().await.unwrap();
        let stored = tx.certificate(id).await.unwrap().unwrap().value.secret;
        let sealed = tx.secret(stored).await.unwrap().unwrap().sealed;
        assert!(!sealed.text.contains(secret));
        drop(tx);

        let (chain, other_key) = certificate();
        let renewed = json!({"name": "new", "chain_pem": chain, "private_key_pem": other_key});
        let changed = put(&world, &path, &full, &renewed, "*").await;
        assert_eq!(changed.status, StatusCode::OK, "{}", changed.body);
        assert_ne!(changed.text("fingerprint"), made.text("fingerprint"));
        let mut tx = world.store.read().await.unwrap();
        assert!(tx.secret(stored).await.unwrap().is_none(), "forgotten");
        drop(tx);

        let mismatched = json!({"name": "a", "chain_pem": chain, "private_key_pem": key});
        let refused = put(&world, &path, &full, &mismatched, "*").await;
        let field = &refused.body["error"]["details"][0]["field"];
        assert_eq!(field, "private_key_pem");
        let listed = world.get(CERTIFICATES, &full).await;
        let found = world.get(&path, &full).await;
        for answer in [made, changed, refused, listed, found] {
            let text = String::from_utf8_lossy(&answer.bytes);
            assert!(
                !text.contains(secret) && !text.contains("PRIVATE"),
                "{text}"
            );
        }
    }
}

#[tokio::test]
async fn a_deleted_project_takes_its_services_and_keys_along() {
    for world in worlds().await {
        let full = world.full_key().await;
        let all = "/orgs/{org}/projects";
        let project = make(&world, &full, all, sample(all)).await.text("id");
        let path_of = |path: &str| path.replace("{project}", &project);
        let upstream = make(&world, &full, &path_of(UPSTREAMS), sample(UPSTREAMS)).await;
        let certificate = make(&world, &full, &path_of(CERTIFICATES), sample(CERTIFICATES)).await;
        let service = json!({
            "name": "a", "upstream": upstream.text("id"), "certificate": certificate.text("id"),
        });
        make(&world, &full, &path_of(SERVICES), service).await;
        let body = sample("/projects/{project}/bundles");
        make(&world, &full, &path_of("/projects/{project}/bundles"), body).await;
        let id = certificate.text("id").parse().unwrap();
        let mut tx = world.store.read().await.unwrap();
        let secret = tx.certificate(id).await.unwrap().unwrap().value.secret;
        drop(tx);
        let gone = delete(&world, &path_of("/projects/{project}"), &full).await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.body);
        let mut tx = world.store.read().await.unwrap();
        assert!(tx.secret(secret).await.unwrap().is_none());
        assert!(tx.certificate(id).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn an_upstream_and_a_service_have_the_settings_of_a_configuration() {
    const UPSTREAMS: &str = "/projects/{project}/upstreams";
    const SERVICES: &str = "/projects/{project}/services";
    for world in worlds().await {
        let key = world.full_key().await;
        let settings = json!({
            "health-check": {"type": ["http", {"path": "/healthz"}]},
            "timeouts": {"connect-secs": 2},
        });
        let with = |settings: &Value| {
            let targets = json!([{"address": "10.0.0.1:80"}]);
            json!({"name": "u", "targets": targets, "settings": settings})
        };
        for (wrong, reason) in [
            (json!({"timeouts": {"conect-secs": 2}}), "conect-secs"),
            (json!({"timeouts": {"connect-secs": -1}}), "connect-secs"),
            (json!({"tls": {}}), "`tls` has a separate field"),
            (json!({"protocol": null}), "`protocol` is null"),
        ] {
            let refused = world.post(UPSTREAMS, &key, with(&wrong)).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}");
            let detail = &refused.body["error"]["details"][0];
            assert_eq!(detail["field"], "settings", "{detail}");
            assert!(
                detail["reason"].as_str().unwrap().contains(reason),
                "{detail}"
            );
        }
        let made = world.post(UPSTREAMS, &key, with(&settings)).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        assert_eq!(made.body["settings"], settings);
        let policies = json!({"policies": {"rate-limit": {"requests-per-second": 10}}});
        let service = json!({"name": "s", "upstream": made.body["id"], "settings": policies});
        let service = world.post(SERVICES, &key, service).await;
        assert_eq!(service.body["settings"], policies, "{}", service.body);
        let bundle = json!({"name": "b", "services": {"http": "0.0.0.0:8080"}});
        let bundle = world
            .post("/projects/{project}/bundles", &key, bundle)
            .await;
        assert_eq!(bundle.body["state"], "signed", "{}", bundle.body);
    }
}

#[tokio::test]
async fn certificates_are_found_by_their_end() {
    for world in worlds().await {
        let key = world.full_key().await;
        let made = world.post(CERTIFICATES, &key, sample(CERTIFICATES)).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        for (query, count) in [
            ("expires_before=2000-01-01T00:00:00Z", 0),
            ("expires_before=9000-01-01T00:00:00Z", 1),
            ("name=nothing", 0),
            ("name=*", 1),
        ] {
            let found = world
                .get(&format!("{CERTIFICATES}?{query}"), &key)
                .await
                .body;
            assert_eq!(
                found["items"].as_array().map(Vec::len),
                Some(count),
                "{query} {found}"
            );
        }
    }
}

#[tokio::test]
async fn every_field_that_a_rule_refuses_is_reported() {
    let world = World::new(Database::sqlite()).await;
    let key = world.made_key(&[]).await;
    let gate = json!({"min_requests": 0, "max_p99_percent": 1});
    let cases = [
        (
            "/projects/{project}/upstreams",
            json!({"name": "", "targets": [{"address": "a"}], "tls": {"server_name": ""}}),
            &["name", "targets.address", "tls.server_name"][..],
        ),
        (
            "/projects/{project}/enrolment-tokens",
            json!({"name": "", "max_uses": 0, "labels": {"A": "b"}}),
            &["name", "max_uses", "labels"],
        ),
        (
            "/projects/{project}/rollouts",
            json!({"bundle": Uuid::nil(), "nodes": [world.node], "batch_count": 0,
                   "deadline_secs": 0, "gate": gate}),
            &[
                "batch_count",
                "deadline_secs",
                "gate.min_requests",
                "gate.max_p99_percent",
            ],
        ),
    ];
    for (path, body, fields) in cases {
        let answer = world.post(path, &key, body).await;
        assert_eq!(
            answer.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{}",
            answer.body
        );
        let details = answer.body["error"]["details"].as_array().unwrap();
        let message: Vec<&str> = details
            .iter()
            .filter_map(|detail| detail["field"].as_str())
            .collect();
        assert_eq!(message, fields, "{path}: {}", answer.body);
    }
}
