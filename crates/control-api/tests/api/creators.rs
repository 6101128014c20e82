//! Credentials that a person made end with the person's rights.

use crate::world::{Answer, Credential, World, sample, worlds};
use axum::http::{Method, StatusCode};
use control_domain::{Creator, Role, Tenant};
use control_wire::UserId;
use serde_json::{Value, json};
use uuid::Uuid;

const MEMBERS: &str = "/orgs/{org}/members";
const INVITATIONS: &str = "/orgs/{org}/invitations";
const TOKENS: &str = "/projects/{project}/enrolment-tokens";
const REGISTER: &str = "/projects/{project}/nodes/register";
const PROJECTS: &str = "/orgs/{org}/projects";

/// A person's loss of rights also affects the credentials that the person created.
struct Made {
    key: Answer,
    key_of_key: Answer,
    invitation: Answer,
    token: Answer,
}

impl Made {
    async fn by(world: &World, admin: &Credential) -> Self {
        let new = json!({"name": "deploy", "scopes": []});
        let key = world.post("/api-keys", admin, new).await;
        assert_eq!(key.status, StatusCode::CREATED, "{}", key.body);
        let by_key = bearer(&key);
        let new = json!({"name": "deploy 2", "scopes": []});
        let key_of_key = world.post("/api-keys", &by_key, new).await;
        let by_key = bearer(&key_of_key);
        let invitation = world.post(INVITATIONS, &by_key, sample(INVITATIONS)).await;
        let new = json!({"name": "rack", "max_uses": 100});
        let token = world.post(TOKENS, &by_key, new).await;
        assert_eq!(token.status, StatusCode::CREATED, "{}", token.body);
        Self {
            key,
            key_of_key,
            invitation,
            token,
        }
    }
}

fn bearer(made: &Answer) -> Credential {
    Credential::Bearer(made.text("secret"))
}

async fn set_role(world: &World, by: &Credential, user: &str, role: Option<&str>) {
    let path = format!("{MEMBERS}/{user}");
    let (method, body) = match role {
        Some(role) => (Method::PATCH, json!({"role": role})),
        None => (Method::DELETE, Value::Null),
    };
    let done = world.send(&method, &path, by, &body, &[]).await;
    assert!(done.status.is_success(), "{}", done.body);
}

async fn accept(world: &World, link: &Answer) -> Answer {
    let path = "/invitations/accept";
    world.post(path, &bearer(link), sample(path)).await
}

#[tokio::test]
async fn credentials_of_a_removed_administrator_end() {
    for world in worlds().await {
        let keeper = world.user(world.org, Role::Admin).await;
        let admin = world.user(world.org, Role::Admin).await;
        let id = world.get("/users/me", &admin).await.text("id");
        let made = Made::by(&world, &admin).await;
        set_role(&world, &keeper, &id, None).await;
        for key in [&made.key, &made.key_of_key] {
            let refused = world.get("/users/me", &bearer(key)).await;
            assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{}", refused.body);
            let path = format!("/api-keys/{}", key.text("id"));
            let seen = world.get(&path, &keeper).await;
            assert_eq!(seen.text("state"), "revoked", "{}", seen.body);
            assert!(seen.body["revoked_at"].is_string(), "{}", seen.body);
        }
        let joined = accept(&world, &made.invitation).await;
        assert_eq!(joined.status, StatusCode::UNAUTHORIZED, "{}", joined.body);
        let node = world
            .post(REGISTER, &bearer(&made.token), sample(REGISTER))
            .await;
        assert_eq!(node.status, StatusCode::UNAUTHORIZED, "{}", node.body);
        let tokens = world.get(TOKENS, &keeper).await;
        assert_eq!(tokens.body["items"][0]["state"], "revoked");
        // The log names each of them, and the one that removed the member.
        let log = world.get("/orgs/{org}/audit?limit=20", &keeper).await;
        let entries = log.body["items"].as_array().unwrap();
        let remover = world.get("/users/me", &keeper).await.text("id");
        for (action, subject) in [
            ("api_key.revoked", &made.key),
            ("api_key.revoked", &made.key_of_key),
            ("invitation.deleted", &made.invitation),
            ("enrolment_token.revoked", &made.token),
        ] {
            let id = subject.text("id");
            let entry = entries
                .iter()
                .find(|entry| entry["subject"] == id && entry["action"] == action);
            let entry = entry.unwrap_or_else(|| panic!("{action}: {}", log.body));
            assert!(entry["actor"].to_string().contains(&remover), "{entry}");
        }
        // A returning person has none of them.
        let back = world.post(INVITATIONS, &keeper, sample(INVITATIONS)).await;
        let secret = json!({"secret": back.text("secret")});
        let back = world.post("/invitations/join", &admin, secret).await;
        assert_eq!(back.status, StatusCode::CREATED, "{}", back.body);
        let still = world.get("/users/me", &bearer(&made.key)).await;
        assert_eq!(still.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn credentials_of_a_demoted_administrator_lose_rights() {
    for world in worlds().await {
        let keeper = world.user(world.org, Role::Admin).await;
        let admin = world.user(world.org, Role::Admin).await;
        let id = world.get("/users/me", &admin).await.text("id");
        let made = Made::by(&world, &admin).await;
        let key = bearer(&made.key_of_key);
        let project = async || world.post(PROJECTS, &key, sample(PROJECTS)).await.status;
        let register = async || {
            let token = bearer(&made.token);
            world.post(REGISTER, &token, sample(REGISTER)).await.status
        };
        set_role(&world, &keeper, &id, Some("operator")).await;
        let refused = world.get(MEMBERS, &key).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.body);
        assert!(
            refused.text.contains("created the API key"),
            "{}",
            refused.text
        );
        assert_eq!(project().await, StatusCode::CREATED);
        assert_eq!(register().await, StatusCode::CREATED);
        let joined = accept(&world, &made.invitation).await;
        assert_eq!(joined.status, StatusCode::UNAUTHORIZED, "{}", joined.body);
        let path = format!("/api-keys/{}", made.key.text("id"));
        let seen = world.get(&path, &keeper).await;
        assert_eq!(
            (seen.text("state"), seen.text("maker_role")),
            ("active".into(), "operator".into())
        );

        set_role(&world, &keeper, &id, Some("reader")).await;
        assert_eq!(project().await, StatusCode::FORBIDDEN);
        assert_eq!(register().await, StatusCode::UNAUTHORIZED);
        assert_eq!(world.get("/orgs/{org}", &key).await.status, StatusCode::OK);
        // Keys follow their creator up again; links and tokens have ended.
        set_role(&world, &keeper, &id, Some("admin")).await;
        assert_eq!(world.get(MEMBERS, &key).await.status, StatusCode::OK);
        assert_eq!(register().await, StatusCode::UNAUTHORIZED);
        let joined = accept(&world, &made.invitation).await;
        assert_eq!(joined.status, StatusCode::UNAUTHORIZED, "{}", joined.body);
    }
}

#[tokio::test]
async fn a_key_that_was_made_while_its_maker_was_removed_is_none() {
    for world in worlds().await {
        let mut key = world.key(Tenant::org(world.org), &[]);
        key.made_by = Some(Creator {
            user: UserId(Uuid::now_v7()),
            role: Some(Role::Admin),
        });
        let key = world.store_key(&key).await;
        let refused = world.get("/users/me", &key).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{}", refused.body);
    }
}
