//! Attempts of one person to bypass a policy that requires two: with an exchanged certificate,
//! hidden warnings, or another person's account.

use crate::fleet::{Fleet, command};
use crate::world::{Answer, Credential, World, certificate, sample, worlds};
use axum::http::{Method, StatusCode};
use control_domain::Role;
use control_wire::UserId;
use serde_json::{Value, json};

const POLICY: &str = "/projects/{project}/policy";
const BUNDLES: &str = "/projects/{project}/bundles";
const CERTIFICATES: &str = "/projects/{project}/certificates";
const WHOLE_WEEK: [&str; 2] = ["Mon 00:00-Thu 00:00", "Thu 00:00-Mon 00:00"];

async fn set(world: &World, by: &Credential, body: Value) -> Answer {
    let answer = world.send(&Method::PUT, POLICY, by, &body, &[]).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    answer
}

/// Plans a rollout, and submits it by `by`; returns its ID.
async fn submitted(fleet: &Fleet<'_>, bundle: &str, by: &Credential) -> String {
    let id = fleet.plan(bundle, json!({"skip_gate": true})).await;
    let started = command(fleet.world, &id, by, "start").await;
    assert_eq!(
        started.text("state"),
        "awaiting_approval",
        "{}",
        started.body
    );
    id
}

/// Creates a link to replace the password of `member`, which gives access to the account.
async fn reset(world: &World, by: &Credential, member: &Credential) {
    let member = world.get("/users/me", member).await.text("id");
    let path = format!("/orgs/{{org}}/members/{member}/reset-password");
    let made = world.post(&path, by, Value::Null).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.body);
}

fn is_dependent(answer: &Answer) {
    let reason = "one of the two changed how the other signs in";
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.body);
    assert!(answer.text.contains(reason), "{}", answer.text);
}

#[tokio::test]
async fn a_certificate_is_exchanged_by_one_person_only_as_a_renewal() {
    for world in worlds().await {
        let (operator, admin) = (
            world.user(world.org, Role::Operator).await,
            world.user(world.org, Role::Admin).await,
        );
        let body = |(chain, key): (String, String)| json!({"name": "shop", "chain_pem": chain, "private_key_pem": key});
        let other = || {
            let hosts = vec!["other.example.com".to_owned()];
            let made = rcgen::generate_simple_self_signed(hosts).unwrap();
            body((made.cert.pem(), made.signing_key.serialize_pem()))
        };
        let made = world
            .post(CERTIFICATES, &operator, body(certificate()))
            .await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        let path = format!("{CERTIFICATES}/{}", made.text("id"));
        let put = async |body: Value| {
            let tag = [("if-match", "*")];
            world
                .send(&Method::PUT, &path, &operator, &body, &tag)
                .await
        };
        for (rules, reason) in [
            (json!({"freeze": WHOLE_WEEK}), "allows no change until "),
            (
                json!({"freeze": [], "approve": "risky"}),
                "Create a new certificate",
            ),
            (json!({"approve": "all"}), "Create a new certificate"),
        ] {
            set(&world, &admin, rules).await;
            let refused = put(other()).await;
            assert_eq!(
                (refused.status, refused.code()),
                (StatusCode::CONFLICT, "WRONG_STATE"),
                "{}",
                refused.body
            );
            assert!(refused.text.contains(reason), "{}", refused.text);
            let renewed = put(body(certificate())).await;
            assert_eq!(renewed.status, StatusCode::OK, "{}", renewed.body);
        }
        // Allowed instead: another certificate that a bundle names.
        let mut new = other();
        new["name"] = json!("shop2");
        let made = world.post(CERTIFICATES, &operator, new).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    }
}

#[tokio::test]
async fn nodes_of_a_certificate_are_chosen_by_one_person_only_without_a_policy() {
    for world in worlds().await {
        let (operator, admin) = (
            world.user(world.org, Role::Operator).await,
            world.user(world.org, Role::Admin).await,
        );
        // The same certificate each time, as after a renewal: only the labels of its nodes differ.
        let (chain, key) = certificate();
        let body = |labels: Value| json!({"name": "shop", "chain_pem": chain, "private_key_pem": key, "node_labels": labels});
        let eu = json!({"region": "eu"});
        let made = world.post(CERTIFICATES, &operator, body(eu.clone())).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        let path = format!("{CERTIFICATES}/{}", made.text("id"));
        let put = async |body: Value| {
            let tag = [("if-match", "*")];
            let send = world.send(&Method::PUT, &path, &operator, &body, &tag);
            send.await
        };
        for free in [json!({"region": "us"}), eu.clone()] {
            let changed = put(body(free)).await;
            assert_eq!(changed.status, StatusCode::OK, "{}", changed.body);
        }
        for (rules, reason) in [
            (json!({"freeze": WHOLE_WEEK}), "allows no change until "),
            (
                json!({"freeze": [], "approve": "risky"}),
                "the same names and node labels",
            ),
            (json!({"approve": "all"}), "the same names and node labels"),
        ] {
            set(&world, &admin, rules).await;
            for labels in [
                json!({}),
                json!({"region": "us"}),
                json!({"region": "eu", "tier": "edge"}),
            ] {
                let refused = put(body(labels)).await;
                assert_eq!(
                    (refused.status, refused.code()),
                    (StatusCode::CONFLICT, "WRONG_STATE"),
                    "{}",
                    refused.body
                );
                assert!(refused.text.contains(reason), "{}", refused.text);
            }
            let mut unnamed = body(Value::Null);
            unnamed.as_object_mut().unwrap().remove("node_labels");
            for same in [body(eu.clone()), unnamed] {
                let renewed = put(same).await;
                assert_eq!(renewed.status, StatusCode::OK, "{}", renewed.body);
                assert_eq!(renewed.body["node_labels"], eu);
            }
        }
    }
}

