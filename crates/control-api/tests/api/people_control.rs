//! Decisions of administrators about members' sign-in, and their effect on sessions.

use crate::people::cookies;
use crate::world::{Answer, Credential, PASSWORD, World, worlds};
use axum::http::{Method, StatusCode};
use control_domain::{Membership, Role};
use control_wire::UserId;
use jiff::SignedDuration;
use serde_json::{Value, json};

async fn delete(world: &World, path: &str, by: &Credential) -> Answer {
    world
        .send(&Method::DELETE, path, by, &Value::Null, &[])
        .await
}

async fn put(world: &World, path: &str, by: &Credential, body: Value) -> Answer {
    world.send(&Method::PUT, path, by, &body, &[]).await
}

fn member(user: UserId) -> String {
    format!("/orgs/{{org}}/members/{user}")
}

/// Creates a link for a new password; returns its secret.
async fn reset_link(world: &World, by: &Credential, user: UserId) -> String {
    let path = format!("{}/reset-password", member(user));
    let made = world.post(&path, by, Value::Null).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.body);
    assert_eq!(made.header("cache-control"), "no-store");
    made.text("secret")
}

async fn use_link(world: &World, secret: &str, password: &str) -> Answer {
    let body = json!({"secret": secret, "password": password});
    world
        .post("/password-resets/use", &Credential::None, body)
        .await
}

/// Adds the user to the other organization, too.
async fn share(world: &World, user: UserId) {
    let mut tx = world.store.begin().await.unwrap();
    let membership = Membership {
        org: world.other.org,
        user,
        role: Role::Reader,
        created_at: world.app.now(),
    };
    tx.insert_membership(membership).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_link_sets_another_password_once_and_ends_all_sessions() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let person = world.person(world.org, Role::Reader).await;
        let session = world.sign_in(&person).await.session;
        let replaced = reset_link(&world, &admin, person.id).await;
        let link = reset_link(&world, &admin, person.id).await;
        let old = use_link(&world, &replaced, "another good one").await;
        assert_eq!(
            old.status,
            StatusCode::UNAUTHORIZED,
            "another one replaced it"
        );
        let weak = use_link(&world, &link, "1234567890123").await;
        assert_eq!(weak.status, StatusCode::UNPROCESSABLE_ENTITY);
        let used = use_link(&world, &link, "another good one").await;
        assert_eq!(used.status, StatusCode::NO_CONTENT, "{}", used.body);
        let twice = use_link(&world, &link, "a third good one").await;
        assert_eq!(twice.status, StatusCode::UNAUTHORIZED);
        let ended = world.get("/users/me", &session).await;
        assert_eq!(ended.status, StatusCode::UNAUTHORIZED);
        let before = world.try_sign_in(&person.email, PASSWORD).await;
        assert_eq!(before.status, StatusCode::UNAUTHORIZED);
        // Many wrong passwords do not block the browser in which the link was opened.
        for _ in 0..12 {
            world.change_address();
            world
                .try_sign_in(&person.email, "wrong horse battery")
                .await;
        }
        let browser = cookies(&used).browser;
        let after = world
            .try_sign_in_from(&person.email, "another good one", &browser)
            .await;
        assert_eq!(after.status, StatusCode::OK, "{}", after.body);
        assert_eq!(world.audited("password.reset").await.len(), 1);
        assert_eq!(world.audited("password.reset_link_created").await.len(), 2);
    }
}

#[tokio::test]
async fn an_administrator_does_not_become_a_member_of_other_organizations() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let full = world.full_key().await;
        let shared = world.person(world.org, Role::Reader).await;
        world.give_totp(shared.id).await;
        share(&world, shared.id).await;
        for by in [&admin, &full] {
            for (method, path) in [
                (
                    Method::POST,
                    format!("{}/reset-password", member(shared.id)),
                ),
                (Method::DELETE, format!("{}/totp", member(shared.id))),
                (Method::GET, format!("{}/sessions", member(shared.id))),
                (Method::DELETE, format!("{}/sessions", member(shared.id))),
            ] {
                let answer = world.send(&method, &path, by, &Value::Null, &[]).await;
                assert_eq!(answer.status, StatusCode::FORBIDDEN, "{method} {path}");
            }
        }
        let above = world.instance_admin().await;
        reset_link(&world, &above, shared.id).await;
        let path = format!("{}/totp", member(shared.id));
        let reset = delete(&world, &path, &above).await;
        assert_eq!(reset.status, StatusCode::NO_CONTENT, "{}", reset.body);
        let id: UserId = world
            .get("/users/me", &above)
            .await
            .text("id")
            .parse()
            .unwrap();
        let path = format!("{}/reset-password", member(id));
        let answer = world.post(&path, &admin, Value::Null).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "the installation's");
    }
}

