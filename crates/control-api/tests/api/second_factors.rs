//! The second factor: authenticators, recovery codes, and organizations that require them.

use crate::people::cookies;
use crate::world::{Answer, Credential, PASSWORD, World, app, worlds};
use axum::http::{Method, StatusCode};
use control_app::Visit;
use control_auth::Secret;
use control_domain::Role;
use jiff::SignedDuration;
use serde_json::{Value, json};

async fn complete(world: &World, step: &str, sign_in: &str, code: &str) -> Answer {
    let body = json!({"sign_in": sign_in, "code": code});
    let path = format!("/sign-in/{step}");
    world.post(&path, &Credential::None, body).await
}

#[tokio::test]
async fn a_person_sets_an_authenticator_up_and_signs_in_with_it() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        let session = world.sign_in(&person).await.session;
        let before = world.get("/users/me/totp", &session).await;
        assert_eq!(before.body["enabled"], false);
        let started = world.post("/users/me/totp", &session, Value::Null).await;
        assert!(
            started
                .text("uri")
                .starts_with("otpauth://totp/Control%20plane:")
        );
        assert!(started.text("qr_svg").starts_with("<svg"));
        assert_eq!(started.header("cache-control"), "no-store");
        let unconfirmed = world.try_sign_in(&person.email, PASSWORD).await;
        assert_eq!(
            unconfirmed.text("state"),
            "signed_in",
            "it does not count yet"
        );
        let wrong = json!({"code": "000000"});
        let wrong = world.post("/users/me/totp/confirm", &session, wrong).await;
        assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
        let (key, member) = (
            world.full_key().await,
            format!("/orgs/{{org}}/members/{}", person.id),
        );
        let before = world.get(&member, &key).await;
        assert_eq!(before.body["second_factor"], false, "{}", before.body);
        let (app, codes, session) = world.enable_totp(&session).await;
        assert_eq!(codes.len(), 10);
        let after = world.get(&member, &key).await;
        assert_eq!(after.body["second_factor"], true, "{}", after.body);
        let after = world.get("/users/me/totp", &session).await;
        assert_eq!(after.body["enabled"], true);
        assert_eq!(after.body["recovery_codes_left"], 10);
        let again = world.post("/users/me/totp", &session, Value::Null).await;
        assert_eq!(again.status, StatusCode::CONFLICT, "{}", again.body);

        world.change_address();
        let pending = world.pending(&person).await;
        let by_pending = Credential::Session(pending.clone());
        let answer = world.get("/users/me", &by_pending).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "no session");
        let wrong = complete(&world, "code", &pending, "000000").await;
        assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
        let done = complete(&world, "code", &pending, &world.next_code(&app)).await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.body);
        assert_eq!(done.body["session"]["method"], "password+totp");
        let session = cookies(&done).session;
        assert_eq!(
            world.get("/users/me", &session).await.status,
            StatusCode::OK
        );
        let spent = complete(&world, "code", &pending, &world.code(&app)).await;
        assert_eq!(spent.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn codes_of_oathtool_are_accepted() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        let session = world.sign_in(&person).await.session;
        let started = world.post("/users/me/totp", &session, Value::Null).await;
        let secret = started.text("secret");
        let printed = std::process::Command::new("oathtool")
            .args(["--totp", "--base32", &secret])
            .output()
            .unwrap();
        let code = String::from_utf8(printed.stdout).unwrap();
        let body = json!({"code": code.trim()});
        let confirmed = world.post("/users/me/totp/confirm", &session, body).await;
        assert_eq!(confirmed.status, StatusCode::OK, "{}", confirmed.body);
    }
}

#[tokio::test]
async fn a_code_works_once_for_all_replicas() {
    for world in worlds().await {
        let replica = app(&world.database.url, world.objects.path()).await.0;
        let person = world.person(world.org, Role::Reader).await;
        let secret = world.give_totp(person.id).await;
        let (one, two) = (world.pending(&person).await, world.pending(&person).await);
        let code = world.code(&secret);
        let visit = Visit {
            client_ip: None,
            browser: String::new(),
            known_browser: None,
            now: world.app.now(),
            correlation_id: String::new(),
        };
        let (one, two) = (Secret::presented(&one), Secret::presented(&two));
        let (first, second) = tokio::join!(
            world.app.sign_in_code(&visit, &one, &code),
            replica.sign_in_code(&visit, &two, &code),
        );
        let accepted = u8::from(first.is_ok()) + u8::from(second.is_ok());
        assert_eq!(accepted, 1, "{first:?} {second:?}");
    }
}

