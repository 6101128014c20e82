//! Accounts in several organizations, and removed second factors.

use crate::sign_in::{Browser, EMAIL, PASSWORD};
use crate::world::worlds;
use axum::http::StatusCode;
use control_app::Call;
use control_domain::Role;

#[tokio::test]
async fn a_second_factor_that_was_reset_is_reported_at_the_next_sign_in() {
    for world in worlds().await {
        let mut browser = Browser::with_session(&world, &world.admin);
        browser.set_up_totp().await;
        let system = Call::system(world.app.now());
        let reset = world.app.clear_second_factor(&system, EMAIL).await;
        reset.unwrap();
        let notice = "An administrator removed your second factor on 20";
        for _ in 0..2 {
            let mut browser = Browser::new(&world);
            browser.open("/sign-in").await;
            let fields = [("email", EMAIL), ("password", PASSWORD)];
            let signed_in = browser.post("/sign-in", &fields).await;
            assert_eq!(signed_in.header("location"), "/", "{}", signed_in.text);
            let first = browser.open("/").await;
            assert!(first.text.contains(notice), "{}", first.text);
            let second = browser.open("/?all=1").await;
            assert!(!second.text.contains(notice), "once in a session");
        }
        let mut browser = Browser::new(&world);
        browser.sign_in(EMAIL, PASSWORD).await;
        browser.set_up_totp().await;
        let mut browser = Browser::new(&world);
        let signed_in = browser.sign_in(EMAIL, PASSWORD).await;
        assert!(signed_in.cookie("__Host-note").is_none());
    }
}

#[tokio::test]
async fn a_signed_in_user_joins_another_organization_by_the_link() {
    for world in worlds().await {
        let (org, project) = world.other_org("globex").await;
        let call = world.call().await;
        let invitation = world
            .app
            .create_invitation(&call, org, "bo@example.com", Role::Operator);
        let (_, secret) = invitation.await.unwrap();
        let link = format!("/invitations/accept?token={}", secret.reveal());
        let to = format!("/invitations/join?secret={}", secret.reveal());
        let accept = world.get(&link, "").await;
        assert!(
            accept.text.contains(&format!("href=\"{to}\"")),
            "{}",
            accept.text
        );
        let none = world.get(&to, "").await;
        assert!(
            none.header("location")
                .starts_with("/sign-in?return=%2Finvitations%2Fjoin%3Fsecret%3D"),
            "{:?}",
            none.headers
        );
        let session = world.member(Role::Reader).await;
        let mut browser = Browser::with_session(&world, &session);
        let page = format!("/projects/{project}");
        let before = browser.open(&page).await;
        assert_eq!(before.status, StatusCode::NOT_FOUND);
        let asked = browser.open(&to).await;
        assert_eq!(asked.status, StatusCode::OK, "{}", asked.text);
        let wrong = browser
            .post("/invitations/join", &[("secret", "abc")])
            .await;
        assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(wrong.text.contains("is of no invitation that is valid"));
        let asked = browser.open(&to).await;
        assert!(asked.text.contains(secret.reveal()), "{}", asked.text);
        let fields = [("secret", secret.reveal())];
        let joined = browser.post("/invitations/join", &fields).await;
        assert_eq!(joined.header("location"), "/", "{}", joined.text);
        let after = browser.open(&page).await;
        assert_eq!(after.status, StatusCode::OK, "{}", after.text);
        browser.open(&to).await;
        let twice = browser.post("/invitations/join", &fields).await;
        assert_eq!(twice.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
}

#[tokio::test]
async fn a_session_of_a_provider_sees_the_profile_without_the_identities() {
    for world in worlds().await {
        let user = world.add_member(Role::Reader).await;
        let session = world.provider_session(user).await;
        let whole = world.get("/profile", &session).await;
        assert_eq!(whole.status, StatusCode::OK, "{}", whole.text);
        assert!(!whole.text.contains("the rest of your rights"));
        let (org, _) = world.other_org("globex").await;
        world.join(org, user, Role::Reader).await;
        let profile = world.get("/profile", &session).await;
        assert_eq!(profile.status, StatusCode::OK, "{:?}", profile.headers);
        let is_hidden = profile.text.contains("the rest of your rights");
        assert!(is_hidden, "{}", profile.text);
    }
}