#[tokio::test]
async fn a_link_of_before_another_membership_ends_with_it() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let person = world.person(world.org, Role::Reader).await;
        let link = reset_link(&world, &admin, person.id).await;
        share(&world, person.id).await;
        let used = use_link(&world, &link, "another good one").await;
        assert_eq!(used.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn a_link_ends_with_the_role_of_its_maker() {
    for world in worlds().await {
        let first = world.user(world.org, Role::Admin).await;
        let second = world.user(world.org, Role::Admin).await;
        let id = world.get("/users/me", &first).await.text("id");
        let person = world.person(world.org, Role::Reader).await;
        let link = reset_link(&world, &first, person.id).await;
        let demoted = json!({"role": "operator"});
        let path = member(id.parse().unwrap());
        let done = world
            .send(&Method::PATCH, &path, &second, &demoted, &[])
            .await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.body);
        let used = use_link(&world, &link, "another good one").await;
        assert_eq!(used.status, StatusCode::UNAUTHORIZED);
        // The role is restored, the link is not.
        let admin = json!({"role": "admin"});
        let done = world
            .send(&Method::PATCH, &path, &second, &admin, &[])
            .await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.body);
        let used = use_link(&world, &link, "another good one").await;
        assert_eq!(used.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn a_second_factor_that_was_reset_ends_sessions_and_is_said() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let person = world.person(world.org, Role::Reader).await;
        let session = world.sign_in(&person).await.session;
        let (_, codes, session) = world.enable_totp(&session).await;
        let path = format!("{}/totp", member(person.id));
        let reset = delete(&world, &path, &admin).await;
        assert_eq!(reset.status, StatusCode::NO_CONTENT, "{}", reset.body);
        let ended = world.get("/users/me", &session).await;
        assert_eq!(ended.status, StatusCode::UNAUTHORIZED);
        let twice = delete(&world, &path, &admin).await;
        assert_eq!(twice.status, StatusCode::NOT_FOUND);
        let session = world.sign_in(&person).await.session;
        let reported = world.get("/users/me/totp", &session).await;
        assert_eq!(reported.body["enabled"], false);
        assert!(reported.body["reset_at"].is_string(), "{}", reported.body);
        let (_, _, session) = world.enable_totp(&session).await;
        let reported = world.get("/users/me/totp", &session).await;
        assert!(reported.body["reset_at"].is_null(), "{}", reported.body);
        let reset = world.audited("totp.reset").await;
        assert_eq!(reset[0]["subject"], person.id.to_string());
        // Earlier recovery codes are void.
        let sign_in = world.pending(&person).await;
        let body = json!({"sign_in": sign_in, "code": codes[0]});
        let old = world
            .post("/sign-in/recovery", &Credential::None, body)
            .await;
        assert_eq!(old.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn an_administrator_sees_and_ends_the_sessions_of_a_member() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let person = world.person(world.org, Role::Reader).await;
        let session = world.sign_in(&person).await.session;
        let path = format!("{}/sessions", member(person.id));
        let listed = world.get(&path, &admin).await;
        assert_eq!(listed.body["items"].as_array().unwrap().len(), 1);
        let ended = delete(&world, &path, &admin).await;
        assert_eq!(ended.body["ended"], 1, "{}", ended.body);
        let gone = world.get("/users/me", &session).await;
        assert_eq!(gone.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn an_organization_that_demands_a_second_factor_leads_members_to_it() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Admin).await;
        let session = world.sign_in(&person).await.session;
        let demand = json!({"second_factor": true});
        let set = put(&world, "/orgs/{org}/security", &session, demand).await;
        assert_eq!(set.status, StatusCode::OK, "{}", set.body);
        let refused = world.get("/orgs/{org}", &session).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        assert_eq!(refused.code(), "SECOND_FACTOR_REQUIRED");
        let refused = world.get("/projects/{project}/nodes", &session).await;
        assert_eq!(refused.code(), "SECOND_FACTOR_REQUIRED");
        let keys = world.get("/orgs/{org}", &world.full_key().await).await;
        assert_eq!(keys.status, StatusCode::OK, "keys have no second factor");
        // Another session of the user began without the second factor, so it ends.
        let other = world.sign_in(&person).await.session;
        let (app, _, session) = world.enable_totp(&session).await;
        assert_eq!(
            world.get("/orgs/{org}", &session).await.status,
            StatusCode::OK
        );
        let ended = world.get("/orgs/{org}", &other).await;
        assert_eq!(ended.status, StatusCode::UNAUTHORIZED);
        // The password alone is no longer a proof of identity.
        let body = json!({"password": PASSWORD});
        let refused = world.post("/users/me/strong", &session, body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.body["error"]["details"][0]["field"], "code");
        let body = json!({"code": world.next_code(&app)});
        let proven = world.post("/users/me/strong", &session, body).await;
        assert_eq!(proven.status, StatusCode::NO_CONTENT, "{}", proven.body);
        let session = cookies(&proven).session;
        let mine = delete(&world, "/users/me/totp", &session).await;
        assert_eq!(
            mine.status,
            StatusCode::CONFLICT,
            "an organization demands it"
        );
    }
}

#[tokio::test]
async fn sessions_have_the_rights_of_the_moment() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let person = world.person(world.org, Role::Operator).await;
        let session = world.sign_in(&person).await.session;
        let path = "/orgs/{org}/projects";
        let create = async |name: &str| {
            let made = world.post(path, &session, json!({"name": name})).await;
            made.status
        };
        assert_eq!(create("one").await, StatusCode::CREATED);
        let reader = json!({"role": "reader"});
        let changed = world
            .send(&Method::PATCH, &member(person.id), &admin, &reader, &[])
            .await;
        assert_eq!(changed.status, StatusCode::OK);
        assert_eq!(create("two").await, StatusCode::FORBIDDEN);
        let removed = delete(&world, &member(person.id), &admin).await;
        assert_eq!(removed.status, StatusCode::NO_CONTENT);
        let gone = world.get("/orgs/{org}", &session).await;
        assert_eq!(gone.status, StatusCode::NOT_FOUND, "of no organization");
        assert_eq!(
            world.get("/users/me", &session).await.status,
            StatusCode::OK
        );
    }
}

