//! Sign-in and sign-out, sessions, second factors, and proofs of identity.

use crate::world::{Shown, World, between, worlds};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use control_app::Page;
use control_auth::TotpSecret;
use control_domain::Role;
use control_http::SessionCookie;
use control_testkit::Database;
use jiff::SignedDuration;
use std::collections::BTreeMap;

pub(crate) const EMAIL: &str = "ann@example.com";
pub(crate) const PASSWORD: &str = "correct horse battery";

/// A browser with cookies, which sends forms of the current page.
pub(crate) struct Browser<'a> {
    world: &'a World,
    pub(crate) cookies: BTreeMap<String, String>,
    pub(crate) page: String,
    csrf: String,
}

impl<'a> Browser<'a> {
    pub(crate) fn new(world: &'a World) -> Self {
        Self {
            world,
            cookies: BTreeMap::new(),
            page: "/".to_owned(),
            csrf: String::new(),
        }
    }

    pub(crate) fn with_session(world: &'a World, session: &str) -> Self {
        let mut browser = Self::new(world);
        browser.set("__Host-session", session);
        browser
    }

    fn set(&mut self, name: &str, value: &str) {
        self.cookies.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) async fn open(&mut self, path: &str) -> Shown {
        let shown = self.send(Method::GET, path, String::new()).await;
        path.clone_into(&mut self.page);
        shown.csrf().clone_into(&mut self.csrf);
        shown
    }

    /// Sends a form with the token of the last opened page.
    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Shown {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.append_pair("csrf", &self.csrf).extend_pairs(fields);
        self.send(Method::POST, path, body.finish()).await
    }

    async fn send(&mut self, method: Method, path: &str, body: String) -> Shown {
        let pairs = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let request = Request::builder()
            .method(method)
            .uri(self.world.path(path))
            .header(header::HOST, "control.example.com")
            .header(
                header::REFERER,
                format!("https://control.example.com{}", self.page),
            )
            .header("sec-fetch-site", "same-origin")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::COOKIE, pairs.collect::<Vec<_>>().join("; "));
        let shown = self
            .world
            .send(request.body(Body::from(body)).unwrap())
            .await;
        for field in shown.headers.get_all(header::SET_COOKIE) {
            let pair = field.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            match value {
                "" => drop(self.cookies.remove(name)),
                _ => self.set(name, value),
            }
        }
        shown
    }

    pub(crate) async fn sign_in(&mut self, email: &str, password: &str) -> Shown {
        self.open("/sign-in?return=%2Fprofile").await;
        let fields = [
            ("email", email),
            ("password", password),
            ("return", "/profile"),
        ];
        self.post("/sign-in", &fields).await
    }

    /// Sets up an authenticator; returns it with the recovery codes.
    pub(crate) async fn set_up_totp(&mut self) -> (TotpSecret, Vec<String>) {
        self.open("/profile").await;
        let started = self.post("/profile/totp", &[]).await;
        assert_eq!(started.status, StatusCode::OK, "{}", started.text);
        assert!(started.text.contains("<svg"), "{}", started.text);
        let app = authenticator(between(
            &started.text,
            "Type this secret: <code>",
            "</code>",
        ));
        let wrong = self.post("/profile/totp/confirm", &[("code", "0")]).await;
        assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
        // A code can be used once, but that of the next time step is also accepted.
        let code = app.code(self.world.app.now());
        let done = self.post("/profile/totp/confirm", &[("code", &code)]).await;
        assert_eq!(done.heading(), "The second factor is on.", "{}", done.text);
        done.csrf().clone_into(&mut self.csrf);
        let codes = between(&done.text, "aria-label=\"Recovery codes\">", "</pre>");
        let codes: Vec<String> = codes.lines().map(str::to_owned).collect();
        assert_eq!(codes.len(), 10, "{codes:?}");
        (app, codes)
    }
}

/// Creates an authenticator with the secret on the page.
fn authenticator(base32: &str) -> TotpSecret {
    const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for letter in base32.chars().filter(|letter| *letter != ' ') {
        let value = LETTERS.find(letter).unwrap();
        bits = bits << 5 | u32::try_from(value).unwrap();
        held += 5;
        if 8 <= held {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).unwrap());
        }
    }
    TotpSecret::from_bytes(&bytes).unwrap()
}

