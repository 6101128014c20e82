//! Credentials of nodes: keys, tokens, and forgeries.

use crate::forger::Forger;
use crate::world::{Answer, Credential, World, worlds};
use axum::http::StatusCode;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use control_domain::{Role, Tenant};
use control_wire::NodeId;
use serde_json::{Value, json};

async fn heartbeat(world: &World, by: &Credential) -> Answer {
    let body = json!({"health": {"cpu_percent": 1}});
    world.post("/nodes/{node}/heartbeat", by, body).await
}

async fn exchange(world: &World, by: &Credential) -> Answer {
    world.post("/nodes/{node}/token", by, Value::Null).await
}

#[tokio::test]
async fn a_key_is_exchanged_for_a_token_that_cannot_renew_itself() {
    for world in worlds().await {
        let issued = exchange(&world, &world.node_key).await;
        assert_eq!(issued.status, StatusCode::OK, "{}", issued.body);
        assert_eq!(issued.header("cache-control"), "no-store");
        let token = Credential::Bearer(issued.text("token"));
        let payload = issued.text("token");
        let payload = payload.split('.').nth(1).unwrap();
        let payload = URL_SAFE_NO_PAD.decode(payload).unwrap();
        let claims: Value = serde_json::from_slice(&payload).unwrap();
        let names: Vec<&String> = claims.as_object().unwrap().keys().collect();
        assert_eq!(names, ["exp", "kid", "org", "prj", "sub"]);
        assert_eq!(claims["sub"], json!(world.node));
        assert_eq!(claims["prj"], json!(world.project));
        assert_eq!(claims["org"], json!(world.org));
        let expires_at: jiff::Timestamp = issued.text("expires_at").parse().unwrap();
        assert_eq!(claims["exp"], expires_at.as_second());
        let hours = expires_at.duration_since(world.app.now()).as_secs_f64() / 3600.0;
        assert!((11.99..=12.0).contains(&hours), "{hours}");

        assert_eq!(heartbeat(&world, &token).await.status, StatusCode::OK);
        let renewed = exchange(&world, &token).await;
        assert_eq!(renewed.status, StatusCode::FORBIDDEN);
        let elsewhere = world.get("/orgs", &token).await;
        assert_eq!(elsewhere.status, StatusCode::FORBIDDEN);
        let key = Credential::NodeKey(issued.text("token"));
        assert_eq!(
            heartbeat(&world, &key).await.status,
            StatusCode::UNAUTHORIZED
        );
        let Credential::NodeKey(key) = &world.node_key else {
            unreachable!("a node has a key")
        };
        let bearer = Credential::Bearer(key.clone());
        assert_eq!(
            heartbeat(&world, &bearer).await.status,
            StatusCode::UNAUTHORIZED
        );
    }
}

#[tokio::test]
async fn forged_and_confused_tokens_get_the_same_refusal() {
    for world in worlds().await {
        let forger = Forger::new(&world).await;
        let good = Credential::Bearer(forger.claims(|_| {}));
        assert_eq!(heartbeat(&world, &good).await.status, StatusCode::OK);
        let (other_node, _) = world.new_node(world.tenant()).await;
        let unknown = Credential::Bearer("x".repeat(43));
        let mut expected = heartbeat(&world, &unknown).await;
        assert_eq!(expected.status, StatusCode::UNAUTHORIZED);
        expected.body["error"]["correlation_id"] = Value::Null;
        let mut forged = forger.by_other_signers(&world);
        forged.extend(forger.with_other_claims(&world, other_node));
        forged.extend(forger.of_other_forms());
        for (name, token) in forged {
            world.change_address();
            let mut answer = heartbeat(&world, &Credential::Bearer(token)).await;
            assert_eq!(answer.status, expected.status, "{name}");
            answer.body["error"]["correlation_id"] = Value::Null;
            assert_eq!(answer.body, expected.body, "{name}");
        }
    }
}

