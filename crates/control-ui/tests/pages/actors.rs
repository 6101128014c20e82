//! Every row of the page table, including forms, with every kind of user.

use crate::fleet::Fleet;
use crate::headers::filled_path;
use crate::world::{Shown, World};
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, StatusCode, header};
use control_domain::{Access, Role};
use control_http::SessionCookie;
use control_testkit::Database;
use control_ui::{PAGES, Page};
use std::net::SocketAddr;
use uuid::Uuid;

const STALE_FORM: &str = "Forbidden. This form belongs to an earlier sign-in.";

/// A user, with the role in the organization and in the project of the pages.
struct Actor {
    name: &'static str,
    session: String,
    /// Token for forms of the session.
    csrf: String,
    org: Option<Role>,
    project: Option<Role>,
    /// Whether the last proof of identity is at most ten minutes old.
    is_fresh: bool,
}

impl Actor {
    async fn new(
        world: &World,
        (name, session): (&'static str, String),
        role: Option<Role>,
    ) -> Self {
        Self {
            name,
            csrf: world.get("/profile", &session).await.csrf().to_owned(),
            session,
            org: role,
            project: role,
            is_fresh: true,
        }
    }

    /// Returns the role that decides about a page.
    fn role(&self, page: &Page) -> Option<Role> {
        if page.path.starts_with("/projects/") {
            return self.project;
        }
        self.org
    }

    /// False for pages of keys: their path does not contain the organization.
    fn is_named_by(&self, page: &Page) -> bool {
        self.org.is_some() || !page.path.starts_with("/api-keys")
    }
}

async fn actors(world: &World) -> Vec<Actor> {
    let (other, _) = world.other_org("globex").await;
    let other_project = world.add_project("other").await;
    let foreign = world.add_member_of(other, Role::Admin).await;
    let mut users = vec![
        ("a user of no organization", world.stranger().await, None),
        ("another organization's administrator", foreign, None),
    ];
    for (name, role) in [
        ("a reader", Role::Reader),
        ("an operator", Role::Operator),
        ("an administrator", Role::Admin),
    ] {
        users.push((name, world.member(role).await, Some(role)));
    }
    let mut all = Vec::new();
    for (name, session, role) in users {
        all.push(Actor::new(world, (name, session), role).await);
    }
    let own = world.project;
    for (name, project, role) in [
        ("an operator of the project", own, Role::Operator),
        ("an administrator of the project", own, Role::Admin),
        (
            "an administrator of another project",
            other_project,
            Role::Admin,
        ),
    ] {
        let session = world.project_member(project, role).await;
        let reader = Actor::new(world, (name, session), Some(Role::Reader)).await;
        all.push(Actor {
            project: Some(if project == own { role } else { Role::Reader }),
            ..reader
        });
    }
    let stale = ("a proof that is not fresh", world.stale_admin().await);
    let stale = Actor::new(world, stale, Some(Role::Admin)).await;
    all.push(Actor {
        is_fresh: false,
        ..stale
    });
    all
}

/// Fills the path of a row with IDs of the fleet, of the key, and of objects that do not exist.
fn path(world: &World, fleet: &Fleet, page: &Page, key: &str) -> String {
    let path = filled_path(fleet, page);
    let path = world.path(&path).replace("{api_key}", key);
    let parts = path.split('/').map(|part| {
        if part.starts_with('{') {
            Uuid::nil().to_string()
        } else {
            part.to_owned()
        }
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Returns the status of the refusal; `None` if access is permitted.
fn refusal(page: &Page, actor: &Actor) -> Option<StatusCode> {
    // Redirects to the proof of identity.
    let led = StatusCode::SEE_OTHER;
    if let Access::Member { role, fresh, .. } = page.access {
        return match actor.role(page) {
            None => Some(StatusCode::NOT_FOUND),
            Some(own) if own < role => Some(StatusCode::FORBIDDEN),
            Some(_) => (fresh && !actor.is_fresh).then_some(led),
        };
    }
    // The administrator that ran the set-up has the stale session.
    if page.access == Access::InstanceAdmin {
        return actor.is_fresh.then_some(StatusCode::FORBIDDEN);
    }
    let is_led = page.access == Access::FreshSession && !actor.is_fresh;
    is_led.then_some(led)
}

/// Returns true if the form needs a proof of identity first, and is then executed.
fn is_asked_for_proof(page: &Page, actor: &Actor) -> bool {
    let is_led = refusal(page, actor) == Some(StatusCode::SEE_OTHER);
    is_led && page.method == Method::POST
}

/// Returns true if the response agrees with the page table.
fn is_right(page: &Page, actor: &Actor, answer: &Shown) -> bool {
    let is_stale = answer.heading() == STALE_FORM;
    if is_asked_for_proof(page, actor) {
        let is_asked = answer.heading() == "Confirm your identity.";
        return is_asked && answer.status == StatusCode::FORBIDDEN;
    }
    match refusal(page, actor) {
        Some(status) => answer.status == status && !is_stale,
        None if page.method == Method::POST => is_stale,
        // If a user has only one project, `/` redirects to it.
        None if page.path == "/" => answer.status.is_success() || answer.status.is_redirection(),
        None => answer.status == StatusCode::OK,
    }
}

/// Returns the responses that differ from the page table.
async fn wrong_answers(
    world: &World,
    actors: &[Actor],
    key: &str,
    number: usize,
    row: &Page,
    path: &str,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for key in [None, Some(key)] {
        let answer = send_bare(world, row, path, key, number).await;
        let to_sign_in = answer.header("location").starts_with("/sign-in?return=");
        if !to_sign_in || answer.status != StatusCode::SEE_OTHER {
            wrong.push(format!("by {key:?}: {}", answer.status));
        }
    }
    for actor in actors.iter().filter(|actor| actor.is_named_by(row)) {
        let answer = ask(world, actor, row, path).await;
        if !is_right(row, actor, &answer) {
            let (status, heading) = (answer.status, answer.heading());
            wrong.push(format!("by {}: {status} {heading}", actor.name));
        }
    }
    wrong
}

/// Sends the request. A form that access rules permit has another session's token, so that it
/// changes nothing.
async fn ask(world: &World, actor: &Actor, row: &Page, path: &str) -> Shown {
    if row.method == Method::GET {
        return world.get(path, &actor.session).await;
    }
    let is_refused = refusal(row, actor).is_some();
    let csrf = if is_refused { &actor.csrf } else { "another" };
    let org = world.org.to_string();
    let value = |name| if name == "org" { org.as_str() } else { "" };
    let fields: Vec<_> = row
        .fields
        .iter()
        .map(|name| (*name, value(*name)))
        .collect();
    world.post(path, &actor.session, csrf, &fields).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_is_for_its_actors_alone() {
    // On SQLite only: the rules do not depend on the database, and the interface is tested on both.
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let fleet = Fleet::new(&world).await;
    let actors = actors(&world).await;
    let (id, key) = world.key().await;
    let rows = PAGES.iter().filter(|row| {
        let is_open = matches!(row.access, Access::SetUp | Access::Invitee | Access::Public);
        !is_open && row.path != "/events"
    });
    let mut wrong = Vec::new();
    for (number, row) in rows.enumerate() {
        let path = path(&world, &fleet, row, &id);
        let found = wrong_answers(&world, &actors, &key, number, row, &path).await;
        let place = format!("{} {}", row.method, row.path);
        wrong.extend(found.iter().map(|answer| format!("{place} {answer}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Sends a request without a session, possibly with an API key, from an unused address.
async fn send_bare(
    world: &World,
    row: &Page,
    path: &str,
    key: Option<&str>,
    number: usize,
) -> Shown {
    let mut request = Request::builder().method(&row.method).uri(path);
    if let Some(key) = key {
        request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
    }
    let request = request
        .header("sec-fetch-site", "same-origin")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let network = 2 + u8::from(key.is_some());
    let address = [10, 0, network, u8::try_from(number % 250).unwrap()];
    let peer = ConnectInfo(SocketAddr::from((address, 40_000)));
    let request = request.body(Body::from("csrf=a")).unwrap();
    world.send_from(request, peer).await
}
