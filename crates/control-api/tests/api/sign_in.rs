//! Sign-in by a password, sessions, and their ends.

use crate::people::cookies;
use crate::world::{Answer, Credential, PASSWORD, World, app, worlds};
use axum::http::{Method, StatusCode};
use control_app::{ChangeScope, Wake};
use control_domain::Role;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

async fn delete(world: &World, path: &str, by: &Credential) -> Answer {
    world
        .send(&Method::DELETE, path, by, &Value::Null, &[])
        .await
}

async fn change_password(world: &World, by: &Credential, password: &str) -> Answer {
    let body = json!({"password": password});
    world.post("/users/me/password", by, body).await
}

#[tokio::test]
async fn a_person_signs_in_and_out() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Operator).await;
        let email = person.email.to_uppercase();
        let answer = world.try_sign_in(&email, PASSWORD).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        assert_eq!(answer.header("cache-control"), "no-store");
        let fields = answer.headers.get_all("set-cookie").iter();
        for field in fields.map(|field| field.to_str().unwrap()) {
            for flag in ["__Host-", "Path=/", "HttpOnly", "SameSite=Lax", "Secure"] {
                assert!(field.contains(flag), "{field}");
            }
        }
        let session = cookies(&answer).session;
        assert!(
            !answer.text.contains(&format!("{session:?}")),
            "not in the body"
        );
        let me = world.get("/users/me", &session).await;
        assert_eq!(me.text("id"), person.id.to_string());
        let out = world.post("/sign-out", &session, Value::Null).await;
        assert_eq!(out.status, StatusCode::NO_CONTENT);
        assert!(out.header("set-cookie").contains("Max-Age=0"));
        let after = world.get("/users/me", &session).await;
        assert_eq!(after.status, StatusCode::UNAUTHORIZED);
        let started = world.audited("session.started").await;
        assert_eq!(started.len(), 1);
        assert_eq!(started[0]["actor"], person.id.to_string(), "{started:?}");
        assert_eq!(world.audited("session.ended").await.len(), 1);
    }
}

#[tokio::test]
async fn a_members_last_sign_in_is_shown_after_its_session_ended() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Operator).await;
        let admin = world.user(world.org, Role::Admin).await;
        let path = format!("/orgs/{{org}}/members/{}", person.id);
        let before = world.get(&path, &admin).await;
        assert_eq!(before.body["last_sign_in_at"], Value::Null);
        let began = world.app.now();
        let refused = world
            .try_sign_in(&person.email, "wrong horse battery")
            .await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
        let before = world.get(&path, &admin).await;
        assert_eq!(
            before.body["last_sign_in_at"],
            Value::Null,
            "a refusal is none"
        );
        let session = world.sign_in(&person).await.session;
        world.post("/sign-out", &session, Value::Null).await;
        let after = world.get(&path, &admin).await.text("last_sign_in_at");
        let after: Timestamp = after.parse().unwrap();
        let began = Timestamp::from_millisecond(began.as_millisecond()).unwrap();
        assert!(began <= after && after <= world.app.now(), "{after}");
        let listed = world.get("/orgs/{org}/members", &admin).await;
        let listed = listed.body["items"].as_array().unwrap().clone();
        let found = listed
            .iter()
            .find(|item| item["user"] == person.id.to_string());
        let found = found.unwrap()["last_sign_in_at"].as_str().unwrap();
        assert_eq!(found.parse::<Timestamp>().unwrap(), after);
    }
}

#[tokio::test]
async fn a_wrong_sign_in_reveals_nothing_about_the_account() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        let mut user = world.new_user(false);
        user.password = None;
        let mut tx = world.store.begin().await.unwrap();
        tx.insert_user(&user).await.unwrap();
        tx.commit().await.unwrap();
        let mut reported = Vec::new();
        for (email, password) in [
            (person.email.as_str(), "wrong horse battery"),
            (person.email.as_str(), ""),
            ("unknown@example.com", PASSWORD),
            (user.email.as_str(), PASSWORD),
            ("no address", PASSWORD),
        ] {
            world.change_address();
            let mut answer = world.try_sign_in(email, password).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{email}");
            assert!(answer.headers.get("set-cookie").is_none());
            answer.body["error"]["correlation_id"] = Value::Null;
            reported.push(answer.body);
        }
        reported.dedup();
        assert_eq!(reported.len(), 1, "{reported:?}");
        let noted = world.until_audited("session.refused").await;
        assert_eq!(noted[0]["subject"], person.id.to_string());
        assert_eq!(noted[0]["after"]["reason"], "password");
    }
}

