//! Forms that cannot be executed keep their input: without a fresh proof of identity, after the end
//! of a session, or with the token of an earlier session.

use crate::sign_in::{Browser, PASSWORD};
use crate::world::{Shown, World, worlds};
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use control_domain::{ApprovalRule, Role};
use control_http::SessionCookie;
use control_testkit::Database;

const EDITOR: &str = "/projects/{project}/bundles/new";
const TYPED: &str = "listeners { listener \"typed\" { address \"127.0.0.1:0\" } }";
/// The input as the value of a hidden field.
const KEPT: &str = "listeners { listener &#34;typed&#34; { address &#34;127.0.0.1:0&#34; } }";
const FIELDS: [(&str, &str); 3] = [("name", "spring"), ("text", TYPED), ("do", "check")];

fn assert_kept(shown: &Shown) {
    for part in [
        format!("name=\"text\" value=\"{KEPT}\""),
        format!("\n{KEPT}</textarea>"),
    ] {
        assert!(shown.text.contains(&part), "{part} in {}", shown.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_carried_out_with_its_proof_of_identity() {
    for world in worlds().await {
        let stale = world.stale_admin().await;
        let mut browser = Browser::with_session(&world, &stale);
        let policy = world.path("/projects/{project}/policy");
        let version = browser.open(&policy).await.version(&policy).to_owned();
        let typed = [
            ("version", version.as_str()),
            ("approve", "all"),
            ("freeze", "Fri 16:00-Mon 08:00"),
        ];
        let asked = browser.post(&policy, &typed).await;
        assert_eq!(asked.status, StatusCode::FORBIDDEN);
        assert_eq!(asked.heading(), "Confirm your identity.", "{}", asked.text);
        for (name, value) in typed {
            let kept = format!("name=\"{name}\" value=\"{value}\"");
            assert!(asked.text.contains(&kept), "{kept} in {}", asked.text);
        }
        let wrong = [&typed[..], &[("proof_password", "wrong horse battery")]].concat();
        let refused = browser.post(&policy, &wrong).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{}", refused.text);
        assert!(refused.text.contains("value=\"Fri 16:00-Mon 08:00\""));
        assert!(!refused.text.contains("wrong horse"));
        let right = [&typed[..], &[("proof_password", PASSWORD)]].concat();
        let done = browser.post(&policy, &right).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        assert_ne!(browser.cookies["__Host-session"], stale);
        let call = world.call().await;
        let project = world.app.project(&call, world.project).await.unwrap();
        assert_eq!(project.value.policy.rules.approve, ApprovalRule::All);
        // From here on, the session has a fresh proof.
        let version = browser.open(&policy).await.version(&policy).to_owned();
        let fields = [("version", version.as_str()), ("approve", "risky")];
        let again = browser.post(&policy, &fields).await;
        assert_eq!(again.status, StatusCode::SEE_OTHER, "{}", again.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_carried_out_with_a_code_and_asks_for_its_secrets_again() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let mut browser = Browser::with_session(&world, &world.admin);
    let user = world.admin_user().await;
    let (app, _) = browser.set_up_totp().await;
    let stale = world.stale_session(user).await;
    let mut browser = Browser::with_session(&world, &stale);
    browser.open("/profile").await;
    let path = "/profile/password";
    let typed = [("password", "another horse battery")];
    let asked = browser.post(path, &typed).await;
    assert_eq!(asked.status, StatusCode::FORBIDDEN, "{}", asked.text);
    for part in ["id=\"proof_code\"", "id=\"password\""] {
        assert!(asked.text.contains(part), "{part} in {}", asked.text);
    }
    assert!(!asked.text.contains("another horse"), "{}", asked.text);
    let secret = world.app.now() + jiff::SignedDuration::from_secs(30);
    let code = app.code(secret);
    let right = [typed[0], ("proof_code", code.as_str())];
    let done = browser.post(path, &right).await;
    assert_eq!(done.header("location"), "/profile", "{}", done.text);
    // The new password renews the session again, but only the newer secret is sent.
    let sent = done.headers.get_all(header::SET_COOKIE).iter();
    let sessions = sent.filter(|field| field.as_bytes().starts_with(b"__Host-session="));
    assert_eq!(sessions.count(), 1);
    assert_eq!(browser.open("/profile").await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_outlives_the_session_that_it_was_opened_in() {
    for world in worlds().await {
        let first = world.member(Role::Operator).await;
        let csrf = world.get(EDITOR, &first).await.csrf().to_owned();
        let out = world.post("/sign-out", &first, &csrf, &[]).await;
        assert_eq!(out.status, StatusCode::SEE_OTHER, "{}", out.text);
        let ended = world.post(EDITOR, &first, &csrf, &FIELDS).await;
        assert_eq!(ended.status, StatusCode::UNAUTHORIZED);
        assert_eq!(ended.heading(), "Unauthorized. Your session has ended.");
        assert!(ended.text.contains("href=\"/sign-in\" target=\"_blank\""));
        assert_kept(&ended);
        // Signed in again in another tab.
        let second = world.member(Role::Operator).await;
        let stale = world.post(EDITOR, &second, ended.csrf(), &FIELDS).await;
        assert_eq!(stale.status, StatusCode::FORBIDDEN);
        assert_kept(&stale);
        let done = world.post(EDITOR, &second, stale.csrf(), &FIELDS).await;
        assert_ne!(done.status, StatusCode::FORBIDDEN, "{}", done.text);
        assert!(done.text.contains(KEPT), "{}", done.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_without_values_leads_to_the_sign_in_and_back_to_its_page() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let mut browser = Browser::with_session(&world, &"A".repeat(43));
    "/profile".clone_into(&mut browser.page);
    let sent = browser.post("/profile/sessions/revoke-others", &[]).await;
    assert_eq!(sent.status, StatusCode::SEE_OTHER);
    assert_eq!(sent.header("location"), "/sign-in?return=%2Fprofile");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_lost_form_has_no_secret_and_nothing_of_other_sites() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let ended = "A".repeat(43);
    let path = "/projects/{project}/certificates";
    let fields = [
        ("name", "shop"),
        ("chain_pem", "TYPED CHAIN"),
        ("private_key_pem", "TYPED KEY"),
        ("labels", "tier:edge"),
    ];
    let kept = world.post(path, &ended, "old", &fields).await;
    assert_eq!(kept.status, StatusCode::UNAUTHORIZED, "{}", kept.text);
    assert!(kept.text.contains("TYPED CHAIN"), "{}", kept.text);
    assert!(!kept.text.contains("TYPED KEY"), "{}", kept.text);
    assert!(
        kept.text.contains("id=\"private_key_pem\""),
        "{}",
        kept.text
    );
    let foreign = Request::post(world.path(path))
        .header("sec-fetch-site", "cross-site")
        .header(header::COOKIE, format!("__Host-session={ended}"))
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from("name=TYPED"));
    let refused = world.send(foreign.unwrap()).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(!refused.text.contains("TYPED"), "{}", refused.text);
}
