//! Every route against every wrong actor, and against the right one.

use crate::world::{Credential, Ended, World, sample, worlds};
use axum::http::StatusCode;
use control_api::{ROUTES, Route};
use control_domain::{Access, ApiKey, Role, Scope, ScopeRule, Tenant};
use jiff::SignedDuration;

type Case = (&'static str, Credential, StatusCode);

/// The route's path with a value of the right organization in each place.
async fn target(world: &World, route: &Route) -> String {
    if !route.path.contains("{api_key}") {
        return route.path.to_owned();
    }
    let mut key = world.key(world.tenant(), &[]);
    if route.method == axum::http::Method::DELETE {
        key.revoked_at = Some(world.app.now());
    }
    world.store_key(&key).await;
    route.path.replace("{api_key}", &key.id.to_string())
}

async fn right(world: &World, access: Access) -> Vec<Credential> {
    match access {
        Access::Public => vec![Credential::None],
        Access::SetUp => vec![world.setup_link(SignedDuration::ZERO).await],
        Access::InstanceAdmin => vec![world.instance_admin().await],
        Access::SignedIn => vec![
            world.full_key().await,
            world.user(world.org, Role::Reader).await,
        ],
        Access::Member { scope, role } => {
            let scopes: Vec<Scope> = match scope {
                ScopeRule::Any => vec![Scope::NodesRead],
                ScopeRule::Has(scope) => vec![scope],
                ScopeRule::Unlimited => Vec::new(),
            };
            let key = world.key(Tenant::org(world.org), &scopes);
            vec![
                world.full_key().await,
                world.store_key(&key).await,
                world.user(world.org, role).await,
            ]
        }
        Access::Enrolment | Access::OwnNode | Access::OwnNodeKey | Access::System => Vec::new(),
    }
}

/// Credentials that must not pass, and what each is answered.
async fn wrong(world: &World, access: Access) -> Vec<Case> {
    let (unknown, forbidden) = (StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN);
    let mut cases = ended(world, access).await;
    let garbage = Credential::Bearer("x".repeat(43));
    cases.push(("no credential", Credential::None, unknown));
    cases.push(("an unknown key", garbage, unknown));
    let cookie = Credential::Session("x".repeat(43));
    cases.push(("an unknown session", cookie, unknown));
    if access != Access::SetUp {
        let link = world.setup_link(SignedDuration::ZERO).await;
        cases.push(("a set-up link", link, forbidden));
    }
    match access {
        Access::Member { scope, role } => {
            for lower in Role::ALL.iter().copied().filter(|lower| *lower < role) {
                let user = world.user(world.org, lower).await;
                cases.push(("a lower role", user, forbidden));
            }
            for other in Scope::ALL.iter().copied() {
                if scope != ScopeRule::Any && scope != ScopeRule::Has(other) {
                    let key = world.key(Tenant::org(world.org), &[other]);
                    cases.push(("a wrong scope", world.store_key(&key).await, forbidden));
                }
            }
        }
        Access::InstanceAdmin => {
            let admin = world.user(world.org, Role::Admin).await;
            cases.push(("an organization's administrator", admin, forbidden));
            cases.push(("a full key", world.full_key().await, forbidden));
        }
        Access::SetUp => {
            cases.push(("a full key", world.full_key().await, forbidden));
            let admin = world.instance_admin().await;
            cases.push(("an administrator", admin, forbidden));
        }
        Access::Public
        | Access::SignedIn
        | Access::Enrolment
        | Access::OwnNode
        | Access::OwnNodeKey
        | Access::System => {}
    }
    cases
}

async fn ended(world: &World, access: Access) -> Vec<Case> {
    let unknown = StatusCode::UNAUTHORIZED;
    if access == Access::SetUp {
        let old = world.setup_link(SignedDuration::from_hours(25)).await;
        return vec![("an old link", old, unknown)];
    }
    let now = world.app.now();
    let full = || world.key(Tenant::org(world.org), &[]);
    let revoked = ApiKey {
        revoked_at: Some(now),
        ..full()
    };
    let expired = ApiKey {
        expires_at: Some(now),
        ..full()
    };
    let (org, admin) = (world.org, Role::Admin);
    let signed_out = world.store_user(org, admin, true, Some(Ended::Revoked));
    let idle = world.store_user(org, admin, true, Some(Ended::Expired));
    vec![
        ("a revoked key", world.store_key(&revoked).await, unknown),
        ("an expired key", world.store_key(&expired).await, unknown),
        ("a session that was ended", signed_out.await, unknown),
        ("an idle session", idle.await, unknown),
    ]
}

/// Credentials of another tenant: to them nothing that a route names exists.
async fn strangers(world: &World, route: &Route) -> Vec<Case> {
    if !route.path.contains('{') || !matches!(route.access, Access::Member { .. }) {
        return Vec::new();
    }
    let missing = StatusCode::NOT_FOUND;
    let key = world.key(Tenant::org(world.other.org), &[]);
    let mut cases = vec![
        ("a stranger's key", world.store_key(&key).await, missing),
        (
            "a stranger",
            world.user(world.other.org, Role::Admin).await,
            missing,
        ),
    ];
    if !route.path.starts_with("/orgs/") {
        let beside = world
            .post(
                "/orgs/{org}/projects",
                &world.full_key().await,
                sample("/orgs/{org}/projects"),
            )
            .await;
        let beside = beside.text("id").parse().unwrap();
        let key = world.key(Tenant::project(world.org, beside), &[]);
        let key = world.store_key(&key).await;
        cases.push(("a key of the project beside", key, missing));
    }
    cases
}

#[tokio::test]
async fn no_wrong_actor_passes_any_route() {
    for world in worlds().await {
        for route in ROUTES {
            let mut cases = wrong(&world, route.access).await;
            cases.extend(strangers(&world, route).await);
            for (name, credential, status) in cases {
                world.change_address();
                let path = target(&world, route).await;
                let body = sample(route.path);
                let answer = world
                    .send(&route.method, &path, &credential, &body, &[])
                    .await;
                let place = format!("{} {} by {name}", route.method, route.path);
                assert_eq!(answer.status, status, "{place}: {}", answer.body);
                assert_eq!(
                    answer.body["error"]["correlation_id"],
                    answer.header("x-correlation-id"),
                    "{place}"
                );
            }
        }
    }
}

#[tokio::test]
async fn the_right_actor_passes_every_route() {
    for world in worlds().await {
        for route in ROUTES {
            let right = right(&world, route.access).await;
            assert!(!right.is_empty(), "{} {}", route.method, route.path);
            for credential in right {
                let world_path = target(&world, route).await;
                let path = fresh_project(&world, route, world_path).await;
                let body = sample(route.path);
                let answer = world
                    .send(&route.method, &path, &credential, &body, &[])
                    .await;
                assert!(
                    answer.status.is_success(),
                    "{} {}: {} {}",
                    route.method,
                    route.path,
                    answer.status,
                    answer.body
                );
            }
        }
    }
}

/// What is deleted is one of many.
async fn fresh_project(world: &World, route: &Route, path: String) -> String {
    if route.method != axum::http::Method::DELETE || !path.contains("{project}") {
        return path;
    }
    let full = world.full_key().await;
    let all = "/orgs/{org}/projects";
    let made = world.post(all, &full, sample(all)).await;
    path.replace("{project}", &made.text("id"))
}

#[tokio::test]
async fn a_cookie_of_another_site_changes_nothing() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let path = "/orgs/{org}/projects";
        let send = async |site| {
            let fields = [("sec-fetch-site", site)];
            let post = axum::http::Method::POST;
            world
                .send(&post, path, &admin, &sample(path), &fields)
                .await
        };
        assert_eq!(send("cross-site").await.status, StatusCode::FORBIDDEN);
        assert_eq!(send("same-origin").await.status, StatusCode::CREATED);
    }
}