#[tokio::test]
async fn every_refused_sign_in_is_in_the_audit_log() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        let mut changes = world.app.changes.subscribe(ChangeScope::All);
        let refuse = async |email: &str| {
            let answer = world.try_sign_in(email, "wrong horse battery").await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        };
        // From one address, the first attempt has an entry, and the next two are only counted.
        for _ in 0..3 {
            refuse(&person.email).await;
        }
        world.change_address();
        refuse(&person.email).await;
        let in_a_minute = world.app.now() + SignedDuration::from_secs(61);
        let written = world.app.write_folded_refusals(in_a_minute).await;
        assert!(written.is_ok(), "{written:?}");
        let noted = loop {
            let noted = world.audited("session.refused").await;
            if noted.len() == 3 {
                break noted;
            }
            let woken = changes.wait(Duration::from_mins(1)).await;
            assert_eq!(woken, Wake::Changed, "{noted:?}");
        };
        for entry in &noted {
            assert_eq!(entry["subject"], person.id.to_string(), "{noted:?}");
        }
        let more = noted.iter().filter(|entry| entry["after"]["more"] == 2);
        assert_eq!(more.count(), 1, "{noted:?}");
    }
}

#[tokio::test]
async fn refused_sign_ins_of_unknown_accounts_are_in_the_log_of_the_installation() {
    for world in worlds().await {
        let mut changes = world.app.changes.subscribe(ChangeScope::All);
        let entries = async || world.app.inspect_audit().await.unwrap().entries;
        let before = entries().await;
        for _ in 0..3 {
            world.try_sign_in("unknown@example.com", PASSWORD).await;
        }
        let in_a_minute = world.app.now() + SignedDuration::from_secs(61);
        world.app.write_folded_refusals(in_a_minute).await.unwrap();
        while entries().await < before + 2 {
            let woken = changes.wait(Duration::from_mins(1)).await;
            assert_eq!(woken, Wake::Changed);
        }
        assert_eq!(entries().await, before + 2);
        assert!(world.audited("session.refused").await.is_empty());
    }
}

#[tokio::test]
async fn a_cookie_of_another_sites_making_is_refused() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        let body = json!({"email": person.email, "password": PASSWORD});
        let cross = [("sec-fetch-site", "cross-site")];
        let none = Credential::None;
        let sent = world.send(&Method::POST, "/sign-in", &none, &body, &cross);
        assert_eq!(sent.await.status, StatusCode::FORBIDDEN);
    }
}

