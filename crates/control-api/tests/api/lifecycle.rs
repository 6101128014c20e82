//! Life cycles of an installation's set-up, a key, and a project.

use crate::world::{Credential, World, sample, worlds};
use axum::http::{Method, StatusCode};
use control_app::{Call, NewInstallation};
use control_auth::Password;
use control_domain::{NewUser, Role, Scope, Tenant};
use jiff::SignedDuration;
use serde_json::{Value, json};

async fn delete(world: &World, path: &str, by: &Credential) -> crate::world::Answer {
    world
        .send(&Method::DELETE, path, by, &Value::Null, &[])
        .await
}

#[tokio::test]
async fn a_setup_link_works_once() {
    for world in worlds().await {
        let link = world.setup_link(SignedDuration::ZERO).await;
        let mut body = sample("/setup");
        body["password"] = json!("too short");
        let refused = world.post("/setup", &link, body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.body["error"]["details"][0]["field"], "password");

        let mut body = sample("/setup");
        body["project_name"] = json!("edge");
        body["api_key_name"] = json!("first");
        let made = world.post("/setup", &link, body.clone()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        let again = world.post("/setup", &link, body).await;
        assert_eq!(again.status, StatusCode::UNAUTHORIZED);

        let key = made.body["api_key"]["secret"].as_str().unwrap();
        let key = Credential::Bearer(key.to_owned());
        let project = made.body["project"]["id"].as_str().unwrap();
        let found = world.get(&format!("/projects/{project}"), &key).await;
        assert_eq!(found.body["name"], "edge");

        let cookie = made.header("set-cookie");
        let (pair, flags) = cookie.split_once(';').unwrap();
        assert_eq!(flags, " Path=/; HttpOnly; SameSite=Lax; Secure");
        let session = pair.strip_prefix("__Host-session=").unwrap().to_owned();
        let me = world.get("/users/me", &Credential::Session(session)).await;
        assert_eq!(me.body["kind"], "user");
        assert_eq!(me.body["instance_admin"], true);
        assert_eq!(me.body["memberships"][0]["role"], "admin");
        let link = world.app.bootstrap(world.app.now()).await.unwrap();
        assert!(link.is_none(), "there is a user");
    }
}

#[tokio::test]
async fn a_setup_link_is_refused_once_there_is_a_user() {
    for world in worlds().await {
        world.member(Role::Admin).await;
        // As if another replica had read the database before the user was created.
        let link = world.setup_link(SignedDuration::ZERO).await;
        let refused = world.post("/setup", &link, sample("/setup")).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{}", refused.body);
    }
}

#[tokio::test]
async fn a_setup_link_ends_with_the_first_administrator() {
    for world in worlds().await {
        let link = world.setup_link(SignedDuration::ZERO).await;
        let new = NewInstallation {
            org_name: "default".to_owned(),
            project_name: None,
            admin: NewUser {
                email: "ann@example.com".to_owned(),
                name: "Ann".to_owned(),
                password: Password::new("correct horse".to_owned()),
            },
            api_key_name: None,
        };
        let call = Call::system(world.app.now());
        world.app.create_admin(&call, &new).await.unwrap();
        let late = world.post("/setup", &link, sample("/setup")).await;
        assert_eq!(late.status, StatusCode::UNAUTHORIZED, "{}", late.body);
    }
}

#[tokio::test]
async fn a_name_of_a_key_or_a_token_is_taken_until_its_bearer_ends() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let tokens = "/projects/{project}/enrolment-tokens";
        let in_project = json!({"name": "deploy", "project": world.project});
        for (path, new) in [
            ("/api-keys", json!({"name": "deploy"})),
            ("/api-keys", in_project),
            (tokens, json!({"name": "deploy"})),
        ] {
            let post = async || world.post(path, &admin, new.clone()).await;
            let (one, other) = tokio::join!(post(), post());
            let (made, refused) = if one.status == StatusCode::CREATED {
                (one, other)
            } else {
                (other, one)
            };
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
            assert_eq!(refused.code(), "CONFLICT", "{path}: {}", refused.text);
            let mut second = new.clone();
            second["name"] = json!("second");
            let second = world.post(path, &admin, second).await;
            let second = format!("{path}/{}", second.text("id"));
            let rename = async |name: &str| {
                let name = json!({"name": name});
                let sent = world.send(&Method::PATCH, &second, &admin, &name, &[]);
                sent.await.status
            };
            assert_eq!(rename("deploy").await, StatusCode::CONFLICT, "{path}");
            assert_eq!(rename("second").await, StatusCode::OK, "its own name");
            let revoke = format!("{path}/{}/revoke", made.text("id"));
            let revoked = world.post(&revoke, &admin, Value::Null).await;
            assert_eq!(revoked.status, StatusCode::OK, "{}", revoked.text);
            assert_eq!(post().await.status, StatusCode::CREATED, "{path}");
        }
    }
}

