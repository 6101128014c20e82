//! A removed member can return only by a decision of an administrator, not through the identity
//! provider.

use crate::sso::{Browser, Site, assert_refused, oidc, sites};
use crate::world::Credential;
use axum::http::{Method, StatusCode};
use control_testkit::{OidcBehaviour, OidcProvider};
use serde_json::{Value, json};

impl Site {
    pub(crate) async fn own_id(&self, browser: &Browser) -> String {
        let me = self.ask(browser, Method::GET, "/users/me", &Value::Null);
        let me: Value = serde_json::from_str(&me.await.text).unwrap();
        me["id"].as_str().unwrap().to_owned()
    }

    async fn remove(&self, admin: &Credential, user: &str) {
        let path = format!("/orgs/{}/members/{user}", self.org());
        let removed = self.call(admin, Method::DELETE, &path, &Value::Null).await;
        assert_eq!(removed.status, StatusCode::NO_CONTENT, "{}", removed.text);
    }

    async fn removed(&self, admin: &Credential) -> Vec<Value> {
        let path = format!("/orgs/{}/removed-members", self.org());
        let listed = self.call(admin, Method::GET, &path, &Value::Null).await;
        let listed: Value = serde_json::from_str(&listed.text).unwrap();
        listed["items"].as_array().unwrap().clone()
    }

    async fn readmit(&self, by: &Credential, user: &str) -> StatusCode {
        let path = format!("/orgs/{}/removed-members/{user}", self.org());
        let done = self.call(by, Method::DELETE, &path, &Value::Null).await;
        done.status
    }

    /// Invites an address; returns the secret.
    async fn invitation(&self, admin: &Credential, email: &str) -> Value {
        let path = format!("/orgs/{}/invitations", self.org());
        let body = json!({"email": email, "role": "reader"});
        let invited = self.call(admin, Method::POST, &path, &body).await;
        assert_eq!(invited.status, StatusCode::CREATED, "{}", invited.text);
        let invited: Value = serde_json::from_str(&invited.text).unwrap();
        invited["secret"].clone()
    }

    async fn assert_kept_out(&self, provider: &OidcProvider, admin: &Credential) {
        let mut browser = Browser::default();
        let refused = self.sign_in_by_oidc(provider, &mut browser).await;
        assert_refused(&refused, &browser);
        let last = self.sign_ins(admin).await.remove(0);
        let rule = last["refusal"].as_str().unwrap();
        assert!(rule.contains("removed the user"), "{rule}");
        assert_eq!(last["subject"], "ann", "{last}");
    }

    async fn assert_let_in(&self, provider: &OidcProvider) {
        let mut browser = Browser::default();
        let done = self.sign_in_by_oidc(provider, &mut browser).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        let path = format!("/orgs/{}", self.org());
        let found = self.ask(&browser, Method::GET, &path, &Value::Null).await;
        assert_eq!(found.status, StatusCode::OK, "{}", found.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_member_is_kept_out_until_an_administrator_admits_it_again() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        let admin = site.connect(&oidc(&provider.issuer)).await;
        let mut browser = Browser::default();
        site.sign_in_by_oidc(&provider, &mut browser).await;
        let ann = site.own_id(&browser).await;
        site.remove(&admin, &ann).await;
        site.assert_kept_out(&provider, &admin).await;
        site.assert_kept_out(&provider, &admin).await;
        let removed = site.removed(&admin).await;
        assert_eq!(removed.len(), 1, "{removed:?}");
        assert_eq!(removed[0]["user"], json!(ann));
        assert_eq!(removed[0]["email"], "ann@example.test");
        let operator = site.world.user(site.org(), control_domain::Role::Operator);
        let refused = site.readmit(&operator.await, &ann).await;
        assert_eq!(refused, StatusCode::FORBIDDEN);
        assert_eq!(site.readmit(&admin, &ann).await, StatusCode::NO_CONTENT);
        assert_eq!(site.readmit(&admin, &ann).await, StatusCode::NOT_FOUND);
        site.assert_let_in(&provider).await;
        assert!(site.removed(&admin).await.is_empty());
        // An invitation is such a decision, too.
        site.remove(&admin, &ann).await;
        site.assert_kept_out(&provider, &admin).await;
        site.invitation(&admin, "someone@example.test").await;
        site.assert_kept_out(&provider, &admin).await;
        site.invitation(&admin, "ann@example.test").await;
        site.assert_let_in(&provider).await;
        assert_eq!(site.world.audited("member.readmitted").await.len(), 2);
        // The provider decides: without a group the user is no member, and with a group it is one
        // again.
        provider.behave(OidcBehaviour::honest("ann", &[]));
        let mut browser = Browser::default();
        let refused = site.sign_in_by_oidc(&provider, &mut browser).await;
        assert_refused(&refused, &browser);
        provider.behave(OidcBehaviour::honest("ann", &["ops"]));
        site.assert_let_in(&provider).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_member_that_joins_by_an_invitation_signs_in_as_before() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
        let admin = site.connect(&oidc(&provider.issuer)).await;
        let own = site.linked(&provider).await;
        let ann = site.own_id(&own).await;
        site.remove(&admin, &ann).await;
        site.assert_kept_out(&provider, &admin).await;
        let secret = site.invitation(&admin, "other@example.test").await;
        let body = json!({"secret": secret});
        let joined = site
            .ask(&own, Method::POST, "/invitations/join", &body)
            .await;
        assert!(joined.status.is_success(), "{}", joined.text);
        assert!(site.removed(&admin).await.is_empty());
        site.assert_let_in(&provider).await;
    }
}