#[tokio::test]
async fn a_password_signs_in_and_a_wrong_one_is_as_a_wrong_address() {
    for world in worlds().await {
        let mut browser = Browser::new(&world);
        let asked = browser.open("/profile").await;
        assert_eq!(asked.header("location"), "/sign-in?return=%2Fprofile");
        let address = browser.sign_in("eve@example.com", PASSWORD).await;
        let password = browser.sign_in(EMAIL, "wrong horse battery").await;
        for refused in [&address, &password] {
            assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
            assert!(!refused.text.contains("horse"), "{}", refused.text);
            assert_eq!(refused.cookie("__Host-session"), None);
        }
        assert_eq!(
            address.text.replace("eve@", "ann@"),
            password.text,
            "the pages differ in the address that was sent alone"
        );
        let signed_in = browser.sign_in(EMAIL, PASSWORD).await;
        assert_eq!(signed_in.status, StatusCode::SEE_OTHER);
        assert_eq!(signed_in.header("location"), "/profile");
        let profile = browser.open("/profile").await;
        assert_eq!(
            profile.heading(),
            "2 browsers are signed in as you; you sign in without a second factor."
        );
        assert!(profile.text.contains("(this one)"), "{}", profile.text);
    }
}

#[tokio::test]
async fn a_sign_in_leads_to_no_other_server_and_needs_its_token() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let mut browser = Browser::new(&world);
    let fields = [
        ("email", EMAIL),
        ("password", PASSWORD),
        ("return", "//example.com"),
    ];
    // Without the cookie of an opened page, even the token for an empty cookie is refused.
    let refused = browser.post("/sign-in", &fields).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    browser.open("/sign-in").await;
    let token = std::mem::take(&mut browser.csrf);
    let refused = browser.post("/sign-in", &fields).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(
        refused.heading(),
        "Forbidden. This form belongs to an earlier sign-in."
    );
    browser.csrf = token;
    let signed_in = browser.post("/sign-in", &fields).await;
    assert_eq!(signed_in.status, StatusCode::SEE_OTHER);
    assert_eq!(signed_in.header("location"), "/");
}

#[tokio::test]
async fn single_sign_on_is_reached_by_a_link_with_the_name_of_the_organization() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let mut browser = Browser::new(&world);
    let page = browser.open("/sign-in?return=%2Fprofile").await;
    assert!(
        page.text
            .contains("href=\"/sign-in/sso?return=%2Fprofile\""),
        "{}",
        page.text
    );
    let page = browser
        .open("/sign-in/sso?org=a+%2F%3Cb&return=%2Fprofile")
        .await;
    assert!(
        page.text
            .contains("href=\"/sso/a%20%2F%3Cb?return=%2Fprofile\""),
        "{}",
        page.text
    );
}

#[tokio::test]
async fn the_second_factor_is_asked_for_and_its_recovery_codes_work_once() {
    for world in worlds().await {
        let mut owner = Browser::with_session(&world, &world.admin);
        let (_, codes) = owner.set_up_totp().await;
        let profile = owner.open("/profile").await;
        assert!(
            profile.text.contains("10 recovery codes are left"),
            "{}",
            profile.text
        );
        assert!(!profile.text.contains(&codes[0]), "they are shown once");
        let mut browser = Browser::new(&world);
        let early = browser.open("/sign-in/code").await;
        assert_eq!(early.header("location"), "/sign-in");
        let next = browser.sign_in(EMAIL, PASSWORD).await;
        assert_eq!(next.header("location"), "/sign-in/code?return=%2Fprofile");
        assert_eq!(next.cookie("__Host-session"), None);
        assert_eq!(
            browser.open("/profile").await.status,
            StatusCode::SEE_OTHER,
            "the password alone opens nothing"
        );
        browser.open("/sign-in/code?return=%2Fprofile").await;
        let wrong = browser.post("/sign-in/code", &[("code", "000")]).await;
        assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
        browser.open("/sign-in/recovery?return=%2Fprofile").await;
        let fields = [("code", codes[0].as_str()), ("return", "/profile")];
        let done = browser.post("/sign-in/recovery", &fields).await;
        assert_eq!(done.header("location"), "/profile", "{}", done.text);
        assert_eq!(done.cookie("__Host-pending").as_deref(), Some(""));
        let profile = browser.open("/profile").await;
        assert!(profile.text.contains("9 recovery codes are left"));
        assert!(profile.text.contains("Password and recovery code"));
    }
}

