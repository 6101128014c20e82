//! Proofs of identity by a provider: only an authentication for the current request counts.

use crate::sso::{
    Answer, Browser, PUBLIC_URL, Site, asked, assert_refused, oidc, request_xml, response, saml,
    sites,
};
use axum::http::{Method, StatusCode};
use base64::{Engine, engine::general_purpose::STANDARD};
use control_testkit::{OidcBehaviour, OidcProvider, SamlAnswer, SamlProvider};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// Provider of an administrator that authenticated the user `minutes` ago; `None` sends no time.
fn authenticated(minutes: Option<i64>) -> OidcBehaviour {
    let at = |minutes| Timestamp::now() - SignedDuration::from_mins(minutes);
    OidcBehaviour {
        claims: json!({"auth_time": minutes.map(|minutes| at(minutes).as_second())}),
        ..OidcBehaviour::honest("ann", &["ops"])
    }
}

fn administrators(mut connection: Value, protocol: &str) -> Value {
    connection[protocol]["group_mapping"] = json!({"ops": "admin"});
    connection
}

impl Site {
    /// Sends an operation that needs a fresh proof.
    async fn invite(&self, by: &Browser, email: &str) -> Answer {
        let path = format!("/orgs/{}/invitations", self.org());
        let body = json!({"email": email, "role": "reader"});
        self.ask(by, Method::POST, &path, &body).await
    }

    async fn prove_by_oidc(&self, provider: &OidcProvider, browser: &mut Browser) -> Answer {
        let begun = self.begin_here(browser, "prove=1").await;
        let location = begun.location();
        assert!(location.contains("&prompt=login&max_age=0"), "{location}");
        let query = provider.authorize(location);
        self.call_back(browser, &query).await
    }

    async fn session_count(&self, browser: &Browser) -> usize {
        let path = "/users/me/sessions";
        let listed = self.ask(browser, Method::GET, path, &Value::Null).await;
        let listed: Value = serde_json::from_str(&listed.text).unwrap();
        listed["items"].as_array().unwrap().len()
    }
}