#[tokio::test]
async fn sessions_are_listed_and_ended_in_another_browser_within_a_request() {
    for world in worlds().await {
        let (objects, url) = (world.objects.path(), &world.database.url);
        let replica = app(url, objects).await.0;
        let person = world.person(world.org, Role::Reader).await;
        let first = world.sign_in(&person).await.session;
        let second = world.sign_in(&person).await.session;
        let third = world.sign_in(&person).await.session;
        let listed = world.get("/users/me/sessions", &first).await;
        let items = listed.body["items"].as_array().unwrap();
        assert_eq!(items.len(), 3, "{}", listed.body);
        assert_eq!(items[2]["is_own"], true, "the newest comes first");
        assert_eq!(items[1]["method"], "password");
        assert_eq!(items[0]["address"], "10.0.0.1");
        let path = format!("/users/me/sessions/{}", items[1]["id"].as_str().unwrap());
        let stranger = world.user(world.org, Role::Admin).await;
        let by_other = delete(&world, &path, &stranger).await;
        assert_eq!(by_other.status, StatusCode::NOT_FOUND);
        let ended = delete(&world, &path, &first).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        let Credential::Session(secret) = &second else {
            unreachable!()
        };
        let presented = control_app::Presented::Session(secret);
        let at_replica = replica.authenticate(presented, None, replica.now()).await;
        assert!(at_replica.is_err(), "ended at the other replica, too");
        let gone = world.get("/users/me", &second).await;
        assert_eq!(gone.status, StatusCode::UNAUTHORIZED);
        let others = delete(&world, "/users/me/sessions", &first).await;
        assert_eq!(others.body["ended"], 1);
        let gone = world.get("/users/me", &third).await;
        assert_eq!(gone.status, StatusCode::UNAUTHORIZED);
        assert_eq!(world.get("/users/me", &first).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn sessions_are_listed_in_pages() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        let admin = world.user(world.org, Role::Admin).await;
        let mut own = Credential::None;
        for _ in 0..3 {
            world.change_address();
            own = world.sign_in(&person).await.session;
        }
        let members = format!("/orgs/{{org}}/members/{}/sessions", person.id);
        for (path, by) in [("/users/me/sessions", &own), (members.as_str(), &admin)] {
            let all = world.get(path, by).await;
            let all = all.body["items"].as_array().unwrap().clone();
            assert_eq!(all.len(), 3, "{path}: {all:?}");
            let first = world.get(&format!("{path}?limit=2"), by).await;
            let cursor = first.text("next_cursor");
            let rest = format!("{path}?limit=2&cursor={cursor}");
            let rest = world.get(&rest, by).await;
            assert_eq!(rest.body["next_cursor"], Value::Null, "{path}");
            let items = [&first, &rest].map(|page| page.body["items"].as_array().unwrap().clone());
            assert_eq!(items.concat(), all, "{path}");
            for wrong in ["limit=0", "limit=201", "cursor=AAAA", "sort=id"] {
                let refused = world.get(&format!("{path}?{wrong}"), by).await;
                assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path}?{wrong}");
            }
        }
    }
}

#[tokio::test]
async fn a_changed_password_ends_all_other_sessions() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        let (own, other) = (world.sign_in(&person).await, world.sign_in(&person).await);
        for (weak, reason) in [
            ("short", "needs 12 to 256 characters"),
            ("1234567890123", "is one of the most common passwords"),
            (
                person.email.as_str(),
                "is derived from the address, the name or the organization",
            ),
        ] {
            let refused = change_password(&world, &own.session, weak).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
            assert_eq!(refused.body["error"]["details"][0]["reason"], reason);
        }
        world.change_address();
        let changed = change_password(&world, &own.session, "another good one").await;
        assert_eq!(changed.status, StatusCode::NO_CONTENT, "{}", changed.body);
        let renewed = cookies(&changed).session;
        assert_eq!(
            world.get("/users/me", &renewed).await.status,
            StatusCode::OK
        );
        for ended in [&own.session, &other.session] {
            let answer = world.get("/users/me", ended).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        }
        let old = world.try_sign_in(&person.email, PASSWORD).await;
        assert_eq!(old.status, StatusCode::UNAUTHORIZED);
        let new = world.try_sign_in(&person.email, "another good one").await;
        assert_eq!(new.status, StatusCode::OK, "{}", new.body);
        let entries = world.audited("password.changed").await;
        assert_eq!(entries[0]["after"]["sessions_ended"], 1);
        assert!(!entries[0].to_string().contains("good one"));
    }
}

#[tokio::test]
async fn a_sign_in_that_waits_for_its_code_ends_with_the_password() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        let session = world.sign_in(&person).await.session;
        let (app, codes, session) = world.enable_totp(&session).await;
        let waiting = world.pending(&person).await;
        world.change_address();
        let changed = change_password(&world, &session, "another good one").await;
        assert_eq!(changed.status, StatusCode::NO_CONTENT, "{}", changed.body);
        for (step, code) in [
            ("code", world.next_code(&app)),
            ("recovery", codes[0].clone()),
        ] {
            let body = json!({"sign_in": waiting, "code": code});
            let path = format!("/sign-in/{step}");
            let late = world.post(&path, &Credential::None, body).await;
            assert_eq!(late.status, StatusCode::UNAUTHORIZED, "{step}");
            assert!(late.headers.get("set-cookie").is_none(), "{step}");
        }
    }
}