#[tokio::test]
async fn a_code_of_the_app_completes_a_sign_in() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let mut owner = Browser::with_session(&world, &world.admin);
    let (app, _) = owner.set_up_totp().await;
    let mut browser = Browser::new(&world);
    browser.sign_in(EMAIL, PASSWORD).await;
    browser.open("/sign-in/code?return=%2Fprofile").await;
    // The current code is used up. A phone's clock may be a step ahead.
    let code = app.code(world.app.now() + SignedDuration::from_secs(30));
    let fields = [("code", code.as_str()), ("return", "/profile")];
    let done = browser.post("/sign-in/code", &fields).await;
    assert_eq!(done.header("location"), "/profile", "{}", done.text);
    let profile = browser.open("/profile").await;
    assert!(profile.text.contains("Password and code"));
    let asked = browser.open("/profile/totp/remove").await;
    assert_eq!(asked.heading(), "Turn the second factor off?");
    let renewed = browser.post("/profile/recovery-codes", &[]).await;
    assert_eq!(renewed.heading(), "You have new recovery codes.");
    let removed = browser.post("/profile/totp/remove", &[]).await;
    assert_eq!(removed.header("location"), "/profile");
    let profile = browser.open("/profile").await;
    assert!(profile.text.contains("The second factor is off."));
}

#[tokio::test]
async fn sign_out_and_revocation_end_a_session_with_the_next_request() {
    for world in worlds().await {
        let mut phone = Browser::new(&world);
        phone.sign_in(EMAIL, PASSWORD).await;
        assert_eq!(phone.open("/profile").await.status, StatusCode::OK);
        let mut desk = Browser::with_session(&world, &world.admin);
        let profile = desk.open("/profile").await;
        let path = between(&profile.text, "action=\"/profile/sessions/", "\"");
        let done = desk.post(&format!("/profile/sessions/{path}"), &[]).await;
        assert_eq!(done.header("location"), "/profile", "{}", done.text);
        let ended = phone.open("/profile").await;
        assert_eq!(ended.header("location"), "/sign-in?return=%2Fprofile");
        phone.sign_in(EMAIL, PASSWORD).await;
        desk.open("/profile").await;
        desk.post("/profile/sessions/revoke-others", &[]).await;
        let ended = phone.open("/profile").await;
        assert_eq!(ended.status, StatusCode::SEE_OTHER);
        let secret = desk.cookies["__Host-session"].clone();
        desk.open("/profile").await;
        let out = desk.post("/sign-out", &[]).await;
        assert_eq!(out.header("location"), "/sign-in");
        assert_eq!(out.cookie("__Host-session").as_deref(), Some(""));
        let mut thief = Browser::with_session(&world, &secret);
        let refused = thief.open("/profile").await;
        assert_eq!(
            refused.status,
            StatusCode::SEE_OTHER,
            "the secret has ended, too"
        );
    }
}

#[tokio::test]
async fn a_form_of_the_profile_without_its_token_is_refused() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let mut browser = Browser::with_session(&world, &world.admin);
    for path in [
        "/sign-out",
        "/profile/totp",
        "/profile/password",
        "/profile/prove",
        "/profile/sessions/revoke-others",
    ] {
        let refused = browser.post(path, &[]).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
        assert_eq!(
            refused.heading(),
            "Forbidden. This form belongs to an earlier sign-in."
        );
    }
}