async fn rotate_node(world: &World, body: Value) -> Credential {
    let path = format!("/projects/{{project}}/nodes/{}/rotate-key", world.node);
    let operator = world.user(world.org, Role::Operator).await;
    let made = world.post(&path, &operator, body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    assert_eq!(made.header("cache-control"), "no-store");
    Credential::NodeKey(made.text("node_key"))
}

#[tokio::test]
async fn a_key_ends_when_the_one_after_it_is_used() {
    for world in worlds().await {
        let (ok, refused) = (StatusCode::OK, StatusCode::UNAUTHORIZED);
        let never_used = rotate_node(&world, json!({})).await;
        let next = rotate_node(&world, json!({})).await;
        assert_eq!(heartbeat(&world, &world.node_key).await.status, ok);
        let path = format!("/projects/{{project}}/nodes/{}", world.node);
        let full = world.full_key().await;
        let view = world.get(&path, &full).await;
        assert_eq!(view.body["key_rotation_pending"], true);
        assert_eq!(heartbeat(&world, &next).await.status, ok);
        assert_eq!(heartbeat(&world, &world.node_key).await.status, refused);
        assert_eq!(heartbeat(&world, &never_used).await.status, refused);
        assert_eq!(heartbeat(&world, &next).await.status, ok);
        let view = world.get(&path, &full).await;
        assert_eq!(view.body["key_rotation_pending"], false);
    }
}

#[tokio::test]
async fn a_leaked_key_ends_at_once_with_its_tokens() {
    for world in worlds().await {
        let forger = Forger::new(&world).await;
        let earlier = Credential::Bearer(forger.claims(|claims| claims.exp -= 5));
        let same_second = world.token(world.node, world.tenant()).await;
        for token in [&earlier, &same_second] {
            assert_eq!(heartbeat(&world, token).await.status, StatusCode::OK);
        }
        let next = rotate_node(&world, json!({"immediately": true})).await;
        for ended in [&world.node_key, &earlier, &same_second] {
            let answer = heartbeat(&world, ended).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        }
        let issued = exchange(&world, &next).await;
        let token = Credential::Bearer(issued.text("token"));
        assert_eq!(heartbeat(&world, &token).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_deactivated_signing_key_verifies_nothing() {
    const KEYS: &str = "/orgs/{org}/signing-keys";
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let first = world.get(KEYS, &admin).await.body["items"][0].clone();
        assert_eq!(first["state"], "active");
        let token = world.token(world.node, world.tenant()).await;
        let deactivate = format!("{KEYS}/{}/deactivate", first["id"].as_str().unwrap());
        let early = world.post(&deactivate, &admin, Value::Null).await;
        assert_eq!(
            early.code(),
            "WRONG_STATE",
            "an organization can always sign"
        );

        let made = world.post(KEYS, &admin, Value::Null).await;
        assert_eq!(
            (made.status, made.text("state").as_str()),
            (StatusCode::CREATED, "standby")
        );
        assert_eq!(made.body["endorsed_by"], first["id"]);
        let rotated = world
            .post(&format!("{KEYS}/rotate"), &admin, Value::Null)
            .await;
        assert_eq!(rotated.text("id"), made.text("id"), "the one that waited");
        assert_eq!(rotated.text("state"), "active");
        assert_eq!(
            heartbeat(&world, &token).await.status,
            StatusCode::OK,
            "retired"
        );
        let jwks = world.get("/orgs/{org}/jwks.json", &Credential::None).await;
        let keys = jwks.body["keys"].as_array().unwrap();
        assert_eq!(keys.len(), 2);
        let text = control_wire::endorsed_text(
            world.org,
            keys[1]["kid"].as_str().unwrap().parse().unwrap(),
            keys[1]["x"].as_str().unwrap(),
        );
        let signer = control_auth::PublicKey::from_text(keys[0]["x"].as_str().unwrap().to_owned());
        let endorsement = keys[1]["endorsement"].as_str().unwrap();
        assert_eq!(signer.verify(text.as_bytes(), endorsement), Ok(()));

        let ended = world.post(&deactivate, &admin, Value::Null).await;
        assert_eq!(ended.text("state"), "deactivated");
        let answer = heartbeat(&world, &token).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        let jwks = world.get("/orgs/{org}/jwks.json", &Credential::None).await;
        assert_eq!(jwks.body["keys"], json!([keys[1]]));
        assert_eq!(
            jwks.body["ended"],
            json!([keys[0]]),
            "it leads to the next one"
        );
        let renewed = world.token(world.node, world.tenant()).await;
        assert_eq!(heartbeat(&world, &renewed).await.status, StatusCode::OK);
        let again = world
            .post(&format!("{KEYS}/rotate"), &admin, Value::Null)
            .await;
        assert_ne!(
            again.text("id"),
            rotated.text("id"),
            "a new one: none waited"
        );
        let nowhere = format!("/orgs/{}/jwks.json", NodeId(uuid::Uuid::nil()));
        let missing = world.get(&nowhere, &Credential::None).await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn an_organization_has_few_keys_that_verify() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        for _ in 0..15 {
            let made = world
                .post("/orgs/{org}/signing-keys", &admin, Value::Null)
                .await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        }
        let many = world
            .post("/orgs/{org}/signing-keys", &admin, Value::Null)
            .await;
        assert_eq!(many.status, StatusCode::CONFLICT);
        let other = Tenant::org(world.other.org);
        let stranger = world.store_key(&world.key(other, &[])).await;
        let missing = world.get("/orgs/{org}/signing-keys", &stranger).await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND);
    }
}
