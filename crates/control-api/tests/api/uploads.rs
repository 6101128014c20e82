//! Uploads of bundles use limited memory, whatever clients do.

use crate::world::{Answer, Credential, World, sample};
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode, header};
use control_domain::{Role, Tenant};
use control_testkit::Database;
use control_wire::ProjectId;
use futures_util::future::join_all;
use futures_util::stream;
use http_body_util::Limited;
use serde_json::json;
use std::convert::Infallible;
use std::pin::pin;
use tokio::sync::{mpsc, watch};

const BUNDLES: &str = "/projects/{project}/bundles";
/// Maximum number of concurrent uploads of a user.
const OF_USER: usize = 2;
/// Number of organizations that can use up the whole budget with their largest uploads.
const HOSTILE: usize = 3;
const SMALL_BYTES: usize = 1024 * 1024;
const LARGEST_BYTES: usize = 32 * 1024 * 1024;

/// Uploads a small bundle with a body that ends when `gate` opens. `begun` is notified when its first
/// byte is read.
async fn slow_upload(
    world: &World,
    by: &Credential,
    begun: mpsc::UnboundedSender<()>,
    gate: watch::Receiver<bool>,
) -> Answer {
    slow_upload_to((world, world.project), by, SMALL_BYTES, begun, gate).await
}

/// Like `slow_upload`, to a project. The body may have up to `max_bytes`.
async fn slow_upload_to(
    (world, project): (&World, ProjectId),
    by: &Credential,
    max_bytes: usize,
    begun: mpsc::UnboundedSender<()>,
    mut gate: watch::Receiver<bool>,
) -> Answer {
    let text = sample(BUNDLES).to_string();
    let (first, rest) = text.split_at(10);
    let (first, rest) = (Bytes::from(first.to_owned()), Bytes::from(rest.to_owned()));
    let first = stream::once(async move {
        begun.send(()).unwrap_or_default();
        Ok::<_, Infallible>(first)
    });
    let rest = stream::once(async move {
        gate.wait_for(|open| *open).await.unwrap();
        Ok(rest)
    });
    let body = Body::from_stream(futures_util::StreamExt::chain(first, rest));
    let body = Body::new(Limited::new(body, max_bytes));
    let (name, credential) = match by {
        Credential::Session(session) => (header::COOKIE, format!("__Host-session={session}")),
        Credential::Bearer(key) => (header::AUTHORIZATION, format!("Bearer {key}")),
        Credential::None | Credential::NodeKey(_) => unreachable!("a user uploads"),
    };
    let path = BUNDLES.replace("{project}", &project.to_string());
    let request = Request::post(format!("/api/v1{path}"))
        .header(header::CONTENT_TYPE, "application/json")
        .header(name, credential);
    world.send_request(request.body(body).unwrap()).await
}

