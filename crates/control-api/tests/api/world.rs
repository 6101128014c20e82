//! A control plane after set-up, and credentials of every kind.

mod samples;

pub(crate) use samples::{certificate, sample};

use crate::sent_headers;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use control_api::router;
use control_app::{App, Call, Environment, Objects, SsoSite};
use control_auth::{MasterKey, Password, PasswordHash, Sealer, Secret, SigningPair};
use control_domain::{
    Actor, ApiKey, Creator, Email, EnrolmentToken, Invitation, Labels, LinkedIdentity, Membership,
    Name, Node, NodeCredential, Org, PrivateAddresses, Project, ProjectPolicy, Quotas, Role, Scope,
    Session, SessionOrigin, SetupLink, SigningKey, SigningKeyState, Tenant, User,
};
use control_http::SessionCookie;
use control_store::{Page, SessionFilter, Store, StoredSecret, Transaction};
use control_testkit::{Database, databases};
use control_wire::{
    ApiKeyId, EnrolmentTokenId, IdentityId, InvitationId, NodeId, OrgId, ProjectId, SecretId,
    SessionId, SigningKeyId, UserId,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, from_slice};
use sqlx::{AnyConnection, Connection};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;
use tower::ServiceExt;
use uuid::Uuid;

/// The password of every user.
pub(crate) const PASSWORD: &str = "correct horse battery";

/// A control plane with two organizations; the second one must have no access.
pub(crate) struct World {
    pub(crate) app: Arc<App>,
    pub(crate) store: Store,
    pub(crate) org: OrgId,
    pub(crate) project: ProjectId,
    pub(crate) other: Tenant,
    /// Node of the project, for `{node}` in paths.
    pub(crate) node: NodeId,
    pub(crate) node_key: Credential,
    pub(crate) database: Database,
    /// Folder of the object store.
    pub(crate) objects: TempDir,
    router: Router,
    /// Client address. Tests that are not about rate limits change it.
    address: AtomicU32,
}

/// Credential of a request.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    None,
    Bearer(String),
    NodeKey(String),
    Session(String),
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
    pub(crate) bytes: Bytes,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    /// Returns a field of the body that must be a text.
    pub(crate) fn text(&self, field: &str) -> String {
        self.body[field].as_str().unwrap().to_owned()
    }
}

/// Creates a control plane on each database.
pub(crate) async fn worlds() -> Vec<World> {
    let mut worlds = Vec::new();
    for database in databases() {
        worlds.push(World::new(database).await);
    }
    worlds
}

pub(crate) async fn app(url: &str, objects: &Path) -> (Arc<App>, Store) {
    app_with_clock(url, objects, Timestamp::now).await
}

pub(crate) async fn app_with_clock(
    url: &str,
    objects: &Path,
    now: fn() -> Timestamp,
) -> (Arc<App>, Store) {
    let store = Store::open(url).await.unwrap();
    let objects = Objects::in_folder(objects).unwrap();
    let mut app = App::new(store.clone(), objects, sealer(), Environment { now, fill });
    app.sso_site.public_url = Some("https://controld.test".to_owned());
    (Arc::new(app), store)
}

/// Creates another replica, which browsers reach at `public_url`.
pub(crate) fn app_with_sso(world: &World, public_url: &str) -> Arc<App> {
    let objects = Objects::in_folder(world.objects.path()).unwrap();
    let now = Timestamp::now;
    let mut app = App::new(
        world.store.clone(),
        objects,
        sealer(),
        Environment { now, fill },
    );
    app.sso_site = SsoSite {
        public_url: Some(public_url.to_owned()),
        private_addresses: PrivateAddresses::Allowed,
    };
    Arc::new(app)
}

/// A time that does not pass.
fn stopped() -> Timestamp {
    static AT: OnceLock<Timestamp> = OnceLock::new();
    *AT.get_or_init(Timestamp::now)
}

impl World {
    /// The same world without passing time, so that a slow machine refills no bucket.
    pub(crate) async fn with_stopped_clock(mut self) -> Self {
        let (app, store) = app_with_clock(&self.database.url, self.objects.path(), stopped).await;
        self.router = router(&app, Router::new(), SessionCookie::Tls);
        (self.app, self.store) = (app, store);
        self
    }