#[tokio::test]
async fn a_stale_proof_is_renewed_by_the_password() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Admin).await;
        let session = world.sign_in(&person).await.session;
        world
            .age_proofs(person.id, SignedDuration::from_mins(11))
            .await;
        let invite = json!({"email": "new@example.com", "role": "reader"});
        let path = "/orgs/{org}/invitations";
        let refused = world.post(path, &session, invite.clone()).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.body);
        assert_eq!(refused.code(), "STEP_UP_REQUIRED");
        let read = world.get(path, &session).await;
        assert_eq!(read.status, StatusCode::OK, "reading needs no proof");
        let wrong = json!({"password": "wrong horse battery"});
        let wrong = world.post("/users/me/strong", &session, wrong).await;
        assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
        for bad in [json!({}), json!({"password": "a", "code": "1"})] {
            let answer = world.post("/users/me/strong", &session, bad).await;
            assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        }
        let right = json!({"password": PASSWORD});
        let proven = world.post("/users/me/strong", &session, right).await;
        assert_eq!(proven.status, StatusCode::NO_CONTENT, "{}", proven.body);
        let renewed = cookies(&proven).session;
        let old = world.get("/users/me", &session).await;
        assert_eq!(old.status, StatusCode::UNAUTHORIZED, "the secret is new");
        let done = world.post(path, &renewed, invite).await;
        assert_eq!(done.status, StatusCode::CREATED, "{}", done.body);
    }
}

#[tokio::test]
async fn wrong_passwords_from_many_addresses_do_not_keep_the_owner_out() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        let browser = world.sign_in(&person).await.browser;
        let mut statuses = Vec::new();
        for _ in 0..12 {
            world.change_address();
            let answer = world
                .try_sign_in(&person.email, "wrong horse battery")
                .await;
            statuses.push(answer.status);
        }
        assert_eq!(statuses[9], StatusCode::UNAUTHORIZED);
        assert_eq!(statuses[11], StatusCode::TOO_MANY_REQUESTS);
        world.change_address();
        let held = world.try_sign_in(&person.email, PASSWORD).await;
        assert_eq!(held.status, StatusCode::TOO_MANY_REQUESTS, "no browser");
        let wait: i64 = held.header("retry-after").parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        let known = world
            .try_sign_in_from(&person.email, PASSWORD, &browser)
            .await;
        assert_eq!(known.status, StatusCode::OK, "{}", known.body);
        assert_eq!(cookies(&known).browser, "", "known already");
        // A known browser is known for its own user only.
        let other = world.person(world.org, Role::Reader).await;
        let others = world.sign_in(&other).await.browser;
        let held = world
            .try_sign_in_from(&person.email, PASSWORD, &others)
            .await;
        assert_eq!(held.status, StatusCode::TOO_MANY_REQUESTS);
        let unknown = world.try_sign_in("nobody@example.com", PASSWORD).await;
        assert_eq!(unknown.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn unknown_accounts_are_held_off_like_known_ones() {
    for world in worlds().await {
        let mut statuses = Vec::new();
        for _ in 0..12 {
            world.change_address();
            let answer = world.try_sign_in("ghost@example.com", PASSWORD).await;
            statuses.push(answer.status);
        }
        assert_eq!(statuses[9], StatusCode::UNAUTHORIZED);
        assert_eq!(statuses[11], StatusCode::TOO_MANY_REQUESTS);
    }
}

#[tokio::test]
async fn right_passwords_do_not_count_as_attempts() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        for _ in 0..15 {
            world.change_address();
            world.sign_in(&person).await;
        }
    }
}

#[tokio::test]
async fn a_request_that_keeps_a_page_live_does_not_use_the_session() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        let Credential::Session(secret) = world.sign_in(&person).await.session else {
            unreachable!()
        };
        let at = |hours: i64| world.app.now() + SignedDuration::from_hours(hours);
        let live = async |now: Timestamp| {
            let presented = control_app::Presented::LiveSession(&secret);
            world.app.authenticate(presented, None, now).await.is_ok()
        };
        let used = async |now: Timestamp| {
            let presented = control_app::Presented::Session(&secret);
            world.app.authenticate(presented, None, now).await.is_ok()
        };
        assert!(live(at(11)).await);
        assert!(!live(at(13)).await, "a forgotten tab ends");
        assert!(used(at(11)).await);
        assert!(live(at(13)).await, "a request of the person counts");
    }
}