#[tokio::test]
async fn a_member_operates_one_project_and_reads_the_rest() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let person = world.person(world.org, Role::Reader).await;
        let session = world.sign_in(&person).await.session;
        let token = json!({"name": "rack 1"});
        let tokens = "/projects/{project}/enrolment-tokens";
        let refused = world.post(tokens, &session, token.clone()).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        let role = format!("/projects/{{project}}/roles/{}", person.id);
        let none = put(&world, &role, &admin, json!({"role": "reader"})).await;
        assert_eq!(none.status, StatusCode::UNPROCESSABLE_ENTITY);
        let given = put(&world, &role, &admin, json!({"role": "operator"})).await;
        assert_eq!(given.status, StatusCode::OK, "{}", given.body);
        let made = world.post(tokens, &session, token.clone()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        let enrol = Credential::Bearer(made.text("secret"));
        let register = "/projects/{project}/nodes/register";
        let node = world.post(register, &enrol, json!({"name": "n1"})).await;
        assert_eq!(node.status, StatusCode::CREATED, "{}", node.body);
        let new = json!({"name": "three"});
        let elsewhere = world.post("/orgs/{org}/projects", &session, new).await;
        assert_eq!(elsewhere.status, StatusCode::FORBIDDEN);
        let invite = json!({"email": "b@example.com", "role": "reader"});
        let above = world
            .post("/orgs/{org}/invitations", &session, invite)
            .await;
        assert_eq!(above.status, StatusCode::FORBIDDEN);

        let taken = delete(&world, &role, &admin).await;
        assert_eq!(taken.status, StatusCode::NO_CONTENT, "{}", taken.body);
        let refused = world.post(tokens, &session, token).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        let node = world.post(register, &enrol, json!({"name": "n2"})).await;
        assert_eq!(
            node.status,
            StatusCode::UNAUTHORIZED,
            "the token ended, too"
        );
    }
}

#[tokio::test]
async fn a_project_role_ends_with_the_membership() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let person = world.person(world.org, Role::Reader).await;
        let role = format!("/projects/{{project}}/roles/{}", person.id);
        let given = put(&world, &role, &admin, json!({"role": "admin"})).await;
        assert_eq!(given.status, StatusCode::OK, "{}", given.body);
        delete(&world, &member(person.id), &admin).await;
        let gone = world.get(&role, &admin).await;
        assert_eq!(gone.status, StatusCode::NOT_FOUND);
        let stranger = world.person(world.other.org, Role::Reader).await;
        let role = format!("/projects/{{project}}/roles/{}", stranger.id);
        let none = put(&world, &role, &admin, json!({"role": "operator"})).await;
        assert_eq!(none.status, StatusCode::NOT_FOUND, "no member");
    }
}

#[tokio::test]
async fn everything_that_was_open_ends_on_the_machine() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        let session = world.sign_in(&person).await.session;
        let system = control_app::Call::system(world.app.now());
        let ended = world.app.end_all_sessions(&system).await.unwrap();
        assert_eq!(ended, 1);
        let gone = world.get("/users/me", &session).await;
        assert_eq!(gone.status, StatusCode::UNAUTHORIZED);
        let later = SignedDuration::from_hours(8 * 24 + 1);
        let far = world.app.now() + later;
        let purged = world.app.clean_up(uuid::Uuid::nil(), far).await.unwrap();
        assert!(0 < purged, "old sessions are deleted");
    }
}
