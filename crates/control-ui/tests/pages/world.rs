//! A control plane after set-up, and users with every role.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use control_app::{ApiKeyTenant, App, Call, Environment, Objects};
use control_auth::{MasterKey, Sealer, Secret};
use control_domain::{
    Actor, Email, HeartbeatInterval, LinkedIdentity, Membership, Name, NewApiKey, ProjectRole,
    Role, Session, SessionOrigin, SignInMethod, SsoConnection, User,
};
use control_http::SessionCookie;
use control_store::{Store, StoredSecret};
use control_testkit::{Database, databases};
use control_wire::{IdentityId, OrgId, ProjectId, SecretId, SessionId, UserId};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use tempfile::TempDir;
use tower::ServiceExt;
use uuid::Uuid;

/// A control plane with one organization and one project.
pub(crate) struct World {
    pub(crate) app: Arc<App>,
    pub(crate) store: Store,
    pub(crate) router: Router,
    pub(crate) org: OrgId,
    pub(crate) project: ProjectId,
    /// Session of the administrator that ran the set-up.
    pub(crate) admin: String,
    _database: Database,
    objects: TempDir,
}

/// A response as a browser receives it.
pub(crate) struct Shown {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Shown {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn heading(&self) -> &str {
        between(&self.text, "<h1>", "</h1>")
    }

    /// Returns the token in the page's forms.
    pub(crate) fn csrf(&self) -> &str {
        between(&self.text, "name=\"csrf\" value=\"", "\"")
    }

    /// Returns the hidden version in the form that is sent to `path`; empty without one.
    pub(crate) fn version(&self, path: &str) -> &str {
        let action = format!("action=\"{path}\"");
        let mut forms = self.text.split("<form ").skip(1);
        let form = forms
            .find(|form| form.contains(&action))
            .unwrap_or_default();
        let form = form.split("</form>").next().unwrap_or_default();
        between(form, "name=\"version\" value=\"", "\"")
    }

    /// Returns the value of a cookie that the response sets.
    pub(crate) fn cookie(&self, name: &str) -> Option<String> {
        let set = self.headers.get_all(header::SET_COOKIE).iter();
        let mut pairs =
            set.filter_map(|field| field.to_str().ok()?.split(';').next()?.split_once('='));
        let found = pairs.find(|(own, _)| *own == name);
        found.map(|(_, value)| value.to_owned())
    }
}

pub(crate) fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let found = text
        .split_once(begin)
        .and_then(|(_, rest)| rest.split_once(end));
    found.map_or("", |(inner, _)| inner)
}

/// Creates a control plane on each database.
pub(crate) async fn worlds() -> Vec<World> {
    let mut worlds = Vec::new();
    for database in databases() {
        worlds.push(World::new(database, SessionCookie::Tls).await);
    }
    worlds
}

impl World {
    pub(crate) async fn new(database: Database, cookie: SessionCookie) -> Self {
        let objects = tempfile::tempdir().unwrap();
        let store = Store::open(&database.url).await.unwrap();
        let folder = Objects::in_folder(objects.path()).unwrap();
        let environment = Environment {
            now: Timestamp::now,
            fill,
        };
        let mut app = App::new(store.clone(), folder, sealer(), environment);
        // Long enough that nodes stay online while a browser shows the fleet for minutes.
        app.heartbeat_interval = HeartbeatInterval::from_secs(300);
        let app = Arc::new(app);
        let link = app.bootstrap(app.now()).await.unwrap().unwrap();
        let router = control_ui::router(&app, cookie);
        let mut world = Self {
            router,
            app,
            store,
            org: OrgId(Uuid::nil()),
            project: ProjectId(Uuid::nil()),
            admin: String::new(),
            _database: database,
            objects,
        };
        let made = world.set_up(link.reveal()).await;
        world.admin = made.cookie(cookie.name()).unwrap();
        let path = made.header("location").rsplit('/').next().unwrap();
        world.project = path.parse().unwrap();
        let call = world.call().await;
        world.org = call.actor.orgs()[0];
        world
    }