    pub(crate) async fn new(database: Database) -> Self {
        let objects = tempfile::tempdir().unwrap();
        let (app, store) = app(&database.url, objects.path()).await;
        let mut tx = store.begin().await.unwrap();
        let own = tenant(&mut tx, "own").await;
        let other = tenant(&mut tx, "other").await;
        let (node, node_key) = insert_node(&mut tx, own).await;
        tx.commit().await.unwrap();
        Self {
            router: router(&app, Router::new(), SessionCookie::Tls),
            app,
            store,
            org: own.org,
            project: own.project.unwrap(),
            other,
            node,
            node_key,
            database,
            objects,
            address: AtomicU32::new(0x0a00_0001),
        }
    }

    /// Serves the same state with other quotas from now on.
    pub(crate) fn set_quotas(&mut self, quotas: Quotas) {
        self.replace_app(Timestamp::now, |app| app.quotas = quotas);
    }

    /// Continues with permitted private addresses, and with another clock.
    pub(crate) fn allow_private_addresses(&mut self, now: fn() -> Timestamp) {
        self.replace_app(now, |app| {
            app.sso_site.public_url = Some("https://controld.test".to_owned());
            app.sso_site.private_addresses = PrivateAddresses::Allowed;
        });
    }

    /// Continues with another replica that has this clock.
    pub(crate) fn replace_app(&mut self, now: fn() -> Timestamp, change: impl FnOnce(&mut App)) {
        let objects = Objects::in_folder(self.objects.path()).unwrap();
        let environment = Environment { now, fill };
        let mut app = App::new(self.store.clone(), objects, sealer(), environment);
        change(&mut app);
        self.app = Arc::new(app);
        self.router = router(&self.app, Router::new(), SessionCookie::Tls);
    }

