//! A control plane that was set up by its page, and people with every role.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use control_app::{App, Call, Environment, Objects};
use control_auth::{MasterKey, Sealer, Secret};
use control_domain::{Email, Membership, Name, Role, Session, User};
use control_http::SessionCookie;
use control_store::Store;
use control_testkit::{Database, databases};
use control_wire::{OrgId, ProjectId, SessionId, UserId};
use jiff::Timestamp;
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
    /// The session of the administrator that set it up.
    pub(crate) admin: String,
    _database: Database,
    _objects: TempDir,
}

/// What a browser got.
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

    /// The heading.
    pub(crate) fn heading(&self) -> &str {
        between(&self.text, "<h1>", "</h1>")
    }

    /// The token of the page's forms.
    pub(crate) fn csrf(&self) -> &str {
        between(&self.text, "name=\"csrf\" value=\"", "\"")
    }

    /// The value of a cookie that the response sets.
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

/// A control plane on each database.
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
        let sealer = Sealer::new(vec![MasterKey::new(&[1; 32]).unwrap()]).unwrap();
        let environment = Environment {
            now: Timestamp::now,
            fill,
        };
        let app = Arc::new(App::new(store.clone(), folder, sealer, environment));
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
            _objects: objects,
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

    /// A command of the administrator.
    pub(crate) async fn call(&self) -> Call {
        self.call_at(self.app.now()).await
    }

    /// A command of the administrator at a time.
    pub(crate) async fn call_at(&self, now: Timestamp) -> Call {
        let presented = control_app::Presented::Session(&self.admin);
        let actor = self.app.authenticate(presented, None, self.app.now()).await;
        Call {
            actor: actor.unwrap(),
            ..Call::system(now)
        }
    }

    /// The session of a new member.
    pub(crate) async fn member(&self, role: Role) -> String {
        let (now, id) = (self.app.now(), UserId(Uuid::now_v7()));
        let user = User {
            id,
            email: Email::stored(format!("{id}@example.com")),
            name: Name::stored("Bo Lindqvist".to_owned()),
            password: None,
            instance_admin: false,
            created_at: now,
        };
        let membership = Membership {
            org: self.org,
            user: id,
            role,
            created_at: now,
        };
        self.sign_in(&user, Some(membership)).await
    }

    /// The session of a new user of no organization.
    pub(crate) async fn stranger(&self) -> String {
        let (now, id) = (self.app.now(), UserId(Uuid::now_v7()));
        let user = User {
            id,
            email: Email::stored(format!("{id}@example.com")),
            name: Name::stored("Eve".to_owned()),
            password: None,
            instance_admin: false,
            created_at: now,
        };
        self.sign_in(&user, None).await
    }

    async fn sign_in(&self, user: &User, membership: Option<Membership>) -> String {
        let mut random = [0; 32];
        fill(&mut random);
        let secret = Secret::new(random);
        let session = Session::start(SessionId(Uuid::now_v7()), user.id, self.app.now());
        let mut tx = self.store.begin().await.unwrap();
        tx.insert_user(user).await.unwrap();
        if let Some(membership) = membership {
            tx.insert_membership(membership).await.unwrap();
        }
        tx.insert_session(session, &secret.hash()).await.unwrap();
        tx.commit().await.unwrap();
        secret.reveal().to_owned()
    }

    /// A path with the identifiers of this world in it.
    pub(crate) fn path(&self, path: &str) -> String {
        path.replace("{org}", &self.org.to_string())
            .replace("{project}", &self.project.to_string())
    }

    /// A page, by a session; an empty one is none.
    pub(crate) async fn get(&self, path: &str, session: &str) -> Shown {
        let request = self.request(&Method::GET, path, session);
        self.send(request.body(Body::empty()).unwrap()).await
    }

    /// A form that a page of this server sends.
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

    /// Opens a page, and sends the form that it holds to `path`.
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
        self.post(path, session, &csrf, fields).await
    }

    fn request(&self, method: &Method, path: &str, session: &str) -> axum::http::request::Builder {
        let mut request = Request::builder().method(method).uri(self.path(path));
        if !session.is_empty() {
            request = request.header(header::COOKIE, format!("__Host-session={session}"));
        }
        request
    }

    pub(crate) async fn send(&self, mut request: Request<Body>) -> Shown {
        let peer = ConnectInfo(SocketAddr::from(([10, 0, 0, 1], 40_000)));
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

fn fill(bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(16) {
        let random = Uuid::new_v4();
        chunk.copy_from_slice(&random.as_bytes()[..chunk.len()]);
    }
}
