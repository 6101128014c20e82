//! Sign-in through identity providers with two replicas: the provider's response arrives at the
//! other one.

use crate::world::{Credential, World, app_with_sso, worlds};
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use base64::{Engine, engine::general_purpose::STANDARD};
use control_api::router;
use control_domain::Role;
use control_http::SessionCookie;
use control_testkit::{OidcBehaviour, OidcProvider, SamlAnswer, SamlProvider};
use control_wire::OrgId;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use tower::ServiceExt;

pub(crate) const PUBLIC_URL: &str = "https://controld.test";
const ATTEMPT: &str = "__Host-sign-in";
const SESSION: &str = "__Host-session";

/// Two replicas on one database, and the browser of a user.
pub(crate) struct Site {
    pub(crate) world: World,
    replicas: [Router; 2],
    address: AtomicU32,
}

/// A browser and its cookies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Browser {
    cookies: Vec<(String, String)>,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    pub(crate) fn location(&self) -> &str {
        let location = self.headers.get(header::LOCATION);
        location.map_or("", |location| location.to_str().unwrap())
    }
}

impl Browser {
    /// Creates a browser in which a user is signed in.
    pub(crate) fn with_session(secret: &str) -> Self {
        Self {
            cookies: vec![(SESSION.to_owned(), secret.to_owned())],
        }
    }

    pub(crate) fn drop_session(&mut self) {
        self.cookies.retain(|(own, _)| own != SESSION);
    }

    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let found = self.cookies.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn session(&self) -> Credential {
        Credential::Session(self.value(SESSION).unwrap_or_default().to_owned())
    }