#[tokio::test]
async fn a_recovery_code_is_good_once_and_replaces_the_authenticator() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        let session = world.sign_in(&person).await.session;
        let (_, codes, session) = world.enable_totp(&session).await;
        let code = codes[3].to_uppercase().replace('-', " ");
        let pending = world.pending(&person).await;
        let done = complete(&world, "recovery", &pending, &code).await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.body);
        assert_eq!(done.body["session"]["method"], "password+recovery_code");
        let pending = world.pending(&person).await;
        let twice = complete(&world, "recovery", &pending, &code).await;
        assert_eq!(twice.status, StatusCode::UNAUTHORIZED);
        let left = world.get("/users/me/totp", &session).await;
        assert_eq!(left.body["recovery_codes_left"], 9);
        let used = world.audited("recovery_code.used").await;
        assert_eq!(used[0]["after"]["codes_left"], 9);
        let all = "/users/me/recovery-codes";
        let renewed = world.post(all, &session, Value::Null).await;
        assert_eq!(renewed.body["recovery_codes"].as_array().unwrap().len(), 10);
        world.change_address();
        let void = complete(&world, "recovery", &pending, &codes[4]).await;
        assert_eq!(
            void.status,
            StatusCode::UNAUTHORIZED,
            "earlier ones are void"
        );
    }
}

#[tokio::test]
async fn a_second_factor_that_is_not_set_up_is_a_wrong_state() {
    for world in worlds().await {
        let user = world.user(world.org, Role::Reader).await;
        for is_started in [false, true] {
            if is_started {
                let started = world.post("/users/me/totp", &user, Value::Null).await;
                assert_eq!(started.status, StatusCode::OK, "{}", started.text);
            }
            for (method, path) in [
                (Method::DELETE, "/users/me/totp"),
                (Method::POST, "/users/me/recovery-codes"),
            ] {
                let refused = world.send(&method, path, &user, &Value::Null, &[]).await;
                assert_eq!(refused.status, StatusCode::CONFLICT, "{method} {path}");
                assert_eq!(refused.code(), "WRONG_STATE", "{}", refused.text);
                assert!(refused.text.contains("not set up"), "{}", refused.text);
            }
        }
    }
}

#[tokio::test]
async fn a_sign_in_waits_five_minutes_for_its_code() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        let secret = world.give_totp(person.id).await;
        let pending = Secret::presented(&world.pending(&person).await);
        let visit = |minutes: i64| Visit {
            client_ip: None,
            browser: String::new(),
            known_browser: None,
            now: world.app.now() + SignedDuration::from_mins(minutes),
            correlation_id: String::new(),
        };
        let late = visit(6);
        let code = secret.code(late.now);
        assert!(
            world
                .app
                .sign_in_code(&late, &pending, &code)
                .await
                .is_err()
        );
        let early = visit(4);
        let code = secret.code(early.now);
        let done = world.app.sign_in_code(&early, &pending, &code).await;
        assert!(done.is_ok(), "{done:?}");
    }
}

#[tokio::test]
async fn wrong_codes_are_counted_with_the_passwords() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        world.give_totp(person.id).await;
        let pending = world.pending(&person).await;
        let mut statuses = Vec::new();
        for _ in 0..12 {
            world.change_address();
            statuses.push(complete(&world, "code", &pending, "000000").await.status);
        }
        assert_eq!(statuses[8], StatusCode::UNAUTHORIZED);
        assert_eq!(statuses[11], StatusCode::TOO_MANY_REQUESTS);
    }
}

#[tokio::test]
async fn a_removed_authenticator_is_asked_for_no_more() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        let session = world.sign_in(&person).await.session;
        let (_, _, session) = world.enable_totp(&session).await;
        let removed = world
            .send(
                &Method::DELETE,
                "/users/me/totp",
                &session,
                &Value::Null,
                &[],
            )
            .await;
        assert_eq!(removed.status, StatusCode::NO_CONTENT);
        world.sign_in(&person).await;
        assert_eq!(world.audited("totp.disabled").await.len(), 1);
        // The open session counts as one without a second factor.
        let demand = json!({"second_factor": true});
        let full = world.full_key().await;
        let path = "/orgs/{org}/security";
        let demanded = world.send(&Method::PUT, path, &full, &demand, &[]).await;
        assert_eq!(demanded.status, StatusCode::OK, "{}", demanded.body);
        let refused = world.get("/orgs/{org}", &session).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        assert_eq!(refused.code(), "SECOND_FACTOR_REQUIRED");
    }
}