#[tokio::test]
async fn an_old_proof_leads_to_another_one_and_back() {
    for world in worlds().await {
        // The page of a command for organizations links to the proof of identity.
        let stale = world.stale_admin().await;
        let mut other = Browser::with_session(&world, &stale);
        let page = world.path("/orgs/{org}/signing-keys/rotate");
        assert_eq!(other.open(&page).await.status, StatusCode::OK);
        let asked = other.post(&page, &[]).await;
        assert_eq!(asked.status, StatusCode::FORBIDDEN, "{}", asked.text);
        assert_eq!(asked.heading(), "Confirm your identity.");
        let session = world.stale_admin().await;
        let mut browser = Browser::with_session(&world, &session);
        browser.open("/profile").await;
        let fields = [("password", "another horse battery")];
        let asked = browser.open("/profile/totp/remove").await;
        assert_eq!(
            asked.header("location"),
            "/profile/prove?return=%2Fprofile%2Ftotp%2Fremove",
            "{}",
            asked.text
        );
        let page = browser.open("/profile/prove?return=%2Fprofile").await;
        assert_eq!(page.heading(), "Confirm your identity.");
        let wrong = [("password", "wrong horse battery"), ("return", "/profile")];
        let refused = browser.post("/profile/prove", &wrong).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
        let right = [("password", PASSWORD), ("return", "/profile")];
        let proved = browser.post("/profile/prove", &right).await;
        assert_eq!(proved.header("location"), "/profile", "{}", proved.text);
        assert_ne!(browser.cookies["__Host-session"], session);
        browser.open("/profile").await;
        let changed = browser.post("/profile/password", &fields).await;
        assert_eq!(changed.header("location"), "/profile", "{}", changed.text);
        let profile = browser.open("/profile").await;
        assert!(profile.text.contains("The password is changed"));
    }
}

#[tokio::test]
async fn linked_identities_are_shown_and_unlinked() {
    for world in worlds().await {
        world.link_admin().await;
        let mut browser = Browser::with_session(&world, &world.admin);
        let profile = browser.open("/profile").await;
        assert!(profile.text.contains("ann-at-acme"), "{}", profile.text);
        let path = between(&profile.text, "action=\"/profile/identities/", "\"");
        let done = browser
            .post(&format!("/profile/identities/{path}"), &[])
            .await;
        assert_eq!(done.header("location"), "/profile", "{}", done.text);
        let profile = browser.open("/profile").await;
        assert!(!profile.text.contains("ann-at-acme"), "{}", profile.text);
        let link = format!("href=\"/sso/{}?link=1&amp;return=/profile\"", world.org);
        assert!(profile.text.contains(&link), "{}", profile.text);
        let stale = world.stale_admin().await;
        let profile = Browser::with_session(&world, &stale).open("/profile").await;
        assert!(!profile.text.contains(&link), "it needs a fresh proof");
    }
}

#[tokio::test]
async fn a_request_that_keeps_a_page_live_does_not_use_the_session() {
    for world in worlds().await {
        let session = world.stale_admin().await;
        let mut browser = Browser::with_session(&world, &session);
        let live = Request::get("/profile")
            .header("x-live", "1")
            .header(header::COOKIE, format!("__Host-session={session}"));
        let live = world.send(live.body(Body::empty()).unwrap()).await;
        assert_eq!(live.status, StatusCode::OK);
        assert!(!was_just_used(&world).await, "by the live request");
        browser.open("/profile").await;
        assert!(was_just_used(&world).await, "by a person");
    }
}

/// Returns true if the administrator's session, which began half an hour ago, was used since.
async fn was_just_used(world: &World) -> bool {
    let call = world.call().await;
    let sessions = world
        .app
        .sessions(&call, Page::newest(None, 100))
        .await
        .unwrap();
    let mut others = sessions.iter().filter(|found| !found.is_own);
    let session = &others.next().unwrap().session;
    session.created_at + SignedDuration::from_mins(20) < session.seen_at
}

#[tokio::test]
async fn a_link_of_an_administrator_takes_another_password() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let mut browser = Browser::new(&world);
    let page = browser.open("/password-resets/use?secret=abc").await;
    assert_eq!(page.heading(), "Choose another password.");
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    let fields = [("secret", "abc"), ("password", "another horse battery")];
    let refused = browser.post("/password-resets/use", &fields).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert_eq!(refused.heading(), "Unauthorized. This link has ended.");
    let user = world.add_member(Role::Reader).await;
    let call = world.call().await;
    let made = world
        .app
        .create_password_reset(&call, world.org, user)
        .await;
    let (_, secret) = made.unwrap();
    let fields = [
        ("secret", secret.reveal()),
        ("password", "another horse battery"),
    ];
    let used = browser.post("/password-resets/use", &fields).await;
    assert_eq!(used.header("location"), "/sign-in", "{}", used.text);
    let email = format!("{user}@example.com");
    let signed_in = browser.sign_in(&email, "another horse battery").await;
    assert_eq!(
        signed_in.header("location"),
        "/profile",
        "{}",
        signed_in.text
    );
}
