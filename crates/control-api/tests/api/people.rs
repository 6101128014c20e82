//! Users that sign in: accounts with passwords, authenticators, and cookies of browsers.

use crate::world::{Answer, Credential, PASSWORD, World, sample, sealer};
use axum::http::{Method, StatusCode};
use control_app::{ChangeScope, Wake};
use control_auth::TotpSecret;
use control_domain::{Membership, ProjectRole, Role};
use control_wire::{OrgId, ProjectId, UserId};
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::time::Duration;

/// An account with the password [`PASSWORD`].
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) id: UserId,
    pub(crate) email: String,
}

/// Cookies that a sign-in has set.
#[derive(Clone, Debug)]
pub(crate) struct Cookies {
    pub(crate) session: Credential,
    /// `__Host-browser=…`; empty if the browser was known.
    pub(crate) browser: String,
}

impl World {
    /// Creates a member of the organization.
    pub(crate) async fn person(&self, org: OrgId, role: Role) -> Person {
        let user = self.new_user(false);
        let membership = Membership {
            org,
            user: user.id,
            role,
            created_at: self.app.now(),
        };
        let mut tx = self.store.begin().await.unwrap();
        tx.insert_user(&user).await.unwrap();
        tx.insert_membership(membership).await.unwrap();
        tx.commit().await.unwrap();
        Person {
            id: user.id,
            email: user.email.to_string(),
        }
    }

    /// Signs in; returns the response.
    pub(crate) async fn try_sign_in(&self, email: &str, password: &str) -> Answer {
        let body = json!({"email": email, "password": password});
        self.post("/sign-in", &Credential::None, body).await
    }

    /// Signs in from a browser with this cookie; returns the response.
    pub(crate) async fn try_sign_in_from(
        &self,
        email: &str,
        password: &str,
        browser: &str,
    ) -> Answer {
        let body = json!({"email": email, "password": password});
        let cookie = [("cookie", browser)];
        let post = Method::POST;
        self.send(&post, "/sign-in", &Credential::None, &body, &cookie)
            .await
    }

    /// Signs a person in without a second factor.
    pub(crate) async fn sign_in(&self, person: &Person) -> Cookies {
        let answer = self.try_sign_in(&person.email, PASSWORD).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        assert_eq!(answer.text("state"), "signed_in");
        cookies(&answer)
    }

    /// Signs in with the password only; returns the `sign_in` that waits for the second factor.
    pub(crate) async fn pending(&self, person: &Person) -> String {
        let answer = self.try_sign_in(&person.email, PASSWORD).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        assert_eq!(answer.text("state"), "code_required");
        assert!(answer.headers.get("set-cookie").is_none(), "no session yet");
        answer.text("sign_in")
    }

    /// Sets up a second factor as the user of the session; returns the authenticator, the recovery
    /// codes and the session's next credential.
    pub(crate) async fn enable_totp(
        &self,
        by: &Credential,
    ) -> (TotpSecret, Vec<String>, Credential) {
        let started = self.post("/users/me/totp", by, Value::Null).await;
        assert_eq!(started.status, StatusCode::OK, "{}", started.body);
        let app = authenticator(&started.text("secret"));
        let body = json!({"code": self.code(&app)});
        let confirmed = self.post("/users/me/totp/confirm", by, body).await;
        assert_eq!(confirmed.status, StatusCode::OK, "{}", confirmed.body);
        let codes = confirmed.body["recovery_codes"].as_array().unwrap();
        let codes = codes.iter().map(|code| code.as_str().unwrap().to_owned());
        (app, codes.collect(), cookies(&confirmed).session)
    }

    /// Stores an authenticator of the user, without used codes.
    pub(crate) async fn give_totp(&self, user: UserId) -> TotpSecret {
        let secret = TotpSecret::new(*b"12345678901234567890");
        let place = format!("totp/{user}");
        let nonce = user.0.as_bytes()[..12].try_into().unwrap();
        let sealed = sealer().seal(&place, nonce, secret.bytes()).unwrap();
        let now = self.app.now();
        let mut tx = self.store.begin().await.unwrap();
        tx.start_totp(user, &sealed, now).await.unwrap();
        tx.confirm_totp(user, &sealed, 0, now).await.unwrap();
        tx.commit().await.unwrap();
        secret
    }