fn assert_no_proof(answer: &Answer) {
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.text);
    assert!(
        answer.text.contains("No proof of identity"),
        "{}",
        answer.text
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_a_provider_is_as_fresh_as_the_authentication_there() {
    for site in sites().await {
        let provider = OidcProvider::start(authenticated(None));
        let connection = administrators(oidc(&provider.issuer), "oidc");
        site.connect(&connection).await;
        for (minutes, status) in [
            (None, StatusCode::FORBIDDEN),
            (Some(11), StatusCode::FORBIDDEN),
            (Some(5), StatusCode::CREATED),
        ] {
            provider.behave(authenticated(minutes));
            let mut browser = Browser::default();
            site.sign_in_by_oidc(&provider, &mut browser).await;
            let invited = site.invite(&browser, "bob@example.test").await;
            assert_eq!(invited.status, status, "{minutes:?}: {}", invited.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openid_connect_proves_an_identity_by_an_authentication_for_this_request() {
    for site in sites().await {
        let provider = OidcProvider::start(authenticated(None));
        let connection = administrators(oidc(&provider.issuer), "oidc");
        let admin = site.connect(&connection).await;
        let mut browser = Browser::default();
        site.sign_in_by_oidc(&provider, &mut browser).await;
        let before = browser.clone();
        for minutes in [None, Some(3), Some(60)] {
            provider.behave(authenticated(minutes));
            let refused = site.prove_by_oidc(&provider, &mut browser).await;
            assert_no_proof(&refused);
            let reason = site.sign_ins(&admin).await.remove(0);
            assert_eq!(reason["subject"], "ann", "{reason}");
            let rule = reason["refusal"].as_str().unwrap();
            assert!(rule.contains("`max_age=0`"), "{rule}");
        }
        provider.behave(OidcBehaviour::honest("bob", &["ops"]));
        let refused = site.prove_by_oidc(&provider, &mut browser).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
        let rule = site.sign_ins(&admin).await.remove(0)["refusal"].to_string();
        assert!(rule.contains("another user"), "{rule}");
        let invited = site.invite(&browser, "bob@example.test").await;
        assert!(
            invited.text.contains("STEP_UP_REQUIRED"),
            "{}",
            invited.text
        );
        provider.behave(authenticated(Some(0)));
        let proven = site.prove_by_oidc(&provider, &mut browser).await;
        assert_eq!(proven.location(), "/profile", "{}", proven.text);
        let invited = site.invite(&browser, "bob@example.test").await;
        assert_eq!(invited.status, StatusCode::CREATED, "{}", invited.text);
        // The session is the same, with a new secret.
        assert_eq!(site.session_count(&browser).await, 1);
        let old = site
            .ask(&before, Method::GET, "/users/me", &Value::Null)
            .await;
        assert_eq!(old.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_by_password_is_not_renewed_by_a_provider() {
    for site in sites().await {
        let provider = OidcProvider::start(authenticated(Some(0)));
        let connection = administrators(oidc(&provider.issuer), "oidc");
        let admin = site.connect(&connection).await;
        let mut browser = site.linked(&provider).await;
        let before = browser.value("__Host-session").unwrap().to_owned();
        let refused = site.prove_by_oidc(&provider, &mut browser).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
        assert_eq!(browser.value("__Host-session"), Some(before.as_str()));
        let rule = site.sign_ins(&admin).await.remove(0)["refusal"].to_string();
        assert!(rule.contains("another browser or session"), "{rule}");
        let mut nobody = Browser::default();
        let begun = site.begin_here(&mut nobody, "prove=1").await;
        assert_eq!(begun.status, StatusCode::UNAUTHORIZED, "{}", begun.text);
    }
}

/// Creates a response with another authentication time.
fn stale_response(site: &Site, provider: &SamlProvider, request: &str, suffix: &str) -> String {
    let now = Timestamp::now();
    let acs_url = format!("{PUBLIC_URL}/sso/{}/saml/acs", site.org());
    let xml = provider.unsigned(&SamlAnswer {
        sp_entity_id: "urn:controld",
        acs_url: &acs_url,
        request_id: Some(request),
        name_id: "ann",
        attributes: &[("email", &["ann@example.test"]), ("groups", &["ops"])],
        suffix,
        now,
    });
    let earlier = now - SignedDuration::from_mins(3);
    let (own, other) = (
        format!("AuthnInstant=\"{now}\""),
        format!("AuthnInstant=\"{earlier}\""),
    );
    assert!(xml.contains(&own));
    let xml = xml.replace(&own, &other);
    STANDARD.encode(provider.sign(&xml, &format!("_assertion{suffix}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn saml_proves_an_identity_by_an_authentication_for_this_request() {
    for site in sites().await {
        let provider = SamlProvider::new("https://idp.test/saml");
        let connection = administrators(saml(&site, &provider), "saml");
        let admin = site.connect(&connection).await;
        let acs = format!("/sso/{}/saml/acs", site.org());
        let mut browser = Browser::default();
        let (request, relay) = asked(&site.begin(&mut browser).await);
        let xml = response(&site, &provider, Some(&request), "1", &["ops"]);
        let fields = [
            ("SAMLResponse", xml.as_str()),
            ("RelayState", relay.as_str()),
        ];
        let accepted = site.post_form(1, &acs, &fields).await;
        let signed_in = site.get(0, &mut browser, accepted.location()).await;
        assert_eq!(
            signed_in.status,
            StatusCode::SEE_OTHER,
            "{}",
            signed_in.text
        );
        let before = browser.clone();
        for (suffix, is_new) in [("2", false), ("3", true)] {
            let begun = site.begin_here(&mut browser, "prove=1").await;
            let (xml, _) = request_xml(begun.location());
            assert!(xml.contains(" ForceAuthn=\"true\""), "{xml}");
            let (request, relay) = asked(begun.location());
            let xml = if is_new {
                response(&site, &provider, Some(&request), suffix, &["ops"])
            } else {
                stale_response(&site, &provider, &request, suffix)
            };
            let fields = [
                ("SAMLResponse", xml.as_str()),
                ("RelayState", relay.as_str()),
            ];
            let accepted = site.post_form(1, &acs, &fields).await;
            if !is_new {
                assert_no_proof(&accepted);
                let rule = site.sign_ins(&admin).await.remove(0)["refusal"].to_string();
                assert!(rule.contains("ForceAuthn"), "{rule}");
                continue;
            }
            let proven = site.get(0, &mut browser, accepted.location()).await;
            assert_eq!(proven.location(), "/profile", "{}", proven.text);
        }
        assert_eq!(site.session_count(&browser).await, 1);
        let old = site
            .ask(&before, Method::GET, "/users/me", &Value::Null)
            .await;
        assert_eq!(old.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_of_a_provider_ends_with_its_connection() {
    for site in sites().await {
        let provider = SamlProvider::new("https://idp.test/saml");
        let admin = site.connect(&saml(&site, &provider)).await;
        let acs = format!("/sso/{}/saml/acs", site.org());
        let mut browser = Browser::default();
        let (request, relay) = asked(&site.begin(&mut browser).await);
        let xml = response(&site, &provider, Some(&request), "1", &["ops"]);
        let fields = [
            ("SAMLResponse", xml.as_str()),
            ("RelayState", relay.as_str()),
        ];
        let accepted = site.post_form(1, &acs, &fields).await;
        let path = format!("/orgs/{}/sso", site.org());
        let deleted = site.call(&admin, Method::DELETE, &path, &Value::Null).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.text);
        let next = saml(&site, &SamlProvider::new("https://other.test/saml"));
        let connected = site.call(&admin, Method::PUT, &path, &next).await;
        assert_eq!(connected.status, StatusCode::OK, "{}", connected.text);
        let refused = site.get(0, &mut browser, accepted.location()).await;
        assert_refused(&refused, &browser);
    }
}