    pub(crate) fn take(&mut self, headers: &HeaderMap) {
        for field in headers.get_all(header::SET_COOKIE) {
            let text = field.to_str().unwrap();
            assert!(text.contains("; HttpOnly; SameSite=Lax; Secure"), "{text}");
            let (pair, _) = text.split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.retain(|(own, _)| own != name);
            if !value.is_empty() {
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
    }
}

pub(crate) async fn sites() -> Vec<Site> {
    let mut sites = Vec::new();
    for world in worlds().await {
        let mut replicas = Vec::new();
        for _ in 0..2 {
            let app = app_with_sso(&world, PUBLIC_URL);
            replicas.push(router(&app, Router::new(), SessionCookie::Tls));
        }
        sites.push(Site {
            world,
            replicas: replicas.try_into().unwrap(),
            address: AtomicU32::new(0x0b00_0001),
        });
    }
    sites
}

impl Site {
    pub(crate) fn org(&self) -> OrgId {
        self.world.org
    }

    pub(crate) async fn send(
        &self,
        replica: usize,
        browser: &mut Browser,
        request: Request<Body>,
    ) -> Answer {
        let (mut parts, body) = request.into_parts();
        if !browser.cookies.is_empty() && parts.method == Method::GET {
            let pairs = browser
                .cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            let text = pairs.collect::<Vec<_>>().join("; ");
            parts.headers.insert(header::COOKIE, text.parse().unwrap());
        }
        let address = Ipv4Addr::from(self.address.fetch_add(1, Ordering::Relaxed));
        let peer = SocketAddr::from((address, 40_000));
        parts.extensions.insert(ConnectInfo(peer));
        let router = self.replicas[replica].clone();
        let response = router
            .oneshot(Request::from_parts(parts, body))
            .await
            .unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        browser.take(&parts.headers);
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn get(&self, replica: usize, browser: &mut Browser, path: &str) -> Answer {
        let request = Request::get(path).body(Body::empty()).unwrap();
        self.send(replica, browser, request).await
    }

    /// Sends a form from another site in a browser without cookies.
    pub(crate) async fn post_form(
        &self,
        replica: usize,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Answer {
        let mut browser = Browser::default();
        self.post_form_in(&mut browser, replica, path, fields).await
    }

    /// Sends a form from another site. The request carries no cookie of the browser, which keeps
    /// those that the answer sets.
    async fn post_form_in(
        &self,
        browser: &mut Browser,
        replica: usize,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Answer {
        let form = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        let request = Request::post(path)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "cross-site")
            .header(header::ORIGIN, "https://idp.test")
            .body(Body::from(form))
            .unwrap();
        self.send(replica, browser, request).await
    }

    /// Sends a request to the first replica.
    pub(crate) async fn call(
        &self,
        by: &Credential,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"));
        request = match by {
            Credential::Session(secret) => {
                request.header(header::COOKIE, format!("{SESSION}={secret}"))
            }
            Credential::Bearer(secret) => {
                request.header(header::AUTHORIZATION, format!("Bearer {secret}"))
            }
            Credential::NodeKey(_) | Credential::None => request,
        };
        let body = if body.is_null() {
            Body::empty()
        } else {
            request = request.header(header::CONTENT_TYPE, "application/json");
            Body::from(body.to_string())
        };
        let mut nobody = Browser::default();
        self.send(0, &mut nobody, request.body(body).unwrap()).await
    }

    async fn admin(&self) -> Credential {
        self.world.user(self.org(), Role::Admin).await
    }

    pub(crate) async fn connect(&self, body: &Value) -> Credential {
        let admin = self.admin().await;
        let path = format!("/orgs/{}/sso", self.org());
        let done = self.call(&admin, Method::PUT, &path, body).await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.text);
        let root = self.world.instance_admin().await;
        let domains = json!({"domains": ["example.test"]});
        let done = self
            .call(&root, Method::PUT, &format!("{path}/domains"), &domains)
            .await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.text);
        admin
    }

    /// Begins a sign-in at the first replica; returns the provider's URL.
    pub(crate) async fn begin(&self, browser: &mut Browser) -> String {
        let path = format!("/sso/{}?return=/projects", self.org());
        let begun = self.get(0, browser, &path).await;
        assert_eq!(begun.status, StatusCode::SEE_OTHER, "{}", begun.text);
        begun.location().to_owned()
    }

    /// Completes a sign-in at the second replica.
    pub(crate) async fn call_back(&self, browser: &mut Browser, query: &str) -> Answer {
        let path = format!("/sso/{}/oidc/callback?{query}", self.org());
        self.get(1, browser, &path).await
    }

    pub(crate) async fn sign_in_by_oidc(
        &self,
        provider: &OidcProvider,
        browser: &mut Browser,
    ) -> Answer {
        let location = self.begin(browser).await;
        let query = provider.authorize(&location);
        self.call_back(browser, &query).await
    }

    /// Returns the session's roles from `/users/me`; null without a session.
    async fn roles(&self, browser: &Browser) -> Value {
        let me = self
            .call(&browser.session(), Method::GET, "/users/me", &Value::Null)
            .await;
        let body: Value = serde_json::from_str(&me.text).unwrap();
        body["memberships"].clone()
    }

    /// Returns the reason for the last refused sign-in.
    async fn last_refusal(&self, admin: &Credential) -> Value {
        let path = format!("/orgs/{}/sso", self.org());
        let found = self.call(admin, Method::GET, &path, &Value::Null).await;
        let body: Value = serde_json::from_str(&found.text).unwrap();
        body["sign_ins"][0]["refusal"].clone()
    }
}

pub(crate) fn oidc(issuer: &str) -> Value {
    json!({"oidc": {
        "client_id": "controld", "client_secret": "client-secret", "issuer": issuer,
        "group_mapping": {"ops": "operator", "staff": "reader"},
    }})
}

pub(crate) fn saml(site: &Site, provider: &SamlProvider) -> Value {
    json!({"saml": {
        "idp_entity_id": provider.entity_id, "idp_sso_url": "https://idp.test/sso",
        "idp_cert_pem": provider.certificate_pem(), "sp_entity_id": "urn:controld",
        "assertion_consumer_service_url": format!("{PUBLIC_URL}/sso/{}/saml/acs", site.org()),
        "group_mapping": {"ops": "operator", "staff": "reader"},
    }})
}

pub(crate) fn assert_refused(answer: &Answer, browser: &Browser) {
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.text);
    assert!(answer.text.contains("Sign-in refused"), "{}", answer.text);
    assert_eq!(browser.value(SESSION), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_signs_in_by_oidc_and_has_the_role_of_its_groups() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["staff", "ops"]));
        let admin = site.connect(&oidc(&provider.issuer)).await;
        let mut browser = Browser::default();
        let done = site.sign_in_by_oidc(&provider, &mut browser).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        assert_eq!(done.location(), "/projects");
        assert_eq!(browser.value(ATTEMPT), None);
        let roles = site.roles(&browser).await.to_string();
        assert!(roles.contains("operator"), "{roles}");
        assert_eq!(site.last_refusal(&admin).await, Value::Null);
        // Fewer groups at the next sign-in: the role is lowered at once, for the first session too.
        provider.behave(OidcBehaviour::honest("ann", &["staff"]));
        let mut second = Browser::default();
        site.sign_in_by_oidc(&provider, &mut second).await;
        let roles = site.roles(&browser).await.to_string();
        assert!(roles.contains("reader"), "{roles}");
        // Without a group the sign-in is refused, and both sessions end.
        provider.behave(OidcBehaviour::honest("ann", &["other"]));
        let mut third = Browser::default();
        let refused = site.sign_in_by_oidc(&provider, &mut third).await;
        assert_refused(&refused, &third);
        for browser in [browser, second] {
            let me = site
                .call(&browser.session(), Method::GET, "/users/me", &Value::Null)
                .await;
            assert_eq!(me.status, StatusCode::UNAUTHORIZED);
        }
        let reason = site.last_refusal(&admin).await.to_string();
        assert!(reason.contains("no group of the user"), "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_is_good_once_and_for_the_browser_that_began() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        site.connect(&oidc(&provider.issuer)).await;
        let mut browser = Browser::default();
        let query = provider.authorize(&site.begin(&mut browser).await);
        let mut other = Browser::default();
        site.begin(&mut other).await;
        let refused = site.call_back(&mut other, &query).await;
        assert_refused(&refused, &other);
        // The refused attempt cannot be repeated.
        let refused = site.call_back(&mut browser, &query).await;
        assert_refused(&refused, &browser);
        let query = provider.authorize(&site.begin(&mut browser).await);
        let mut again = browser.clone();
        let done = site.call_back(&mut browser, &query).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER);
        let refused = site.call_back(&mut again, &query).await;
        assert_refused(&refused, &again);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn false_claims_of_a_provider_end_the_sign_in() {
    let now = Timestamp::now().as_second();
    let honest = || OidcBehaviour::honest("ann", &["ops"]);
    let claims = |claims| OidcBehaviour { claims, ..honest() };
    let discovery = |discovery| OidcBehaviour {
        discovery,
        ..honest()
    };
    let lies = [
        ("`nonce`", claims(json!({"nonce": "other"}))),
        ("`nonce`", claims(json!({"nonce": null}))),
        ("`iss`", claims(json!({"iss": "https://evil.test"}))),
        ("`aud`", claims(json!({"aud": "other"}))),
        ("`azp`", claims(json!({"aud": ["controld", "other"]}))),
        ("`sub`", claims(json!({"sub": null}))),
        ("expired", claims(json!({"exp": now - 3_600}))),
        ("not valid yet", claims(json!({"iat": now + 3_600}))),
        ("`at_hash`", claims(json!({"at_hash": "AAAA"}))),
        ("another `sub`", claims(json!({"sub": "root"}))),
        (
            "another issuer",
            discovery(json!({"issuer": "https://evil.test"})),
        ),
        (
            "no key",
            OidcBehaviour {
                key_id: "k2".to_owned(),
                ..honest()
            },
        ),
        (
            "token endpoint",
            OidcBehaviour {
                token_redirect: Some("http://127.0.0.1:1/".to_owned()),
                ..honest()
            },
        ),
    ];
    for site in sites().await {
        for (rule, lie) in lies.clone() {
            // A new provider, because documents of the former one are cached.
            let provider = OidcProvider::start(honest());
            let admin = site.connect(&oidc(&provider.issuer)).await;
            let mut browser = Browser::default();
            let location = site.begin(&mut browser).await;
            provider.behave(lie);
            let query = provider.authorize(&location);
            let refused = site.call_back(&mut browser, &query).await;
            assert_refused(&refused, &browser);
            let reason = site.last_refusal(&admin).await.to_string();
            assert!(reason.contains(rule), "{rule}: {reason}");
            assert!(!reason.contains("client-secret"), "{reason}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_callback_names_the_issuer_where_the_provider_announces_it() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        site.connect(&oidc(&provider.issuer)).await;
        for (from, to) in [
            ("&iss=", "&x="),
            ("iss=http%3A%2F%2F", "iss=https%3A%2F%2Fevil."),
        ] {
            let mut browser = Browser::default();
            let query = provider.authorize(&site.begin(&mut browser).await);
            let refused = site.call_back(&mut browser, &query.replace(from, to)).await;
            assert_refused(&refused, &browser);
        }
        let mut browser = Browser::default();
        let query = provider.authorize(&site.begin(&mut browser).await);
        let (state, _) = query.split_once('&').unwrap();
        let denied = format!(
            "{state}&error=access_denied&iss={}",
            query.rsplit_once('=').unwrap().1
        );
        let refused = site.call_back(&mut browser, &denied).await;
        assert_refused(&refused, &browser);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_never_links_and_foreign_domains_make_no_users() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        let admin = site.connect(&oidc(&provider.issuer)).await;
        let taken = site.world.new_user(false);
        let mut tx = site.world.store.begin().await.unwrap();
        tx.insert_user(&taken).await.unwrap();
        tx.commit().await.unwrap();
        let cases = [
            (json!({"email": taken.email.as_str()}), "domain"),
            (json!({"email": "ann@other.test"}), "domain"),
            (
                json!({"email": "ann@example.test", "email_verified": false}),
                "no address",
            ),
            (json!({"email": null}), "no address"),
            // PostgreSQL cannot store NUL, and cannot index long text.
            (json!({"email": "ann\u{0}@example.test"}), "no address"),
            (
                json!({"email": format!("ann@{}.test", "a".repeat(40_000))}),
                "no address",
            ),
        ];
        for (claims, rule) in cases {
            let mut behaviour = OidcBehaviour::honest("ann", &["ops"]);
            behaviour.user_info = json!({"sub": "ann", "groups": ["ops"]});
            behaviour.claims = claims;
            provider.behave(behaviour);
            let mut browser = Browser::default();
            let refused = site.sign_in_by_oidc(&provider, &mut browser).await;
            assert_refused(&refused, &browser);
            let reason = site.last_refusal(&admin).await.to_string();
            assert!(reason.contains(rule), "{rule}: {reason}");
        }
        // The e-mail address of a user that the provider created belongs to another subject now.
        provider.behave(OidcBehaviour::honest("ann", &["ops"]));
        site.sign_in_by_oidc(&provider, &mut Browser::default())
            .await;
        let mut thief = OidcBehaviour::honest("mallory", &["ops"]);
        thief.claims = json!({"email": "ann@example.test"});
        provider.behave(thief);
        let mut browser = Browser::default();
        let refused = site.sign_in_by_oidc(&provider, &mut browser).await;
        assert_refused(&refused, &browser);
        assert!(
            refused.text.contains("link this identity"),
            "{}",
            refused.text
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_in_user_links_its_identity_by_a_link_of_this_site() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        site.connect(&oidc(&provider.issuer)).await;
        let Credential::Session(secret) = site.world.user(site.org(), Role::Reader).await else {
            unreachable!("a session");
        };
        let mut browser = Browser::default();
        browser.cookies.push((SESSION.to_owned(), secret));
        let link = |from: &str| {
            Request::get(format!("/sso/{}?link=1&return=/profile", site.org()))
                .header("sec-fetch-site", from)
                .body(Body::empty())
                .unwrap()
        };
        let refused = site.send(0, &mut browser, link("cross-site")).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        let begun = site.send(0, &mut browser, link("same-origin")).await;
        let query = provider.authorize(begun.location());
        let done = site.call_back(&mut browser, &query).await;
        assert_eq!(
            (done.status, done.location()),
            (StatusCode::SEE_OTHER, "/profile")
        );
        let linked = site
            .call(
                &browser.session(),
                Method::GET,
                "/users/me/identities",
                &Value::Null,
            )
            .await;
        let linked: Value = serde_json::from_str(&linked.text).unwrap();
        assert_eq!(linked["items"][0]["subject"], "ann", "{linked}");
        assert_eq!(linked["next_cursor"], Value::Null, "{linked}");
        // The next sign-in is that of the same user, with the role of its groups.
        let mut second = Browser::default();
        let done = site.sign_in_by_oidc(&provider, &mut second).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        let me = |browser: &Browser| {
            let session = browser.session();
            let site = &site;
            async move {
                let me = site
                    .call(&session, Method::GET, "/users/me", &Value::Null)
                    .await;
                let me: Value = serde_json::from_str(&me.text).unwrap();
                me["id"].clone()
            }
        };
        assert_eq!(me(&second).await, me(&browser).await);
    }
}

/// Returns the request in the provider's URL, and the relay state.
pub(crate) fn request_xml(location: &str) -> (String, String) {
    let (_, query) = location.split_once('?').unwrap();
    let fields: std::collections::BTreeMap<String, String> =
        form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
    let deflated = STANDARD.decode(&fields["SAMLRequest"]).unwrap();
    let mut xml = String::new();
    let mut decoder = flate2::read::DeflateDecoder::new(&*deflated);
    std::io::Read::read_to_string(&mut decoder, &mut xml).unwrap();
    (xml, fields["RelayState"].clone())
}

/// Returns the request's ID in the provider's URL, and the relay state.
pub(crate) fn asked(location: &str) -> (String, String) {
    let (xml, relay) = request_xml(location);
    let (_, rest) = xml.split_once(" ID=\"").unwrap();
    let (id, _) = rest.split_once('"').unwrap();
    (id.to_owned(), relay)
}

pub(crate) fn response(
    site: &Site,
    provider: &SamlProvider,
    request: Option<&str>,
    suffix: &str,
    groups: &[&str],
) -> String {
    let acs_url = format!("{PUBLIC_URL}/sso/{}/saml/acs", site.org());
    let xml = provider.signed(&SamlAnswer {
        sp_entity_id: "urn:controld",
        acs_url: &acs_url,
        request_id: request,
        name_id: "ann",
        attributes: &[("email", &["ann@example.test"]), ("groups", groups)],
        suffix,
        now: Timestamp::now(),
    });
    STANDARD.encode(xml)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_signs_in_by_saml_with_the_cookie_of_the_second_step() {
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
        assert_eq!(accepted.status, StatusCode::SEE_OTHER, "{}", accepted.text);
        assert!(accepted.headers.get(header::SET_COOKIE).is_none());
        let finish = accepted.location().to_owned();
        let mut other = Browser::default();
        site.begin(&mut other).await;
        let mut thief = other.clone();
        let refused = site.get(0, &mut thief, &finish).await;
        assert_refused(&refused, &thief);
        // The ticket is used up, so the repeated response is refused.
        let refused = site.get(0, &mut browser, &finish).await;
        assert_refused(&refused, &browser);
        let refused = site.post_form(0, &acs, &fields).await;
        assert_refused(&refused, &Browser::default());

        let (request, relay) = asked(&site.begin(&mut browser).await);
        let xml = response(&site, &provider, Some(&request), "2", &["ops"]);
        let fields = [
            ("SAMLResponse", xml.as_str()),
            ("RelayState", relay.as_str()),
        ];
        let accepted = site.post_form(1, &acs, &fields).await;
        let done = site.get(0, &mut browser, accepted.location()).await;
        assert_eq!(
            (done.status, done.location()),
            (StatusCode::SEE_OTHER, "/projects")
        );
        let roles = site.roles(&browser).await.to_string();
        assert!(roles.contains("operator"), "{roles}");
        assert_eq!(site.last_refusal(&admin).await, Value::Null);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn saml_responses_of_others_and_to_others_are_refused() {
    for site in sites().await {
        let provider = SamlProvider::new("https://idp.test/saml");
        let admin = site.connect(&saml(&site, &provider)).await;
        let acs = format!("/sso/{}/saml/acs", site.org());
        let foreign = SamlProvider::new("https://idp.test/saml");
        let mut browser = Browser::default();
        let cases = [
            (&foreign, None, "made this signature"),
            (&provider, Some("_other"), "answers another request"),
        ];
        for (number, (by, request, rule)) in cases.into_iter().enumerate() {
            let (own, relay) = asked(&site.begin(&mut browser).await);
            let (request, suffix) = (request.unwrap_or(&own), number.to_string());
            let xml = response(&site, by, Some(request), &suffix, &["ops"]);
            let refused = site
                .post_form(1, &acs, &[("SAMLResponse", &xml), ("RelayState", &relay)])
                .await;
            assert_refused(&refused, &Browser::default());
            let reason = site.last_refusal(&admin).await.to_string();
            assert!(reason.contains(rule), "{rule}: {reason}");
        }
        // Without a sign-in in progress, refused without a record.
        let xml = response(&site, &provider, None, "u", &["ops"]);
        for fields in [
            &[("SAMLResponse", xml.as_str())][..],
            &[("SAMLResponse", "%%%")],
            &[],
        ] {
            let refused = site.post_form(1, &acs, fields).await;
            assert_refused(&refused, &Browser::default());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saml_connection_without_an_entity_id_keeps_the_first_issuer() {
    for site in sites().await {
        let mut provider = SamlProvider::new("https://idp.test/saml");
        let mut settings = saml(&site, &provider);
        let fields = settings["saml"].as_object_mut().unwrap();
        fields.remove("idp_entity_id");
        let admin = site.connect(&settings).await;
        let acs = format!("/sso/{}/saml/acs", site.org());
        let foreign = SamlProvider::new("https://idp.test/saml");
        let mut browser = Browser::default();
        let send = async |by: &SamlProvider, suffix: &str, browser: &mut Browser| {
            let (request, relay) = asked(&site.begin(browser).await);
            let xml = response(&site, by, Some(&request), suffix, &["ops"]);
            let fields = [
                ("SAMLResponse", xml.as_str()),
                ("RelayState", relay.as_str()),
            ];
            site.post_form(1, &acs, &fields).await
        };
        let refused = send(&foreign, "0", &mut browser).await;
        assert_refused(&refused, &Browser::default());
        let accepted = send(&provider, "1", &mut browser).await;
        assert_eq!(accepted.status, StatusCode::SEE_OTHER, "{}", accepted.text);
        let done = site.get(0, &mut browser, accepted.location()).await;
        assert_eq!(done.location(), "/projects", "{}", done.text);
        // Several issuers may use the same certificate.
        provider.entity_id = "https://idp.test/other".to_owned();
        let refused = send(&provider, "2", &mut Browser::default()).await;
        assert_refused(&refused, &Browser::default());
        let reason = site.last_refusal(&admin).await.to_string();
        assert!(reason.contains("issuer"), "{reason}");
        provider.entity_id = "https://idp.test/saml".to_owned();
        let accepted = send(&provider, "3", &mut Browser::default()).await;
        assert_eq!(accepted.status, StatusCode::SEE_OTHER, "{}", accepted.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsolicited_response_signs_in_where_the_connection_allows_it_once() {
    for site in sites().await {
        let provider = SamlProvider::new("https://idp.test/saml");
        let mut settings = saml(&site, &provider);
        settings["saml"]["allow_unsolicited"] = json!(true);
        site.connect(&settings).await;
        let acs = format!("/sso/{}/saml/acs", site.org());
        let xml = response(&site, &provider, None, "u", &["staff"]);
        let fields = [("SAMLResponse", xml.as_str())];
        let mut browser = Browser::default();
        let accepted = site.post_form_in(&mut browser, 1, &acs, &fields).await;
        let mut again = browser.clone();
        let done = site.get(0, &mut browser, accepted.location()).await;
        assert_eq!(
            (done.status, done.location()),
            (StatusCode::SEE_OTHER, "/"),
            "{}",
            done.text
        );
        assert_eq!(browser.value(ATTEMPT), None);
        let refused = site.get(0, &mut again, accepted.location()).await;
        assert_refused(&refused, &again);
        let roles = site.roles(&browser).await.to_string();
        assert!(roles.contains("reader"), "{roles}");
        let refused = site.post_form(0, &acs, &fields).await;
        assert_refused(&refused, &Browser::default());
    }
}

/// A provider whose unsolicited responses are accepted, an administrator, and the response URL.
async fn unsolicited(site: &Site) -> (SamlProvider, Credential, String) {
    let provider = SamlProvider::new("https://idp.test/saml");
    let mut settings = saml(site, &provider);
    settings["saml"]["allow_unsolicited"] = json!(true);
    let admin = site.connect(&settings).await;
    (provider, admin, format!("/sso/{}/saml/acs", site.org()))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ticket_of_an_unsolicited_response_signs_in_no_other_browser() {
    for site in sites().await {
        let (provider, admin, acs) = unsolicited(&site).await;
        let mut other = Browser::default();
        site.begin(&mut other).await;
        // A browser without the cookie, and one with the cookie of its own attempt.
        for (suffix, mut victim) in [("1", Browser::default()), ("2", other)] {
            let xml = response(&site, &provider, None, suffix, &["staff"]);
            let fields = [("SAMLResponse", xml.as_str())];
            let mut author = Browser::default();
            let accepted = site.post_form_in(&mut author, 1, &acs, &fields).await;
            assert!(author.value(ATTEMPT).is_some());
            let refused = site.get(0, &mut victim, accepted.location()).await;
            assert_refused(&refused, &victim);
            let reason = site.last_refusal(&admin).await.to_string();
            assert!(reason.contains("another browser or session"), "{reason}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsolicited_response_does_not_replace_the_session_of_another_user() {
    for site in sites().await {
        let (provider, admin, acs) = unsolicited(&site).await;
        let send = async |suffix: &str, browser: &mut Browser| {
            let xml = response(&site, &provider, None, suffix, &["staff"]);
            let fields = [("SAMLResponse", xml.as_str())];
            let accepted = site.post_form_in(browser, 1, &acs, &fields).await;
            site.get(0, browser, accepted.location()).await
        };
        let Credential::Session(secret) = site.world.user(site.org(), Role::Reader).await else {
            unreachable!("a session");
        };
        let mut victim = Browser::default();
        victim.cookies.push((SESSION.to_owned(), secret.clone()));
        // A new user first, and then a known one.
        for suffix in ["1", "2"] {
            let refused = send(suffix, &mut victim).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
            assert!(
                refused.text.contains("You are signed in already"),
                "{}",
                refused.text
            );
            let Credential::Session(kept) = victim.session() else {
                unreachable!("a session");
            };
            assert_eq!(kept, secret);
            let reason = site.last_refusal(&admin).await.to_string();
            assert!(reason.contains("unsolicited response"), "{reason}");
            let mut own = Browser::default();
            let done = send(&format!("{suffix}a"), &mut own).await;
            assert_eq!(done.location(), "/", "{}", done.text);
            // The same user's session is replaced.
            let done = send(&format!("{suffix}b"), &mut own).await;
            assert_eq!(done.location(), "/", "{}", done.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_show_no_secret_and_belong_to_administrators_with_a_fresh_proof() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        let admin = site.connect(&oidc(&provider.issuer)).await;
        let path = format!("/orgs/{}/sso", site.org());
        let shown = site.call(&admin, Method::GET, &path, &Value::Null).await;
        assert!(!shown.text.contains("client-secret"), "{}", shown.text);
        assert!(
            shown
                .text
                .contains(&format!("{PUBLIC_URL}/sso/{}/oidc/callback", site.org()))
        );
        let reader = site.world.user(site.org(), Role::Operator).await;
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            let body = if method == Method::PUT {
                oidc(&provider.issuer)
            } else {
                Value::Null
            };
            let refused = site.call(&reader, method.clone(), &path, &body).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{method}");
        }
        // The secret stays if the endpoint is the same, and is required for another endpoint.
        let mut same = oidc(&provider.issuer);
        same["oidc"]
            .as_object_mut()
            .unwrap()
            .remove("client_secret");
        let kept = site.call(&admin, Method::PUT, &path, &same).await;
        assert_eq!(kept.status, StatusCode::OK, "{}", kept.text);
        let mut browser = Browser::default();
        let done = site.sign_in_by_oidc(&provider, &mut browser).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        let mut moved = same.clone();
        moved["oidc"]["token_url"] = json!("https://evil.test/token");
        let refused = site.call(&admin, Method::PUT, &path, &moved).await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{}",
            refused.text
        );
        // Switching it off ends its sessions, and sign-ins in progress.
        let mut waiting = Browser::default();
        let query = provider.authorize(&site.begin(&mut waiting).await);
        let deleted = site.call(&admin, Method::DELETE, &path, &Value::Null).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.text);
        let me = site
            .call(&browser.session(), Method::GET, "/users/me", &Value::Null)
            .await;
        assert_eq!(me.status, StatusCode::UNAUTHORIZED);
        let late = site.call_back(&mut waiting, &query).await;
        assert_refused(&late, &waiting);
        let gone = site
            .get(0, &mut Browser::default(), &format!("/sso/{}", site.org()))
            .await;
        assert_eq!(gone.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_services_metadata_is_public_and_of_saml_only() {
    for site in sites().await {
        let path = format!("/sso/{}/saml/metadata", site.org());
        let none = site.get(0, &mut Browser::default(), &path).await;
        assert_eq!(none.status, StatusCode::NOT_FOUND);
        let provider = SamlProvider::new("https://idp.test/saml");
        site.connect(&saml(&site, &provider)).await;
        let first = site.get(0, &mut Browser::default(), &path).await;
        assert_eq!(first.status, StatusCode::OK);
        assert!(first.text.contains("entityID=\"urn:controld\""));
        let key = |text: &str| {
            let (_, rest) = text.split_once("<ds:X509Certificate>").unwrap();
            STANDARD
                .decode(rest.split_once('<').unwrap().0)
                .unwrap()
                .len()
        };
        assert!(500 < key(&first.text));
    }
}