    /// Ends the membership, as an administrator does.
    pub(crate) async fn remove_member(&self, user: UserId) {
        let (path, full) = (
            format!("/orgs/{{org}}/members/{user}"),
            self.full_key().await,
        );
        let removed = self.send(&Method::DELETE, &path, &full, &Value::Null, &[]);
        let removed = removed.await;
        assert_eq!(removed.status, StatusCode::NO_CONTENT, "{}", removed.body);
    }

    /// Creates another project of the organization.
    pub(crate) async fn other_project(&self) -> ProjectId {
        let path = "/orgs/{org}/projects";
        let made = self.post(path, &self.full_key().await, sample(path)).await;
        made.text("id").parse().unwrap()
    }

    /// Gives a member a role in the project.
    pub(crate) async fn give_role(&self, user: UserId, role: Role) {
        self.give_role_in(self.project, user, role).await;
    }

    /// Creates a reader of the organization with a role in one project, and signs the user in.
    pub(crate) async fn project_user(&self, project: ProjectId, role: Role) -> Credential {
        let session = self.user(self.org, Role::Reader).await;
        let id = self.get("/users/me", &session).await.text("id");
        if role != Role::Reader {
            self.give_role_in(project, id.parse().unwrap(), role).await;
        }
        session
    }

    async fn give_role_in(&self, project: ProjectId, user: UserId, role: Role) {
        let given = ProjectRole {
            org: self.org,
            project,
            user,
            role,
            created_at: self.app.now(),
        };
        let mut tx = self.store.begin().await.unwrap();
        tx.put_project_role(&given).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Returns the current code.
    pub(crate) fn code(&self, secret: &TotpSecret) -> String {
        secret.code(self.app.now())
    }

    /// The code of the next time step, which is accepted after the current one.
    pub(crate) fn next_code(&self, secret: &TotpSecret) -> String {
        secret.code(self.app.now() + SignedDuration::from_secs(30))
    }

    /// Returns the user's entries of the audit log, in order.
    pub(crate) async fn audited(&self, action: &str) -> Vec<Value> {
        let full = self.full_key().await;
        let path = format!("/orgs/{{org}}/audit?action={action}");
        let found = self.get(&path, &full).await;
        assert_eq!(found.status, StatusCode::OK, "{}", found.body);
        found.body["items"].as_array().unwrap().clone()
    }

    /// Like [`Self::audited`], but waits for the first entry: refused sign-ins are recorded
    /// concurrently with the response.
    pub(crate) async fn until_audited(&self, action: &str) -> Vec<Value> {
        let mut changes = self.app.changes.subscribe(ChangeScope::All);
        loop {
            let found = self.audited(action).await;
            if !found.is_empty() {
                return found;
            }
            let woken = changes.wait(Duration::from_mins(1)).await;
            assert_eq!(woken, Wake::Changed, "{action}");
        }
    }
}

/// Returns the cookies that a response sets.
pub(crate) fn cookies(answer: &Answer) -> Cookies {
    let fields = answer.headers.get_all("set-cookie").iter();
    let fields: Vec<&str> = fields.map(|field| field.to_str().unwrap()).collect();
    let value = |name: &str| {
        let field = fields.iter().find_map(|field| field.strip_prefix(name));
        let value = field.and_then(|field| field.strip_prefix('='));
        value.map(|value| value.split(';').next().unwrap_or_default().to_owned())
    };
    let browser = value("__Host-browser").map(|value| format!("__Host-browser={value}"));
    Cookies {
        session: value("__Host-session").map_or(Credential::None, Credential::Session),
        browser: browser.unwrap_or_default(),
    }
}

/// Creates an authenticator with this secret in Base32.
pub(crate) fn authenticator(base32: &str) -> TotpSecret {
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits = base32.chars().flat_map(|letter| {
        let index = letters.find(letter).unwrap();
        (0..5).rev().map(move |place| index >> place & 1)
    });
    let bits: Vec<usize> = bits.collect();
    let bytes = bits.chunks_exact(8).map(|byte| {
        let byte = byte.iter().fold(0, |byte, bit| byte << 1 | bit);
        u8::try_from(byte).unwrap()
    });
    TotpSecret::from_bytes(&bytes.collect::<Vec<u8>>()).unwrap()
}