#[tokio::test]
async fn a_key_is_created_used_revoked_and_deleted() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let body = json!({"name": "deploy", "scopes": ["nodes:read", "api_keys:admin"]});
        let made = world.post("/api-keys", &admin, body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        assert_eq!(made.text("state"), "active");
        let path = format!("/api-keys/{}", made.text("id"));
        let key = Credential::Bearer(made.text("secret"));
        let me = world.get("/users/me", &key).await;
        assert_eq!(me.body["scopes"], json!(["nodes:read", "api_keys:admin"]));

        let early = delete(&world, &path, &admin).await;
        assert_eq!(
            (early.status, early.code()),
            (StatusCode::CONFLICT, "WRONG_STATE")
        );
        let revoked = world
            .post(&format!("{path}/revoke"), &admin, Value::Null)
            .await;
        assert_eq!(revoked.text("state"), "revoked");
        let refused = world.get("/users/me", &key).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
        let twice = world
            .post(&format!("{path}/revoke"), &admin, Value::Null)
            .await;
        assert_eq!(twice.code(), "WRONG_STATE");
        assert_eq!(
            delete(&world, &path, &admin).await.status,
            StatusCode::NO_CONTENT
        );
        assert_eq!(world.get(&path, &admin).await.status, StatusCode::NOT_FOUND);
        assert_eq!(world.app.verify_audit().await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_key_makes_no_key_with_more_than_it_has() {
    for world in worlds().await {
        let (org, project) = (Tenant::org(world.org), world.tenant());
        let narrow = world.key(org, &[Scope::ApiKeysAdmin, Scope::NodesRead]);
        let narrow = world.store_key(&narrow).await;
        let limited = world.store_key(&world.key(project, &[])).await;
        let forbidden = StatusCode::FORBIDDEN;
        let cases = [
            (
                &narrow,
                json!({"name": "a", "scopes": ["nodes:read"]}),
                StatusCode::CREATED,
            ),
            (
                &narrow,
                json!({"name": "a", "scopes": ["nodes:write"]}),
                forbidden,
            ),
            (&narrow, json!({"name": "a"}), forbidden),
            (&narrow, json!({"name": "a", "scopes": []}), forbidden),
            (
                &narrow,
                json!({"name": "a", "scopes": ["nodes:read"], "project": world.project}),
                StatusCode::CREATED,
            ),
            (
                &narrow,
                json!({"name": "a", "project": world.other.project}),
                StatusCode::NOT_FOUND,
            ),
            (
                &narrow,
                json!({"name": "a", "org": world.other.org}),
                StatusCode::NOT_FOUND,
            ),
            (&limited, json!({"name": "b"}), StatusCode::CREATED),
            (
                &limited,
                json!({"name": "a", "project": world.other.project}),
                StatusCode::NOT_FOUND,
            ),
        ];
        for (by, body, status) in cases {
            let answer = world.post("/api-keys", by, body.clone()).await;
            assert_eq!(answer.status, status, "{body}: {}", answer.body);
        }
        let listed = world.get("/api-keys", &limited).await;
        let items = listed.body["items"].as_array().unwrap();
        assert!(
            items
                .iter()
                .all(|key| key["project"] == json!(world.project))
        );
        assert!(!items.is_empty());
    }
}

#[tokio::test]
async fn a_project_is_created_renamed_and_deleted() {
    for world in worlds().await {
        let operator = world.user(world.org, Role::Operator).await;
        let admin = world.user(world.org, Role::Admin).await;
        let body = json!({"name": "core"});
        let made = world
            .post("/orgs/{org}/projects", &operator, body.clone())
            .await;
        assert_eq!(made.status, StatusCode::CREATED);
        let taken = world.post("/orgs/{org}/projects", &operator, body).await;
        assert_eq!(
            (taken.status, taken.code()),
            (StatusCode::CONFLICT, "CONFLICT")
        );
        let path = format!("/projects/{}", made.text("id"));
        let refused = delete(&world, &path, &operator).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        assert_eq!(
            delete(&world, &path, &admin).await.status,
            StatusCode::NO_CONTENT
        );
        let gone = delete(&world, &path, &admin).await;
        assert_eq!(gone.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn an_organization_is_seen_by_its_members() {
    for world in worlds().await {
        let founder = world.instance_admin().await;
        let made = world
            .post("/orgs", &founder, json!({"name": "third"}))
            .await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        let listed = world.get("/orgs", &founder).await;
        assert_eq!(listed.body["items"].as_array().unwrap().len(), 2);
        let path = format!("/orgs/{}", made.text("id"));
        let stranger = world.user(world.org, Role::Admin).await;
        assert_eq!(
            world.get(&path, &stranger).await.status,
            StatusCode::NOT_FOUND
        );
        let key = world.full_key().await;
        let own = world.get("/orgs", &key).await;
        assert_eq!(own.body["items"][0]["id"], json!(world.org));
        assert_eq!(own.body["next_cursor"], Value::Null);
    }
}