#[tokio::test]
async fn warnings_are_counted_beyond_those_that_are_shown() {
    for world in worlds().await {
        let mut fleet = Fleet::new(&world, 1).await;
        let clean = fleet.bundle(81).await;
        fleet.run(&clean).await;
        let targets: Vec<String> = (0..120)
            .map(|port| format!("target \"127.0.0.1:{}\"", 5_000 + port))
            .collect();
        let text = format!(
            "upstreams {{ upstream \"loop\" {{ {} }} }}\n\
             listeners {{ listener \"a\" {{ address \"127.0.0.1:8099\" }} }}\n\
             routes {{ route \"all\" {{ upstream \"loop\" }} }}\n\
             upstreams {{ upstream \"unused\" {{ target \"10.0.0.1:80\" }} }}",
            targets.join("; ")
        );
        let files = json!({"proxy.kdl": text});
        let made = fleet
            .post(BUNDLES, json!({"name": "hidden", "files": files.clone()}))
            .await;
        assert_eq!(made.text("state"), "signed", "{}", made.body);
        let shown = made.body["diagnostics"].as_array().unwrap();
        assert_eq!(shown.len(), 100);
        let others = shown.iter().filter(|one| one["code"] != "node-allowance");
        assert_eq!(others.count(), 1, "{}", made.body);
        let admin = world.user(world.org, Role::Admin).await;
        set(&world, &admin, json!({"refuse_warnings": true})).await;
        let id = fleet
            .plan(&made.text("id"), json!({"skip_gate": true}))
            .await;
        let refused = fleet.command(&id, "start").await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.body);
        assert!(
            refused.text.contains("and this one has 1"),
            "{}",
            refused.text
        );
        let preview = fleet
            .post(&format!("{BUNDLES}/preview"), json!({"files": files}))
            .await;
        assert_eq!(preview.body["refused"], true, "{}", preview.body);
    }
}

#[tokio::test]
async fn an_administrator_is_not_a_second_person_in_the_account_of_another() {
    for world in worlds().await {
        let fleet = Fleet::new(&world, 1).await;
        let new = fleet.bundle(82).await;
        let admin = world.user(world.org, Role::Admin).await;
        set(&world, &admin, json!({"approve": "all"})).await;
        let operator = world.user(world.org, Role::Operator).await;
        let stranger = world.user(world.org, Role::Operator).await;
        let id = submitted(&fleet, &new, &admin).await;
        // The link alone suffices, because it may be used at any moment.
        reset(&world, &admin, &operator).await;
        // This session stands for one that begins with the new password.
        is_dependent(&command(&world, &id, &operator, "approve").await);
        let approved = command(&world, &id, &stranger, "approve").await;
        assert_eq!(approved.text("state"), "running", "{}", approved.body);
        let cancelled = command(&world, &id, &admin, "cancel").await;
        assert_eq!(cancelled.status, StatusCode::OK, "{}", cancelled.body);
        // Vice versa: created with the other account, approved with the person's own.
        let id = submitted(&fleet, &new, &operator).await;
        is_dependent(&command(&world, &id, &admin, "approve").await);
    }
}

#[tokio::test]
async fn an_unlinked_identity_still_shows_who_could_sign_in_by_it() {
    for world in worlds().await {
        let fleet = Fleet::new(&world, 1).await;
        let new = fleet.bundle(83).await;
        let admin = world.user(world.org, Role::Admin).await;
        set(&world, &admin, json!({"approve": "all"})).await;
        let operator = world.user(world.org, Role::Operator).await;
        let own = world.get("/users/me", &operator).await.text("id");
        let identity = world.link_identity(UserId(own.parse().unwrap())).await;
        // By a provider of its own, the administrator signs in as the operator; as such it removes the
        // identity.
        let sso = "/orgs/{org}/sso";
        let connected = world
            .send(&Method::PUT, sso, &admin, &sample(sso), &[])
            .await;
        assert_eq!(connected.status, StatusCode::OK, "{}", connected.body);
        let path = format!("/users/me/identities/{identity}");
        let unlinked = world
            .send(&Method::DELETE, &path, &operator, &Value::Null, &[])
            .await;
        assert_eq!(unlinked.status, StatusCode::NO_CONTENT, "{}", unlinked.text);
        let id = submitted(&fleet, &new, &admin).await;
        is_dependent(&command(&world, &id, &operator, "approve").await);
    }
}

#[tokio::test]
async fn a_weaker_policy_needs_a_person_that_the_first_one_cannot_be() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let (other, third) = (
            world.user(world.org, Role::Admin).await,
            world.user(world.org, Role::Admin).await,
        );
        set(&world, &admin, json!({"approve": "all"})).await;
        reset(&world, &admin, &other).await;
        let weaker = json!({"approve": "none"});
        set(&world, &admin, weaker.clone()).await;
        let refused = world.send(&Method::PUT, POLICY, &other, &weaker, &[]).await;
        is_dependent(&refused);
        // Other changes are allowed, and an administrator that is alone may remove the rule.
        let project = world.get("/projects/{project}", &admin).await;
        assert_eq!(project.body["policy"]["approve"], "all", "{}", project.body);
        let lifted = set(&world, &third, weaker).await;
        assert_eq!(lifted.body["policy"]["approve"], "none", "{}", lifted.body);
    }
}