    /// Sends the next request from another address.
    pub(crate) fn change_address(&self) {
        self.address.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn tenant(&self) -> Tenant {
        Tenant::project(self.org, self.project)
    }

    /// Creates a key as the database contains it.
    pub(crate) fn key(&self, tenant: Tenant, scopes: &[Scope]) -> ApiKey {
        ApiKey {
            id: ApiKeyId(Uuid::now_v7()),
            tenant,
            name: Name::stored("deploy".to_owned()),
            scopes: scopes.iter().copied().collect::<BTreeSet<Scope>>(),
            created_at: self.app.now(),
            expires_at: None,
            revoked_at: None,
            made_by: None,
        }
    }

    pub(crate) async fn store_key(&self, key: &ApiKey) -> Credential {
        let secret = secret();
        let mut tx = self.store.begin().await.unwrap();
        tx.insert_api_key(key, &secret.hash()).await.unwrap();
        tx.commit().await.unwrap();
        Credential::Bearer(secret.reveal().to_owned())
    }

    /// A key of the organization with full access.
    pub(crate) async fn full_key(&self) -> Credential {
        self.store_key(&self.key(Tenant::org(self.org), &[])).await
    }

    /// Creates a key of the organization with a new administrator as its creator.
    pub(crate) async fn made_key(&self, scopes: &[Scope]) -> Credential {
        let mut key = self.key(Tenant::org(self.org), scopes);
        key.made_by = Some(Creator {
            user: self.member(Role::Admin).await,
            role: Some(Role::Admin),
        });
        self.store_key(&key).await
    }

    /// A new user with one membership, signed in.
    pub(crate) async fn user(&self, org: OrgId, role: Role) -> Credential {
        self.store_user(org, role, false, None).await
    }

    pub(crate) async fn instance_admin(&self) -> Credential {
        self.store_user(self.org, Role::Admin, true, None).await
    }

    pub(crate) async fn store_user(
        &self,
        org: OrgId,
        role: Role,
        instance_admin: bool,
        ended: Option<Ended>,
    ) -> Credential {
        let now = self.app.now();
        let user = self.new_user(instance_admin);
        let id = user.id;
        let membership = Membership {
            org,
            user: id,
            role,
            created_at: now,
        };
        let origin = SessionOrigin::default();
        let mut session = Session::start(SessionId(Uuid::now_v7()), id, origin, now);
        match ended {
            Some(Ended::Revoked) => session.revoked_at = Some(now),
            Some(Ended::Proof) => session.strong_until = now,
            Some(Ended::Expired) => session.seen_at = now - SignedDuration::from_hours(13),
            None => {}
        }
        let secret = secret();
        let mut tx = self.store.begin().await.unwrap();
        tx.insert_user(&user).await.unwrap();
        tx.insert_membership(membership).await.unwrap();
        tx.insert_session(&session, &secret.hash()).await.unwrap();
        tx.commit().await.unwrap();
        Credential::Session(secret.reveal().to_owned())
    }

    /// Makes the user's proofs of identity older.
    pub(crate) async fn age_proofs(&self, user: UserId, by: SignedDuration) {
        let mut tx = self.store.begin().await.unwrap();
        let (every, page) = (SessionFilter::Every, Page::newest(None, 100));
        let now = self.app.now();
        let sessions = tx.sessions_of_user(user, every, page, now).await.unwrap();
        drop(tx);
        let mut database = AnyConnection::connect(&self.database.url).await.unwrap();
        for session in sessions {
            let earlier = session.strong_until - by;
            let age = "UPDATE sessions SET strong_until = $1 WHERE id = $2";
            let age = sqlx::query(age).bind(earlier.as_millisecond());
            let age = age.bind(session.id.to_string());
            age.execute(&mut database).await.unwrap();
        }
    }

    /// An identity of the user at the organization's provider.
    pub(crate) async fn link_identity(&self, user: UserId) -> IdentityId {
        let now = self.app.now();
        let id = IdentityId(Uuid::now_v7());
        let identity = LinkedIdentity {
            id,
            org: self.org,
            issuer: "https://idp.test".to_owned(),
            subject: id.to_string(),
            user,
            created_at: now,
            seen_at: now,
        };
        let mut tx = self.store.begin().await.unwrap();
        tx.insert_identity(&identity).await.unwrap();
        tx.commit().await.unwrap();
        id
    }

    /// Creates a user with a new e-mail address, without storing it.
    pub(crate) fn new_user(&self, instance_admin: bool) -> User {
        let id = UserId(Uuid::now_v7());
        User {
            id,
            email: Email::stored(format!("{id}@example.com")),
            name: Name::stored("Ann".to_owned()),
            password: Some(password_hash()),
            instance_admin,
            created_at: self.app.now(),
        }
    }

    /// A new member of the organization, without a session.
    pub(crate) async fn member(&self, role: Role) -> UserId {
        let user = self.new_user(false);
        let membership = Membership {
            org: self.org,
            user: user.id,
            role,
            created_at: self.app.now(),
        };
        let mut tx = self.store.begin().await.unwrap();
        tx.insert_user(&user).await.unwrap();
        tx.insert_membership(membership).await.unwrap();
        tx.commit().await.unwrap();
        user.id
    }

    /// Creates an invitation to the organization, dated `age` ago.
    pub(crate) async fn invitation(&self, age: SignedDuration) -> (InvitationId, Credential) {
        let (id, secret) = self.store_invitation(self.org, age).await;
        (id, Credential::Bearer(secret))
    }

    /// A new invitation to the other organization, and its secret.
    pub(crate) async fn other_invitation(&self) -> (InvitationId, String) {
        let org = self.other.org;
        self.store_invitation(org, SignedDuration::ZERO).await
    }

    async fn store_invitation(&self, org: OrgId, age: SignedDuration) -> (InvitationId, String) {
        let id = InvitationId(Uuid::now_v7());
        let at = self.app.now() - age;
        let made = Invitation {
            id,
            org,
            email: Email::stored(format!("{id}@example.com")),
            role: Role::Operator,
            created_at: at,
            expires_at: at + SignedDuration::from_hours(7 * 24),
            made_by: None,
        };
        let secret = secret();
        let mut tx = self.store.begin().await.unwrap();
        let replaced = tx.replace_invitation(&made, &secret.hash()).await;
        replaced.unwrap();
        tx.commit().await.unwrap();
        (id, secret.reveal().to_owned())
    }

    /// A set-up link; earlier ones are deleted.
    pub(crate) async fn setup_link(&self, age: SignedDuration) -> Credential {
        let link = SetupLink {
            id: Uuid::now_v7(),
            created_at: self.app.now() - age,
        };
        let secret = secret();
        let mut tx = self.store.begin().await.unwrap();
        let replaced = tx.replace_setup_link(link, &secret.hash()).await;
        replaced.unwrap();
        tx.commit().await.unwrap();
        Credential::Bearer(secret.reveal().to_owned())
    }

    /// A new organization with a project.
    pub(crate) async fn new_tenant(&self, name: &str) -> Tenant {
        let mut tx = self.store.begin().await.unwrap();
        let made = tenant(&mut tx, name).await;
        tx.commit().await.unwrap();
        made
    }

    /// A new node, and its key.
    pub(crate) async fn new_node(&self, tenant: Tenant) -> (NodeId, Credential) {
        let mut tx = self.store.begin().await.unwrap();
        let made = insert_node(&mut tx, tenant).await;
        tx.commit().await.unwrap();
        made
    }

    /// A token of a node of `tenant`.
    pub(crate) async fn token(&self, id: NodeId, tenant: Tenant) -> Credential {
        let actor = Actor::Node {
            id,
            tenant,
            by: NodeCredential::Key,
        };
        let call = Call {
            actor,
            ..Call::system(self.app.now())
        };
        let issued = self.app.issue_token(&call, id).await.unwrap();
        Credential::Bearer(issued.token)
    }

    /// Creates an enrolment token as the database contains it.
    pub(crate) fn enrolment_token(&self, tenant: Tenant) -> EnrolmentToken {
        let now = self.app.now();
        EnrolmentToken {
            id: EnrolmentTokenId(Uuid::now_v7()),
            tenant,
            name: Name::stored("rack 1".to_owned()),
            max_uses: 2,
            uses: 0,
            labels: Labels::default(),
            created_at: now,
            expires_at: now + SignedDuration::from_hours(1),
            revoked_at: None,
            made_by: None,
        }
    }

    pub(crate) async fn store_enrolment_token(&self, token: &EnrolmentToken) -> Credential {
        let secret = secret();
        let mut tx = self.store.begin().await.unwrap();
        let inserted = tx.insert_enrolment_token(token, &secret.hash()).await;
        inserted.unwrap();
        tx.commit().await.unwrap();
        Credential::Bearer(secret.reveal().to_owned())
    }

    /// Returns the organization's current signing key.
    pub(crate) async fn signer(&self, org: OrgId) -> (SigningKeyId, SigningPair) {
        let mut tx = self.store.read().await.unwrap();
        let key = tx.active_signing_key(org).await.unwrap().unwrap().value;
        let stored = tx.secret(key.secret).await.unwrap().unwrap();
        let seed = sealer().open(&key.secret.to_string(), &stored.sealed);
        (key.id, SigningPair::new(&seed.unwrap()).unwrap())
    }

    /// Creates a signing key of the organization that waits for a rotation.
    pub(crate) async fn standby_key(&self) -> SigningKeyId {
        let mut tx = self.store.begin().await.unwrap();
        let id = insert_signing_key(&mut tx, self.org, SigningKeyState::Standby).await;
        tx.commit().await.unwrap();
        id
    }

    pub(crate) async fn get(&self, path: &str, by: &Credential) -> Answer {
        self.send(&Method::GET, path, by, &Value::Null, &[]).await
    }

    pub(crate) async fn post(&self, path: &str, by: &Credential, body: Value) -> Answer {
        self.send(&Method::POST, path, by, &body, &[]).await
    }

    pub(crate) async fn send(
        &self,
        method: &Method,
        path: &str,
        by: &Credential,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Answer {
        let path = path
            .replace("{org}", &self.org.to_string())
            .replace("{project}", &self.project.to_string())
            .replace("{node}", &self.node.to_string());
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"));
        match by {
            Credential::None => {}
            Credential::Bearer(secret) => {
                request = request.header(header::AUTHORIZATION, format!("Bearer {secret}"));
            }
            Credential::NodeKey(key) => request = request.header("x-service-node-key", key),
            Credential::Session(secret) => {
                request = request.header(header::COOKIE, format!("a=b; __Host-session={secret}"));
            }
        }
        let text = if body.is_null() {
            String::new()
        } else {
            request = request.header(header::CONTENT_TYPE, "application/json");
            body.to_string()
        };
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send_request(request.body(Body::from(text)).unwrap())
            .await
    }

    pub(crate) async fn send_request(&self, mut request: Request<Body>) -> Answer {
        let address = Ipv4Addr::from_bits(self.address.load(Ordering::Relaxed));
        let peer = ConnectInfo(SocketAddr::from((address, 40_000)));
        request.extensions_mut().get_or_insert(peer);
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        sent_headers::check(&method, &path, status, &headers);
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        Answer {
            status,
            headers,
            body: from_slice(&bytes).unwrap_or_default(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
            bytes,
        }
    }
}

/// Reason why a credential is no longer accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended {
    Revoked,
    Expired,
    /// The session is open, but its proof of identity is too old.
    Proof,
}

async fn tenant(tx: &mut Transaction, name: &str) -> Tenant {
    let now = Timestamp::UNIX_EPOCH;
    let org = Org {
        id: OrgId(Uuid::now_v7()),
        name: Name::stored(name.to_owned()),
        created_at: now,
    };
    let project = Project {
        id: ProjectId(Uuid::now_v7()),
        org: org.id,
        name: Name::stored("edge".to_owned()),
        policy: ProjectPolicy::default(),
        created_at: now,
    };
    tx.insert_org(&org).await.unwrap();
    tx.insert_project(&project).await.unwrap();
    insert_signing_key(tx, org.id, SigningKeyState::Active).await;
    project.tenant()
}

async fn insert_signing_key(
    tx: &mut Transaction,
    org: OrgId,
    state: SigningKeyState,
) -> SigningKeyId {
    let (secret, mut seed, mut nonce) = (SecretId(Uuid::now_v7()), [0; 32], [0; 12]);
    fill(&mut seed);
    fill(&mut nonce);
    let stored = StoredSecret {
        id: secret,
        org: Some(org),
        sealed: sealer().seal(&secret.to_string(), nonce, &seed).unwrap(),
        created_at: Timestamp::UNIX_EPOCH,
    };
    tx.insert_secret(&stored).await.unwrap();
    let key = SigningKey {
        id: SigningKeyId(Uuid::now_v7()),
        org,
        state,
        public_key: SigningPair::new(&seed).unwrap().public(),
        secret,
        endorsement: None,
        created_at: Timestamp::UNIX_EPOCH,
        deactivated_at: None,
    };
    tx.insert_signing_key(&key).await.unwrap();
    key.id
}

async fn insert_node(tx: &mut Transaction, tenant: Tenant) -> (NodeId, Credential) {
    let (id, key) = (NodeId(Uuid::now_v7()), secret());
    let node = Node {
        id,
        tenant,
        name: Name::stored(id.to_string()),
        labels: Labels::default(),
        requested_labels: None,
        created_at: Timestamp::UNIX_EPOCH,
        rotating: false,
        report: None,
        order: None,
    };
    tx.insert_node(&node, &key.hash()).await.unwrap();
    (id, Credential::NodeKey(key.reveal().to_owned()))
}

pub(crate) fn sealer() -> Sealer {
    Sealer::new(vec![MasterKey::new(&[1; 32]).unwrap()]).unwrap()
}

/// Computed only once, because it takes long.
fn password_hash() -> PasswordHash {
    static HASH: OnceLock<PasswordHash> = OnceLock::new();
    let hash = || Password::new(PASSWORD.to_owned()).hash([7; 16]).unwrap();
    HASH.get_or_init(hash).clone()
}

fn secret() -> Secret {
    let mut random = [0; 32];
    fill(&mut random);
    Secret::new(random)
}

fn fill(bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(16) {
        let random = Uuid::new_v4();
        chunk.copy_from_slice(&random.as_bytes()[..chunk.len()]);
    }
}