    async fn set_up(&self, link: &str) -> Shown {
        let shown = self.get(&format!("/set-up?token={link}"), "").await;
        assert_eq!(
            shown.heading(),
            "This installation has no administrator yet."
        );
        let fields = [
            ("token", link),
            ("org_name", "acme"),
            ("project_name", "edge"),
            ("user_name", "Ann Brandt"),
            ("email", "ann@example.com"),
            ("password", "correct horse battery"),
        ];
        let made = self.post("/set-up", "", shown.csrf(), &fields).await;
        assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text);
        made
    }

    /// Creates a call by the administrator.
    pub(crate) async fn call(&self) -> Call {
        self.call_at(self.app.now()).await
    }

    /// Creates a call by the administrator at a given time.
    pub(crate) async fn call_at(&self, now: Timestamp) -> Call {
        let presented = control_app::Presented::Session(&self.admin);
        let actor = self.app.authenticate(presented, None, self.app.now()).await;
        Call {
            actor: actor.unwrap(),
            ..Call::system(now)
        }
    }

    /// Creates a member; returns the session.
    pub(crate) async fn member(&self, role: Role) -> String {
        let user = self.add_member(role).await;
        self.session_since(user, self.app.now()).await
    }

    /// Creates another organization with a project.
    pub(crate) async fn other_org(&self, name: &str) -> (OrgId, ProjectId) {
        let call = self.call().await;
        let org = self.app.create_org(&call, name).await.unwrap().value.id;
        let call = self.call().await;
        let project = self.app.create_project(&call, org, "edge").await.unwrap();
        (org, project.value.id)
    }

    /// Creates another project of the organization.
    pub(crate) async fn add_project(&self, name: &str) -> ProjectId {
        let call = self.call().await;
        let project = self.app.create_project(&call, self.org, name).await;
        project.unwrap().value.id
    }

    /// Creates an API key with full access; returns ID and secret.
    pub(crate) async fn key(&self) -> (String, String) {
        self.named_key("pages").await
    }

    /// Creates a key with this name; returns ID and secret.
    pub(crate) async fn named_key(&self, name: &str) -> (String, String) {
        let new = NewApiKey {
            name: name.to_owned(),
            scopes: BTreeSet::new(),
            expires_at: None,
        };
        let place = ApiKeyTenant {
            org: Some(self.org),
            project: None,
        };
        let call = self.call().await;
        let made = self.app.create_api_key(&call, place, new).await;
        let (key, secret) = made.unwrap();
        (key.value.id.to_string(), secret.reveal().to_owned())
    }

    /// Creates a reader with a role in a project; returns the session.
    pub(crate) async fn project_member(&self, project: ProjectId, role: Role) -> String {
        let user = self.add_member(Role::Reader).await;
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
        self.session_since(user, self.app.now()).await
    }

    /// Creates a member of another organization; returns the session.
    pub(crate) async fn add_member_of(&self, org: OrgId, role: Role) -> String {
        let user = self.add_user("Eve").await;
        self.join(org, user, role).await;
        self.session_since(user, self.app.now()).await
    }

    /// Creates a user without an organization.
    async fn add_user(&self, name: &str) -> UserId {
        let (now, id) = (self.app.now(), UserId(Uuid::now_v7()));
        let user = User {
            id,
            email: Email::stored(format!("{id}@example.com")),
            name: Name::stored(name.to_owned()),
            password: None,
            instance_admin: false,
            created_at: now,
        };
        let mut tx = self.store.begin().await.unwrap();
        tx.insert_user(&user).await.unwrap();
        tx.commit().await.unwrap();
        id
    }

    /// Makes a user a member of an organization.
    pub(crate) async fn join(&self, org: OrgId, user: UserId, role: Role) {
        let membership = Membership {
            org,
            user,
            role,
            created_at: self.app.now(),
        };
        let mut tx = self.store.begin().await.unwrap();
        tx.insert_membership(membership).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Creates a member.
    pub(crate) async fn add_member(&self, role: Role) -> UserId {
        let user = self.add_user("Bo Lindqvist").await;
        self.join(self.org, user, role).await;
        user
    }

    /// Creates a user without an organization; returns the session.
    pub(crate) async fn stranger(&self) -> String {
        let user = self.add_user("Eve").await;
        self.session_since(user, self.app.now()).await
    }

    /// Creates a session of the administrator, with a proof of identity too old for changes.
    pub(crate) async fn stale_admin(&self) -> String {
        self.stale_session(self.admin_user().await).await
    }

    pub(crate) async fn admin_user(&self) -> UserId {
        let Actor::User { id, .. } = self.call().await.actor else {
            panic!("the administrator is a user");
        };
        id
    }

    /// Creates a session that began half an hour ago.
    pub(crate) async fn stale_session(&self, user: UserId) -> String {
        let since = self.app.now() - SignedDuration::from_mins(30);
        self.session_since(user, since).await
    }

    /// Configures single sign-on for the organization, and links an identity of the administrator.
    pub(crate) async fn link_admin(&self) {
        let settings = serde_json::json!({"oidc": {
            "client_id": "controld",
            "issuer": "https://id.example.com",
            "scopes": [],
            "group_mapping": {},
        }});
        let (call, now, secret) = (self.call().await, self.app.now(), SecretId(Uuid::now_v7()));
        let Actor::User { id: user, .. } = call.actor else {
            panic!("the administrator is a user");
        };
        let stored = StoredSecret {
            id: secret,
            org: Some(self.org),
            sealed: sealer()
                .seal(&secret.to_string(), [0; 12], b"secret")
                .unwrap(),
            created_at: now,
        };
        let connection = SsoConnection {
            org: self.org,
            settings: serde_json::from_value(settings).unwrap(),
            secret,
            created_at: now,
        };
        let identity = LinkedIdentity {
            id: IdentityId(Uuid::now_v7()),
            org: self.org,
            issuer: "https://id.example.com".to_owned(),
            subject: "ann-at-acme".to_owned(),
            user,
            created_at: now,
            seen_at: now,
        };
        let mut tx = self.store.begin().await.unwrap();
        tx.insert_secret(&stored).await.unwrap();
        tx.insert_sso_connection(&connection).await.unwrap();
        tx.insert_identity(&identity).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Creates a session of the user through the organization's identity provider.
    pub(crate) async fn provider_session(&self, user: UserId) -> String {
        let (method, provider) = (SignInMethod::Oidc, Some(self.org));
        self.start_session(user, self.app.now(), method, provider)
            .await
    }

    async fn session_since(&self, user: UserId, since: Timestamp) -> String {
        self.start_session(user, since, SignInMethod::Password, None)
            .await
    }

    async fn start_session(
        &self,
        user: UserId,
        since: Timestamp,
        method: SignInMethod,
        provider: Option<OrgId>,
    ) -> String {
        let mut random = [0; 32];
        fill(&mut random);
        let secret = Secret::new(random);
        let origin = SessionOrigin {
            method,
            provider,
            address: None,
            browser: "Firefox 140 on Linux".to_owned(),
        };
        let session = Session::start(SessionId(Uuid::now_v7()), user, origin, since);
        let mut tx = self.store.begin().await.unwrap();
        tx.insert_session(&session, &secret.hash()).await.unwrap();
        tx.commit().await.unwrap();
        secret.reveal().to_owned()
    }

    /// Deletes the archives of all bundles.
    pub(crate) fn lose_archives(&self) {
        fs::remove_dir_all(self.objects.path().join("bundles")).unwrap();
    }

    /// Fills a path with IDs.
    pub(crate) fn path(&self, path: &str) -> String {
        path.replace("{org}", &self.org.to_string())
            .replace("{project}", &self.project.to_string())
    }

    /// Requests a page with a session; an empty one sends no cookie.
    pub(crate) async fn get(&self, path: &str, session: &str) -> Shown {
        let request = self.request(&Method::GET, path, session);
        self.send(request.body(Body::empty()).unwrap()).await
    }

    /// Sends a form from a page of this server.
    pub(crate) async fn post(
        &self,
        path: &str,
        session: &str,
        csrf: &str,
        fields: &[(&str, &str)],
    ) -> Shown {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.append_pair("csrf", csrf).extend_pairs(fields);
        let request = self.request(&Method::POST, path, session);
        let request = request
            .header("sec-fetch-site", "same-origin")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.send(request.body(Body::from(body.finish())).unwrap())
            .await
    }

    /// Opens a page, and sends its form to `path`.
    pub(crate) async fn submit(
        &self,
        page: &str,
        path: &str,
        session: &str,
        fields: &[(&str, &str)],
    ) -> Shown {
        let shown = self.get(page, session).await;
        assert_eq!(shown.status, StatusCode::OK, "{page}: {}", shown.text);
        let csrf = shown.csrf().to_owned();
        let version = shown.version(&self.path(path));
        let is_given = fields.iter().any(|(name, _)| *name == "version");
        if version.is_empty() || is_given {
            return self.post(path, session, &csrf, fields).await;
        }
        let fields = [&[("version", version)][..], fields].concat();
        self.post(path, session, &csrf, &fields).await
    }

    fn request(&self, method: &Method, path: &str, session: &str) -> axum::http::request::Builder {
        let mut request = Request::builder().method(method).uri(self.path(path));
        if !session.is_empty() {
            request = request.header(header::COOKIE, format!("__Host-session={session}"));
        }
        request
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Shown {
        let peer = ConnectInfo(SocketAddr::from(([10, 0, 0, 1], 40_000)));
        self.send_from(request, peer).await
    }

    /// Sends a request from an address.
    pub(crate) async fn send_from(
        &self,
        mut request: Request<Body>,
        peer: ConnectInfo<SocketAddr>,
    ) -> Shown {
        request.extensions_mut().insert(peer);
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        Shown {
            status,
            headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }
}

fn sealer() -> Sealer {
    Sealer::new(vec![MasterKey::new(&[1; 32]).unwrap()]).unwrap()
}

fn fill(bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(16) {
        let random = Uuid::new_v4();
        chunk.copy_from_slice(&random.as_bytes()[..chunk.len()]);
    }
}
