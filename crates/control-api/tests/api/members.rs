//! Members, invitations, and the end of projects and organizations.

use crate::world::{Answer, Credential, World, sample, worlds};
use axum::http::{Method, StatusCode};
use control_domain::Role;
use jiff::SignedDuration;
use serde_json::{Value, json};

const MEMBERS: &str = "/orgs/{org}/members";
const INVITATIONS: &str = "/orgs/{org}/invitations";

async fn delete(world: &World, path: &str, by: &Credential) -> Answer {
    world
        .send(&Method::DELETE, path, by, &Value::Null, &[])
        .await
}

async fn change(world: &World, path: &str, by: &Credential, role: &str) -> Answer {
    world
        .send(&Method::PATCH, path, by, &json!({ "role": role }), &[])
        .await
}

async fn own_id(world: &World, by: &Credential) -> String {
    world.get("/users/me", by).await.text("id")
}

/// Joins an organization with the account of the session; returns the response.
async fn join(world: &World, by: &Credential, secret: &str) -> Answer {
    let body = json!({"secret": secret});
    world.post("/invitations/join", by, body).await
}

#[tokio::test]
async fn a_user_joins_and_is_promoted_and_removed() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let guest = world.user(world.other.org, Role::Reader).await;
        let email = world.get("/users/me", &guest).await.text("email");
        let body = json!({"email": email.to_uppercase(), "role": "reader"});
        let invited = world.post(INVITATIONS, &admin, body.clone()).await;
        assert_eq!(invited.status, StatusCode::CREATED, "{}", invited.body);
        let made = join(&world, &guest, &invited.text("secret")).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        assert_eq!(made.text("email"), email);
        let spent = join(&world, &guest, &invited.text("secret")).await;
        assert_eq!(spent.status, StatusCode::UNPROCESSABLE_ENTITY);
        let twice = world.post(INVITATIONS, &admin, body).await;
        assert_eq!(
            (twice.status, twice.code()),
            (StatusCode::CONFLICT, "CONFLICT")
        );
        let path = format!("{MEMBERS}/{}", made.text("user"));
        let changed = change(&world, &path, &admin, "operator").await;
        assert_eq!(changed.text("role"), "operator", "{}", changed.body);
        assert_eq!(changed.header("etag"), "\"2\"");
        let found = world.get(&path, &admin).await;
        assert_eq!(found.body, changed.body);
        let listed = world.get(MEMBERS, &admin).await;
        assert_eq!(listed.body["items"].as_array().unwrap().len(), 2);
        assert_eq!(
            delete(&world, &path, &admin).await.status,
            StatusCode::NO_CONTENT
        );
        assert_eq!(world.get(&path, &admin).await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn no_user_becomes_a_member_without_a_link_of_the_organization() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let guest = world.user(world.other.org, Role::Reader).await;
        let email = world.get("/users/me", &guest).await.text("email");
        let body = json!({"email": email, "role": "admin"});
        // Neither the former endpoint nor the invitation alone creates a member, or reveals the account.
        let added = world.post(MEMBERS, &admin, body.clone()).await;
        assert_eq!(added.status, StatusCode::METHOD_NOT_ALLOWED);
        let known = world.post(INVITATIONS, &admin, body).await;
        let unknown = json!({"email": "unknown@example.com", "role": "admin"});
        let unknown = world.post(INVITATIONS, &admin, unknown).await;
        assert_eq!(known.status, unknown.status, "{}", known.body);
        let fields = |answer: &Answer| -> Vec<String> {
            answer.body.as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(fields(&known), fields(&unknown));
        let listed = world.get(MEMBERS, &admin).await;
        assert_eq!(listed.body["items"].as_array().unwrap().len(), 1);
        // A link of another organization is valid only there, and a forged one nowhere.
        let (_, elsewhere) = world.other_invitation().await;
        let outsider = world.user(world.org, Role::Reader).await;
        let joined = join(&world, &outsider, &elsewhere).await;
        assert_eq!(joined.status, StatusCode::CREATED, "{}", joined.body);
        let me = world.get("/users/me", &outsider).await;
        let role = me.body["memberships"].as_array().unwrap().iter();
        let own = |one: &&Value| one["org"] == world.org.to_string();
        assert_eq!(role.clone().find(own).unwrap()["role"], "reader");
        let invented = join(&world, &guest, &"x".repeat(43)).await;
        assert_eq!(invented.status, StatusCode::UNPROCESSABLE_ENTITY);
        let (_, old) = world.invitation(SignedDuration::from_hours(7 * 24)).await;
        let Credential::Bearer(old) = old else {
            unreachable!("a link is a bearer's")
        };
        let ended = join(&world, &guest, &old).await;
        assert_eq!(ended.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
}

#[tokio::test]
async fn another_account_of_the_address_gets_nothing() {
    for world in worlds().await {
        // Another tenant invites the address and keeps the link: the account is the stranger's.
        let other = format!("/orgs/{}/invitations", world.other.org);
        let stranger = world.user(world.other.org, Role::Admin).await;
        let body = json!({"email": "victim@example.com", "role": "admin"});
        let squatted = world.post(&other, &stranger, body.clone()).await;
        let accept = async |link: &Answer, body: Value| {
            let by = Credential::Bearer(link.text("secret"));
            world.post("/invitations/accept", &by, body).await
        };
        let own = json!({"user_name": "Eve", "password": "correct horse"});
        let taken = accept(&squatted, own).await;
        assert_eq!(taken.status, StatusCode::CREATED, "{}", taken.body);
        let cookie = taken.header("set-cookie");
        let eve = Credential::Session(cookie.split(['=', ';']).nth(1).unwrap().to_owned());

        let admin = world.user(world.org, Role::Admin).await;
        let link = world.post(INVITATIONS, &admin, body).await;
        assert_eq!(link.status, StatusCode::CREATED, "{}", link.body);
        let seen = world.get("/orgs/{org}", &eve).await;
        assert_eq!(seen.status, StatusCode::NOT_FOUND, "{}", seen.body);
        // The invited person has the link, and joins with an address of choice.
        let mut own = json!({"user_name": "Bob", "password": "correct horse"});
        let refused = accept(&link, own.clone()).await;
        assert_eq!(
            (refused.status, refused.code()),
            (StatusCode::CONFLICT, "CONFLICT")
        );
        own["email"] = json!("bob@example.com");
        let joined = accept(&link, own).await;
        assert_eq!(joined.status, StatusCode::CREATED, "{}", joined.body);
        let seen = world.get("/orgs/{org}", &eve).await;
        assert_eq!(seen.status, StatusCode::NOT_FOUND, "{}", seen.body);
    }
}

#[tokio::test]
async fn a_role_counts_from_the_next_request_on() {
    for world in worlds().await {
        let (admin, member) = (
            world.user(world.org, Role::Admin).await,
            world.user(world.org, Role::Operator).await,
        );
        let path = format!("{MEMBERS}/{}", own_id(&world, &member).await);
        let projects = "/orgs/{org}/projects";
        let made = world.post(projects, &member, sample(projects)).await;
        assert_eq!(made.status, StatusCode::CREATED);
        change(&world, &path, &admin, "reader").await;
        let made = world.post(projects, &member, sample(projects)).await;
        assert_eq!(made.status, StatusCode::FORBIDDEN);
        delete(&world, &path, &admin).await;
        let gone = world.get("/orgs/{org}", &member).await;
        assert_eq!(gone.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn the_last_administrator_cannot_leave() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let path = format!("{MEMBERS}/{}", own_id(&world, &admin).await);
        for refused in [
            delete(&world, &path, &admin).await,
            change(&world, &path, &admin, "reader").await,
            // A key without scopes has no permission either.
            delete(&world, &path, &world.full_key().await).await,
        ] {
            assert_eq!(
                (refused.status, refused.code()),
                (StatusCode::CONFLICT, "CONFLICT")
            );
        }
        let second = world.user(world.org, Role::Admin).await;
        let removed = delete(&world, &path, &admin).await;
        assert_eq!(removed.status, StatusCode::NO_CONTENT, "{}", removed.body);
        let path = format!("{MEMBERS}/{}", own_id(&world, &second).await);
        assert_eq!(
            delete(&world, &path, &second).await.status,
            StatusCode::CONFLICT
        );
    }
}

#[tokio::test]
async fn administrators_that_remove_each_other_leave_one() {
    for world in worlds().await {
        for _ in 0..8 {
            let one = world.user(world.org, Role::Admin).await;
            let two = world.user(world.org, Role::Admin).await;
            let path_of = async |admin| format!("{MEMBERS}/{}", own_id(&world, admin).await);
            let (path_one, path_two) = (path_of(&one).await, path_of(&two).await);
            let (first, second) = tokio::join!(
                delete(&world, &path_two, &one),
                delete(&world, &path_one, &two),
            );
            let done = [&first, &second]
                .iter()
                .filter(|answer| answer.status == StatusCode::NO_CONTENT)
                .count();
            assert_eq!(done, 1, "{} {}", first.body, second.body);
            // The key removes the remaining one before the next round.
            let left = if first.status == StatusCode::NO_CONTENT {
                path_one
            } else {
                path_two
            };
            let keeper = world.member(Role::Admin).await;
            assert_eq!(
                delete(&world, &left, &world.full_key().await).await.status,
                StatusCode::NO_CONTENT
            );
            let keeper = format!("{MEMBERS}/{keeper}");
            let mut tx = world.store.begin().await.unwrap();
            let user = keeper.rsplit('/').next().unwrap().parse().unwrap();
            tx.delete_membership(world.org, user, 1).await.unwrap();
            tx.commit().await.unwrap();
        }
    }
}

#[tokio::test]
async fn an_invitation_makes_one_user_once() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let body = json!({"email": "Bob@example.com", "role": "operator"});
        let first = world.post(INVITATIONS, &admin, body.clone()).await;
        assert_eq!(first.status, StatusCode::CREATED, "{}", first.body);
        assert_eq!(first.header("cache-control"), "no-store");
        let second = world.post(INVITATIONS, &admin, body.clone()).await;
        let listed = world.get(INVITATIONS, &admin).await;
        assert_eq!(listed.body["items"].as_array().unwrap().len(), 1);
        assert!(!listed.body.to_string().contains(&second.text("secret")));

        let accept = async |secret: String, password: &str| {
            let body = json!({"user_name": "Bob", "password": password});
            let by = Credential::Bearer(secret);
            world.post("/invitations/accept", &by, body).await
        };
        let replaced = accept(first.text("secret"), "correct horse").await;
        assert_eq!(replaced.status, StatusCode::UNAUTHORIZED);
        let short = accept(second.text("secret"), "short").await;
        assert_eq!(short.status, StatusCode::UNPROCESSABLE_ENTITY);
        let joined = accept(second.text("secret"), "correct horse").await;
        assert_eq!(joined.status, StatusCode::CREATED, "{}", joined.body);
        let again = accept(second.text("secret"), "correct horse").await;
        assert_eq!(again.status, StatusCode::UNAUTHORIZED);

        let cookie = joined.header("set-cookie");
        let session = cookie.split(['=', ';']).nth(1).unwrap().to_owned();
        let me = world.get("/users/me", &Credential::Session(session)).await;
        assert_eq!(me.body["email"], "bob@example.com");
        assert_eq!(me.body["instance_admin"], false);
        assert_eq!(me.body["memberships"][0]["role"], "operator");
        let known = world.post(INVITATIONS, &admin, body).await;
        assert_eq!(known.status, StatusCode::CONFLICT, "a member by now");
    }
}

#[tokio::test]
async fn of_acceptances_at_once_the_second_has_no_credential() {
    for world in worlds().await {
        let (_, link) = world.invitation(SignedDuration::ZERO).await;
        let path = "/invitations/accept";
        let (first, second) = tokio::join!(
            world.post(path, &link, sample(path)),
            world.post(path, &link, sample(path)),
        );
        let mut statuses = [first.status, second.status];
        statuses.sort();
        let expected = [StatusCode::CREATED, StatusCode::UNAUTHORIZED];
        assert_eq!(statuses, expected, "{} {}", first.body, second.body);
    }
}

#[tokio::test]
async fn a_withdrawn_invitation_admits_no_user() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let (id, link) = world.invitation(SignedDuration::ZERO).await;
        let path = format!("{INVITATIONS}/{id}");
        assert_eq!(
            delete(&world, &path, &admin).await.status,
            StatusCode::NO_CONTENT
        );
        let accept = "/invitations/accept";
        let refused = world.post(accept, &link, sample(accept)).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
        assert_eq!(
            delete(&world, &path, &admin).await.status,
            StatusCode::NOT_FOUND
        );
    }
}

