//! Sessions through identity providers: their rights, their end, and trials, which create no
//! session.

use crate::sso::{
    Answer, Browser, PUBLIC_URL, Site, asked, assert_refused, oidc, response, saml, sites,
};
use crate::world::{Credential, PASSWORD, app_with_sso};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use control_app::Presented;
use control_domain::{Membership, Role};
use control_testkit::{OidcBehaviour, OidcProvider, SamlProvider};
use control_wire::OrgId;
use serde_json::{Value, json};
use std::net::TcpListener;

impl Site {
    pub(crate) async fn ask(
        &self,
        by: &Browser,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Answer {
        self.call(&by.session(), method, path, body).await
    }

    /// Creates a user of the first organization with a password, and links an identity in a
    /// browser.
    pub(crate) async fn linked(&self, provider: &OidcProvider) -> Browser {
        let Credential::Session(secret) = self.world.user(self.org(), Role::Admin).await else {
            unreachable!("a session");
        };
        let mut browser = Browser::with_session(&secret);
        let begun = self.begin_here(&mut browser, "link=1").await;
        let query = provider.authorize(begun.location());
        let done = self.call_back(&mut browser, &query).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        browser
    }

    /// Begins a sign-in by a link on this site.
    pub(crate) async fn begin_here(&self, browser: &mut Browser, parameter: &str) -> Answer {
        let path = format!("/sso/{}?{parameter}&return=/profile", self.org());
        let request = Request::get(path).header("sec-fetch-site", "same-origin");
        let begun = self.send(0, browser, request.body(Body::empty()).unwrap());
        begun.await
    }

    async fn join(&self, org: OrgId, browser: &Browser) {
        let me = self.ask(browser, Method::GET, "/users/me", &Value::Null);
        let me: Value = serde_json::from_str(&me.await.text).unwrap();
        let mut tx = self.world.store.begin().await.unwrap();
        let membership = Membership {
            org,
            user: me["id"].as_str().unwrap().parse().unwrap(),
            role: Role::Admin,
            created_at: self.world.app.now(),
        };
        tx.insert_membership(membership).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) async fn sign_ins(&self, admin: &Credential) -> Vec<Value> {
        let path = format!("/orgs/{}/sso", self.org());
        let found = self.call(admin, Method::GET, &path, &Value::Null).await;
        let found: Value = serde_json::from_str(&found.text).unwrap();
        found["sign_ins"].as_array().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_cannot_sign_in_members_of_other_organizations() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        let mut connection = oidc(&provider.issuer);
        connection["oidc"]["group_mapping"] = json!({"ops": "admin"});
        site.connect(&connection).await;
        let own = site.linked(&provider).await;
        let other = site.world.other.org;
        site.join(other, &own).await;
        let own_path = format!("/orgs/{}", site.org());
        let other_path = format!("/orgs/{other}");
        let mut vouched = Browser::default();
        site.sign_in_by_oidc(&provider, &mut vouched).await;
        let status = async |browser: &Browser, method: Method, path: &str, body: &Value| {
            site.ask(browser, method, path, body).await.status
        };
        let get = async |browser: &Browser, path: &str| {
            status(browser, Method::GET, path, &Value::Null).await
        };
        assert_eq!(get(&own, &other_path).await, StatusCode::OK, "by password");
        assert_eq!(get(&vouched, &own_path).await, StatusCode::OK);
        assert_eq!(get(&vouched, &other_path).await, StatusCode::NOT_FOUND);
        // The session may not change the password or the second factor either, which would give
        // access to the other organization.
        let password = json!({"password": "one more good one"});
        let path = "/users/me/password";
        let changed = status(&vouched, Method::POST, path, &password).await;
        assert_eq!(changed, StatusCode::FORBIDDEN);
        let path = "/users/me/totp";
        let started = status(&vouched, Method::POST, path, &Value::Null).await;
        assert_eq!(started, StatusCode::FORBIDDEN);
        // A proof with the user's own password gives access to the rest.
        let proof = json!({"password": PASSWORD});
        let path = "/users/me/strong";
        let proven = site.ask(&vouched, Method::POST, path, &proof).await;
        assert_eq!(proven.status, StatusCode::NO_CONTENT, "{}", proven.text);
        vouched.take(proven.headers());
        assert_eq!(get(&vouched, &other_path).await, StatusCode::OK);
        let path = "/users/me/password";
        let changed = status(&vouched, Method::POST, path, &password).await;
        assert_eq!(changed, StatusCode::NO_CONTENT);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_a_provider_stays_in_its_organization_until_the_second_factor_is_proven() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        let mut connection = oidc(&provider.issuer);
        connection["oidc"]["group_mapping"] = json!({"ops": "admin"});
        site.connect(&connection).await;
        let own = site.linked(&provider).await;
        let other = site.world.other.org;
        site.join(other, &own).await;
        let me = site.ask(&own, Method::GET, "/users/me", &Value::Null).await;
        let me: Value = serde_json::from_str(&me.text).unwrap();
        let app = site
            .world
            .give_totp(me["id"].as_str().unwrap().parse().unwrap());
        let app = app.await;
        let mut vouched = Browser::default();
        site.sign_in_by_oidc(&provider, &mut vouched).await;
        for (method, path, body) in [
            (Method::PATCH, "/users/me", json!({"name": "Other"})),
            (Method::DELETE, "/users/me/sessions", Value::Null),
            (Method::GET, "/users/me/identities", Value::Null),
            (
                Method::POST,
                "/invitations/join",
                json!({"secret": "a".repeat(43)}),
            ),
        ] {
            let refused = site.ask(&vouched, method, path, &body).await;
            assert_eq!(
                refused.status,
                StatusCode::FORBIDDEN,
                "{path}: {}",
                refused.text
            );
        }
        let listed = async |path: &str| {
            let listed = site.ask(&vouched, Method::GET, path, &Value::Null).await;
            let listed: Value = serde_json::from_str(&listed.text).unwrap();
            listed["items"].as_array().unwrap().clone()
        };
        let orgs = listed("/orgs").await;
        assert_eq!(orgs.len(), 1, "{orgs:?}");
        assert_eq!(orgs[0]["id"], json!(site.org()));
        let sessions = listed("/users/me/sessions").await;
        assert_eq!(sessions.len(), 1, "the user's own session is not shown");
        // The password is only a part of the user's own proof.
        let strong = "/users/me/strong";
        let proof = json!({"password": PASSWORD});
        let refused = site.ask(&vouched, Method::POST, strong, &proof).await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{}",
            refused.text
        );
        let proof = json!({"code": site.world.code(&app)});
        let proven = site.ask(&vouched, Method::POST, strong, &proof).await;
        assert_eq!(proven.status, StatusCode::NO_CONTENT, "{}", proven.text);
        vouched.take(proven.headers());
        let path = format!("/orgs/{other}");
        let found = site.ask(&vouched, Method::GET, &path, &Value::Null).await;
        assert_eq!(found.status, StatusCode::OK);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_site_does_not_replace_a_session_without_a_question() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        let admin = site.connect(&oidc(&provider.issuer)).await;
        let Credential::Session(secret) = &admin else {
            unreachable!("a session");
        };
        let path = format!("/sso/{}?return=/api-keys", site.org());
        for (mut browser, from, status) in [
            (
                Browser::with_session(secret),
                "cross-site",
                StatusCode::CONFLICT,
            ),
            (
                Browser::with_session(secret),
                "same-site",
                StatusCode::CONFLICT,
            ),
            (
                Browser::with_session(secret),
                "same-origin",
                StatusCode::SEE_OTHER,
            ),
            (Browser::with_session(secret), "none", StatusCode::SEE_OTHER),
            (Browser::default(), "cross-site", StatusCode::SEE_OTHER),
        ] {
            let request = Request::get(&path).header("sec-fetch-site", from);
            let request = request.body(Body::empty()).unwrap();
            let begun = site.send(0, &mut browser, request).await;
            assert_eq!(begun.status, status, "{from}: {}", begun.text);
            if status == StatusCode::CONFLICT {
                assert!(
                    begun.text.contains(&format!("href=\"{path}\"")),
                    "{}",
                    begun.text
                );
                assert!(browser.value("__Host-sign-in").is_none());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_a_provider_share_their_tries() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        site.connect(&oidc(&provider.issuer)).await;
        site.linked(&provider).await;
        let mut statuses = Vec::new();
        for _ in 0..6 {
            let mut vouched = Browser::default();
            site.sign_in_by_oidc(&provider, &mut vouched).await;
            for _ in 0..2 {
                let guess = json!({"password": "a wrong one, surely"});
                let path = "/users/me/strong";
                let refused = site.ask(&vouched, Method::POST, path, &guess).await;
                statuses.push(refused.status);
            }
        }
        assert!(
            !statuses[..10].contains(&StatusCode::TOO_MANY_REQUESTS),
            "{statuses:?}"
        );
        assert_eq!(statuses[10..], [StatusCode::TOO_MANY_REQUESTS; 2]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_joins_another_organization_by_its_own_proof_if_it_has_one() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        site.connect(&oidc(&provider.issuer)).await;
        // An administrator of the first organization may have set the password.
        site.linked(&provider).await;
        let admin = site.world.user(site.world.other.org, Role::Admin).await;
        let path = format!("/orgs/{}/invitations", site.world.other.org);
        let body = json!({"email": "ann@example.test", "role": "admin"});
        let invited = site.call(&admin, Method::POST, &path, &body).await;
        assert_eq!(invited.status, StatusCode::CREATED, "{}", invited.text);
        let invited: Value = serde_json::from_str(&invited.text).unwrap();
        let mut vouched = Browser::default();
        site.sign_in_by_oidc(&provider, &mut vouched).await;
        let body = json!({"secret": invited["secret"]});
        let join = "/invitations/join";
        let refused = site.ask(&vouched, Method::POST, join, &body).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
        assert!(
            refused.text.contains("STEP_UP_REQUIRED"),
            "{}",
            refused.text
        );
        let proof = json!({"password": PASSWORD});
        let proven = site
            .ask(&vouched, Method::POST, "/users/me/strong", &proof)
            .await;
        vouched.take(proven.headers());
        let joined = site.ask(&vouched, Method::POST, join, &body).await;
        assert!(joined.status.is_success(), "{}", joined.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_a_password_needs_one_before_it_joins_another_organization() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        let own_admin = site.connect(&oidc(&provider.issuer)).await;
        let mut vouched = Browser::default();
        site.sign_in_by_oidc(&provider, &mut vouched).await;
        let other = site.world.other.org;
        let admin = site.world.user(other, Role::Admin).await;
        let path = format!("/orgs/{other}/invitations");
        let body = json!({"email": "new@example.test", "role": "reader"});
        let invited = site.call(&admin, Method::POST, &path, &body).await;
        let invited: Value = serde_json::from_str(&invited.text).unwrap();
        let body = json!({"secret": invited["secret"]});
        let join = "/invitations/join";
        let refused = site.ask(&vouched, Method::POST, join, &body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.text.contains("second factor"), "{}", refused.text);
        let (org, user) = (site.org(), site.own_id(&vouched).await);
        let path = format!("/orgs/{org}/members/{user}/reset-password");
        let link = site.call(&own_admin, Method::POST, &path, &Value::Null);
        let link: Value = serde_json::from_str(&link.await.text).unwrap();
        let new = json!({"secret": link["secret"], "password": PASSWORD});
        let path = "/password-resets/use";
        let set = site.call(&Credential::None, Method::POST, path, &new).await;
        assert!(set.status.is_success(), "{}", set.text);
        let mut vouched = Browser::default();
        site.sign_in_by_oidc(&provider, &mut vouched).await;
        let proof = json!({"password": PASSWORD});
        let path = "/users/me/strong";
        let proven = site.ask(&vouched, Method::POST, path, &proof).await;
        vouched.take(proven.headers());
        let joined = site.ask(&vouched, Method::POST, join, &body).await;
        assert!(joined.status.is_success(), "{}", joined.text);
        let path = format!("/orgs/{other}");
        let reached = site.ask(&vouched, Method::GET, &path, &Value::Null);
        assert_eq!(reached.await.status, StatusCode::OK);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_tries_the_connection_and_nothing_else_changes() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        let admin = site.connect(&oidc(&provider.issuer)).await;
        let Credential::Session(secret) = &admin else {
            unreachable!("a session");
        };
        let mut browser = Browser::with_session(secret);
        let begun = site.begin_here(&mut browser, "try=1").await;
        let query = provider.authorize(begun.location());
        let done = site.call_back(&mut browser, &query).await;
        assert_eq!(
            (done.status, done.location()),
            (StatusCode::SEE_OTHER, "/profile"),
            "{}",
            done.text
        );
        let session = browser.value("__Host-session");
        assert_eq!(session, Some(secret.as_str()), "the session is the same");
        let tried = site.sign_ins(&admin).await.remove(0);
        assert_eq!(tried["is_trial"], true, "{tried}");
        assert_eq!(tried["role"], "operator", "{tried}");
        assert_eq!(tried["subject"], "ann", "{tried}");
        assert_eq!(site.world.audited("sso.tried").await.len(), 1);
        assert_eq!(site.world.audited("user.provisioned").await.len(), 0);
        // A failed trial is marked as one, whatever rule it violates.
        let path = format!("/orgs/{}/members", site.org());
        let members = site.call(&admin, Method::GET, &path, &Value::Null).await;
        assert!(!members.text.contains("ann@example.test"));
        let honest = OidcBehaviour::honest("ann", &["ops"]);
        for (rule, lie) in [
            ("no group", OidcBehaviour::honest("ann", &["none"])),
            (
                "`nonce`",
                OidcBehaviour {
                    claims: json!({"nonce": "other"}),
                    ..honest
                },
            ),
        ] {
            provider.behave(lie);
            let begun = site.begin_here(&mut browser, "try=1").await;
            let query = provider.authorize(begun.location());
            let refused = site.call_back(&mut browser, &query).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN);
            let tried = site.sign_ins(&admin).await.remove(0);
            assert_eq!(tried["is_trial"], true, "{tried}");
            assert!(tried["refusal"].to_string().contains(rule), "{tried}");
        }
        // A trial cannot be started from another site, by an operator, or without a session.
        let path = format!("/sso/{}?try=1", site.org());
        let refused = site.get(0, &mut browser, &path).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        let Credential::Session(secret) = site.world.user(site.org(), Role::Operator).await else {
            unreachable!("a session");
        };
        let mut operator = Browser::with_session(&secret);
        let refused = site.begin_here(&mut operator, "try=1").await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        let refused = site.begin_here(&mut Browser::default(), "try=1").await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_by_saml_is_of_the_administrator_that_began() {
    for site in sites().await {
        let provider = SamlProvider::new("https://idp.test/saml");
        let admin = site.connect(&saml(&site, &provider)).await;
        let Credential::Session(secret) = &admin else {
            unreachable!("a session");
        };
        let acs = format!("/sso/{}/saml/acs", site.org());
        for (number, is_signed_out) in [false, true].into_iter().enumerate() {
            let mut browser = Browser::with_session(secret);
            let begun = site.begin_here(&mut browser, "try=1").await;
            let (request, relay) = asked(begun.location());
            let suffix = number.to_string();
            let xml = response(&site, &provider, Some(&request), &suffix, &["ops"]);
            let fields = [("SAMLResponse", &*xml), ("RelayState", &*relay)];
            let accepted = site.post_form(1, &acs, &fields).await;
            assert_eq!(accepted.status, StatusCode::SEE_OTHER, "{}", accepted.text);
            if is_signed_out {
                browser.drop_session();
            }
            let done = site.get(0, &mut browser, accepted.location()).await;
            let tried = site.sign_ins(&admin).await.remove(0);
            assert_eq!(tried["is_trial"], true, "{tried}");
            if is_signed_out {
                assert_refused(&done, &browser);
                continue;
            }
            assert_eq!(done.location(), "/profile", "{}", done.text);
            assert_eq!(tried["role"], "operator", "{tried}");
        }
        assert_eq!(site.world.audited("user.provisioned").await.len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_without_a_user_do_not_push_users_out_of_the_list() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        let admin = site.connect(&oidc(&provider.issuer)).await;
        site.sign_in_by_oidc(&provider, &mut Browser::default())
            .await;
        for _ in 0..12 {
            let mut stranger = Browser::default();
            let query = provider.authorize(&site.begin(&mut stranger).await);
            let (state, _) = query.split_once('&').unwrap();
            let denied = format!("{state}&error=access_denied");
            let refused = site.call_back(&mut stranger, &denied).await;
            assert_refused(&refused, &stranger);
        }
        let listed = site.sign_ins(&admin).await;
        assert_eq!(listed.len(), 11, "{listed:?}");
        assert_eq!(listed[10]["subject"], "ann");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_provider_is_not_asked_for_each_browser() {
    for site in sites().await {
        // Counts connections, and would close each without a response.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        listener.set_nonblocking(true).unwrap();
        site.connect(&oidc(&issuer)).await;
        let path = format!("/sso/{}", site.org());
        let silent = std::thread::spawn({
            let listener = listener.try_clone().unwrap();
            move || {
                listener.set_nonblocking(false).unwrap();
                drop(listener.accept());
                listener.set_nonblocking(true).unwrap();
            }
        });
        for _ in 0..3 {
            let refused = site.get(0, &mut Browser::default(), &path).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
        }
        silent.join().unwrap();
        assert!(listener.accept().is_err(), "it was asked twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_out_leads_to_the_provider_that_vouched() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour {
            discovery: json!({"end_session_endpoint": "https://idp.test/logout?tenant=7"}),
            ..OidcBehaviour::honest("ann", &["ops"])
        });
        let admin = site.connect(&oidc(&provider.issuer)).await;
        let mut browser = Browser::default();
        site.sign_in_by_oidc(&provider, &mut browser).await;
        let app = app_with_sso(&site.world, PUBLIC_URL);
        let logout = async |by: &Credential| {
            let Credential::Session(secret) = by else {
                unreachable!("a session");
            };
            let presented = Presented::Session(secret);
            let actor = app.authenticate(presented, None, app.now()).await.unwrap();
            let call = control_app::Call {
                actor,
                ..control_app::Call::system(app.now())
            };
            app.sign_out(&call).await.unwrap();
            app.provider_logout(&call).await.unwrap()
        };
        assert_eq!(logout(&admin).await, None, "it signed in by password");
        let expected = "https://idp.test/logout?tenant=7&client_id=controld\
                        &post_logout_redirect_uri=https%3A%2F%2Fcontrold.test%2Fsign-in";
        assert_eq!(logout(&browser.session()).await.as_deref(), Some(expected));
        let me = site.ask(&browser, Method::GET, "/users/me", &Value::Null);
        assert_eq!(me.await.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_identity_of_a_user_without_a_password_cannot_be_unlinked() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        site.connect(&oidc(&provider.issuer)).await;
        let mut browser = Browser::default();
        site.sign_in_by_oidc(&provider, &mut browser).await;
        let path = "/users/me/identities";
        let listed = site.ask(&browser, Method::GET, path, &Value::Null).await;
        let listed: Value = serde_json::from_str(&listed.text).unwrap();
        let id = listed["items"][0]["id"].as_str().unwrap();
        let path = format!("{path}/{id}");
        let kept = site.ask(&browser, Method::DELETE, &path, &Value::Null);
        assert_eq!(kept.await.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
}