#[tokio::test]
async fn slow_uploads_of_one_actor_leave_places_to_others() {
    let world = World::new(Database::sqlite()).await;
    let slow = world.user(world.org, Role::Operator).await;
    let other = world.user(world.org, Role::Operator).await;
    let (gate, closed) = watch::channel(false);
    let (begun, mut beginnings) = mpsc::unbounded_channel();
    let upload = || slow_upload(&world, &slow, begun.clone(), closed.clone());
    let uploads = join_all((0..OF_USER).map(|_| upload()));
    let concurrent = async {
        for _ in 0..OF_USER {
            beginnings.recv().await.unwrap();
        }
        let (further, of_other) = tokio::join!(
            world.post(BUNDLES, &slow, sample(BUNDLES)),
            world.post(BUNDLES, &other, sample(BUNDLES)),
        );
        let listed = world.get(BUNDLES, &slow).await;
        gate.send(true).unwrap();
        (further, of_other, listed)
    };
    let (uploaded, (further, of_other, listed)) = tokio::join!(uploads, concurrent);

    assert_eq!(further.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(further.header("retry-after"), "30");
    assert_eq!(of_other.status, StatusCode::CREATED, "{}", of_other.body);
    assert_eq!(listed.status, StatusCode::OK, "other requests are served");
    for answer in uploaded {
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
    }
    let next = world.post(BUNDLES, &slow, sample(BUNDLES)).await;
    assert_eq!(next.status, StatusCode::CREATED, "{}", next.body);
}

/// Creates a key without scopes with the credential `by`.
async fn key_of(world: &World, by: &Credential) -> Credential {
    let mut new = sample("/api-keys");
    new["scopes"] = json!([]);
    let made = world.post("/api-keys", by, new).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    Credential::Bearer(made.text("secret"))
}

#[tokio::test]
async fn the_keys_of_one_administrator_leave_places_to_others() {
    let world = World::new(Database::sqlite()).await;
    let admin = world.user(world.org, Role::Admin).await;
    let own = key_of(&world, &admin).await;
    let made_by_key = key_of(&world, &own).await;
    let other = world.user(world.org, Role::Operator).await;
    let (gate, closed) = watch::channel(false);
    let (begun, mut beginnings) = mpsc::unbounded_channel();
    let upload = |by| slow_upload(&world, by, begun.clone(), closed.clone());
    let uploads = join_all([&own, &made_by_key].map(upload));
    let concurrent = async {
        for _ in 0..OF_USER {
            beginnings.recv().await.unwrap();
        }
        let (by_session, of_other) = tokio::join!(
            world.post(BUNDLES, &admin, sample(BUNDLES)),
            world.post(BUNDLES, &other, sample(BUNDLES)),
        );
        gate.send(true).unwrap();
        (by_session, of_other)
    };
    let (uploaded, (by_session, of_other)) = tokio::join!(uploads, concurrent);
    assert_eq!(by_session.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(of_other.status, StatusCode::CREATED, "{}", of_other.body);
    for answer in uploaded {
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
    }
}

#[tokio::test]
async fn an_organization_without_an_upload_gets_the_room_of_three_hostile_ones() {
    let world = World::new(Database::sqlite()).await;
    let mut tenants = Vec::new();
    for number in 0..=HOSTILE {
        let tenant = world.new_tenant(&format!("tenant {number}")).await;
        let key = world.key(Tenant::org(tenant.org), &[]);
        tenants.push((tenant.project.unwrap(), world.store_key(&key).await));
    }
    let (own_project, own_key) = tenants.pop().unwrap();
    let (gate, closed) = watch::channel(false);
    let (begun, mut beginnings) = mpsc::unbounded_channel();
    let hostile = tenants.iter().flat_map(|tenant| [tenant, tenant]);
    let hostile = hostile.map(|(project, key)| {
        let to = (&world, *project);
        slow_upload_to(to, key, LARGEST_BYTES, begun.clone(), closed.clone())
    });
    let own = async {
        for _ in 0..HOSTILE {
            beginnings.recv().await.unwrap();
        }
        let path = BUNDLES.replace("{project}", &own_project.to_string());
        let own = world.post(&path, &own_key, sample(BUNDLES)).await;
        gate.send(true).unwrap();
        own
    };
    let (held, own) = tokio::join!(join_all(hostile), own);
    assert_eq!(own.status, StatusCode::CREATED, "{}", own.body);
    let cut = |answer: &&Answer| answer.status == StatusCode::REQUEST_TIMEOUT;
    let cut = held.iter().filter(cut).count();
    assert!((1..=HOSTILE).contains(&cut), "{cut}");
}

#[tokio::test]
async fn uploads_of_disconnected_clients_release_their_permits() {
    let world = World::new(Database::sqlite()).await;
    let operator = world.user(world.org, Role::Operator).await;
    let (gate, closed) = watch::channel(false);
    let (begun, mut beginnings) = mpsc::unbounded_channel();
    {
        let upload = || slow_upload(&world, &operator, begun.clone(), closed.clone());
        let mut uploads = pin!(join_all((0..OF_USER).map(|_| upload())));
        for _ in 0..OF_USER {
            tokio::select! {
                _ = &mut uploads => unreachable!("the gate is closed"),
                begun = beginnings.recv() => begun.unwrap(),
            }
        }
    }
    let next = world.post(BUNDLES, &operator, sample(BUNDLES)).await;
    assert_eq!(next.status, StatusCode::CREATED, "{}", next.body);
    drop(gate);
}