#[tokio::test]
async fn an_organization_can_be_deleted_after_its_projects() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let key = world.full_key().await;
        world.invitation(SignedDuration::ZERO).await;
        let early = delete(&world, "/orgs/{org}", &admin).await;
        assert_eq!(
            (early.status, early.code()),
            (StatusCode::CONFLICT, "CONFLICT")
        );
        let node = format!("/projects/{{project}}/nodes/{}", world.node);
        let node = delete(&world, &node, &admin).await;
        assert_eq!(node.status, StatusCode::NO_CONTENT, "{}", node.body);
        let project = delete(&world, "/projects/{project}", &admin).await;
        assert_eq!(project.status, StatusCode::NO_CONTENT, "{}", project.body);
        let gone = delete(&world, "/orgs/{org}", &admin).await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.body);
        assert_eq!(
            world.get("/orgs", &key).await.status,
            StatusCode::UNAUTHORIZED
        );
        let left = world.get("/orgs", &admin).await;
        assert_eq!(left.body["items"], json!([]));
        let other = world.user(world.other.org, Role::Reader).await;
        let others = world.get("/orgs", &other).await;
        assert_eq!(others.body["items"].as_array().unwrap().len(), 1);
        assert_eq!(world.app.verify_audit().await.unwrap(), None);
    }
}

#[tokio::test]
async fn an_organization_of_set_up_is_deleted_with_its_signing_key() {
    for world in worlds().await {
        let root = world.instance_admin().await;
        let made = world
            .post("/orgs", &root, json!({"name": "short-lived"}))
            .await;
        let path = format!("/orgs/{}", made.text("id"));
        let gone = delete(&world, &path, &root).await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.body);
        assert_eq!(world.get(&path, &root).await.status, StatusCode::NOT_FOUND);
    }
}
