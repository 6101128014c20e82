//! Access control: every route with every wrong credential, and with a right one.

use crate::people::authenticator;
use crate::world::{Credential, Ended, PASSWORD, World, sample, worlds};
use axum::http::{Method, StatusCode};
use control_api::{ROUTES, Route};
use control_domain::{
    Access, ApiKey, Drift, DriftState, EnrolmentToken, Role, Scope, ScopeRule, Tenant,
};
use control_wire::DriftId;
use jiff::SignedDuration;
use serde_json::{Value, json};
use uuid::Uuid;

type Case = (&'static str, Credential, StatusCode);

/// Returns the route's path, with IDs of the credential's organization.
#[expect(
    clippy::cognitive_complexity,
    reason = "one arm for each kind of resource"
)]
pub(crate) async fn target(world: &World, route: &Route) -> String {
    let full = world.full_key().await;
    let made = async |noun: &str| {
        let path = format!("/projects/{{project}}/{noun}");
        let body = body(world, &path).await;
        world.post(&path, &full, body).await.text("id")
    };
    let mut path = route.path.to_owned();
    if path.contains("{user}") {
        let user = world.member(Role::Operator).await;
        if path.ends_with("/totp") {
            world.give_totp(user).await;
        }
        if path.contains("/roles/") && route.method != Method::PUT {
            world.give_role(user, Role::Operator).await;
        }
        if path.contains("/removed-members/") {
            world.remove_member(user).await;
        }
        path = path.replace("{user}", &user.to_string());
    }
    if path.contains("{invitation}") {
        let (id, _) = world.invitation(SignedDuration::ZERO).await;
        path = path.replace("{invitation}", &id.to_string());
    }
    for (place, noun) in [
        ("{bundle}", "bundles"),
        ("{service}", "services"),
        ("{upstream}", "upstreams"),
        ("{certificate}", "certificates"),
        ("{managed_certificate}", "managed-certificates"),
        ("{webhook}", "webhooks"),
    ] {
        if path.contains(place) {
            path = path.replace(place, &made(noun).await);
        }
    }
    if path.ends_with("/diff") {
        path = format!("{path}?before={}", made("bundles").await);
    }
    if path.contains("{api_key}") {
        let mut key = world.key(world.tenant(), &[]);
        if route.method == Method::DELETE {
            key.revoked_at = Some(world.app.now());
        }
        world.store_key(&key).await;
        path = path.replace("{api_key}", &key.id.to_string());
    }
    if path.contains("{enrolment_token}") {
        let token = world.enrolment_token(world.tenant());
        world.store_enrolment_token(&token).await;
        path = path.replace("{enrolment_token}", &token.id.to_string());
    }
    // A random session: the owner still needs its own.
    path = path.replace("{session}", &Uuid::now_v7().to_string());
    path = path.replace("{identity}", &Uuid::now_v7().to_string());
    if route.path == "/orgs/{org}/sso" {
        let connected = sample(route.path);
        let admin = world.user(world.org, Role::Admin).await;
        world
            .send(&Method::PUT, route.path, &admin, &connected, &[])
            .await;
    }
    if path.contains("{signing_key}") {
        let key = world.standby_key().await;
        path = path.replace("{signing_key}", &key.to_string());
    }
    let path = waiting_node(world, path).await;
    order_bundle(world, &path).await;
    fleet_target(world, route, path).await
}

/// Creates a node that waits for approval, because it requested labels beyond those of its token.
async fn waiting_node(world: &World, path: String) -> String {
    if path != "/projects/{project}/nodes/{node}/approve" {
        return path;
    }
    let token = world.enrolment_token(world.tenant());
    let token = world.store_enrolment_token(&token).await;
    let register = "/projects/{project}/nodes/register";
    let mut asking = sample(register);
    asking["labels"] = json!({"zone": "eu"});
    let waiting = world.post(register, &token, asking).await.text("node_id");
    path.replace("{node}", &waiting)
}

/// Orders the node to run the bundle of `path`, or one that names the certificate of `path`: nodes
/// may fetch no other archives and certificates.
async fn order_bundle(world: &World, path: &str) {
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let bundle = if let Some(bundle) = path.strip_suffix("/archive") {
        last(bundle)
    } else if path.starts_with("/nodes/{node}/certificates/") {
        let (all, full) = ("/projects/{project}/bundles", world.full_key().await);
        let mut naming = sample(all);
        naming["files"][format!("certificates/{}.pem", last(path))] = json!("");
        world.post(all, &full, naming).await.text("id")
    } else {
        return;
    };
    let assign = format!("/projects/{{project}}/bundles/{bundle}/assign");
    let nodes = json!({"nodes": [world.node]});
    world.post(&assign, &world.full_key().await, nodes).await;
}

async fn fleet_target(world: &World, route: &Route, mut path: String) -> String {
    if path.contains("{rollout}") {
        path = path.replace("{rollout}", &rollout(world, route.path).await);
    }
    if path.contains("{drift}") {
        path = path.replace("{drift}", &drift(world).await);
    }
    // A node may use only paths with its own ID.
    if path.contains("{node}") && path.starts_with("/projects/") {
        let (node, _) = world.new_node(world.tenant()).await;
        path = path.replace("{node}", &node.to_string());
    }
    path
}

/// Creates a rollout with its own node, in a state that permits the route's command.
async fn rollout(world: &World, route: &str) -> String {
    let (full, all) = (world.made_key(&[]).await, "/projects/{project}/rollouts");
    let mut new = body(world, all).await;
    new["needs_approval"] = json!(route.ends_with("/approve"));
    let made = world.post(all, &full, new).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    let id = made.text("id");
    let before: &[&str] = match route.rsplit('/').next() {
        Some("approve" | "pause" | "rollback") => &["start"],
        Some("resume") => &["start", "pause"],
        _ => &[],
    };
    for command in before {
        let path = format!("{all}/{id}/{command}");
        let done = world.post(&path, &full, Value::Null).await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.body);
    }
    id
}

/// Creates a drift of its own node, which has an order.
async fn drift(world: &World) -> String {
    let (full, bundles) = (world.full_key().await, "/projects/{project}/bundles");
    let (node, _) = world.new_node(world.tenant()).await;
    let bundle = world.post(bundles, &full, sample(bundles)).await.text("id");
    let assign = format!("{bundles}/{bundle}/assign");
    world.post(&assign, &full, json!({"nodes": [node]})).await;
    let drift = Drift {
        id: DriftId(Uuid::now_v7()),
        tenant: world.tenant(),
        node,
        state: DriftState::Open,
        desired: bundle.parse().unwrap(),
        active: None,
        opened_at: world.app.now(),
        resolved_at: None,
        resolution: None,
    };
    let mut tx = world.store.begin().await.unwrap();
    tx.insert_drift(&drift).await.unwrap();
    tx.commit().await.unwrap();
    drift.id.to_string()
}

/// Returns the access of the caller that an enrolment token represents.
fn member(access: Access) -> Access {
    if access == Access::Enrolment {
        return Access::WRITE_NODES;
    }
    access
}

/// Returns a valid body that refers to existing resources.
pub(crate) async fn body(world: &World, path: &str) -> Value {
    let mut body = sample(path);
    if path.contains("/services") {
        let (all, full) = ("/projects/{project}/upstreams", world.full_key().await);
        let upstream = world.post(all, &full, sample(all)).await;
        body["upstream"] = json!(upstream.text("id"));
    }
    if path.ends_with("/rollouts") {
        let (all, full) = ("/projects/{project}/bundles", world.full_key().await);
        let bundle = world.post(all, &full, sample(all)).await;
        let (node, _) = world.new_node(world.tenant()).await;
        body = json!({"bundle": bundle.text("id"), "nodes": [node]});
    }
    if path.ends_with("/replay") {
        let (all, full) = ("/projects/{project}/bundles", world.full_key().await);
        let bundle = world.post(all, &full, sample(all)).await;
        body["before"] = json!(bundle.text("id"));
    }
    if path.ends_with("/assign") {
        body = json!({"nodes": [world.node]});
    }
    body
}

pub(crate) async fn right(world: &World, access: Access) -> Vec<Credential> {
    let mut right = Vec::new();
    match member(access) {
        Access::Public => right.push(Credential::None),
        Access::SetUp => right.push(world.setup_link(SignedDuration::ZERO).await),
        Access::Invitee => right.push(world.invitation(SignedDuration::ZERO).await.1),
        Access::InstanceAdmin | Access::FreshInstanceAdmin => {
            right.push(world.instance_admin().await);
        }
        Access::Session | Access::FreshSession => {
            right.push(world.user(world.org, Role::Reader).await);
        }
        Access::SignedIn => {
            right.push(world.full_key().await);
            right.push(world.user(world.org, Role::Reader).await);
        }
        Access::Member { scope, role, .. } => {
            let scopes: Vec<Scope> = match scope {
                ScopeRule::Any => vec![Scope::NodesRead],
                ScopeRule::Has(scope) => vec![scope],
                ScopeRule::Unlimited => Vec::new(),
            };
            right.push(world.made_key(&[]).await);
            right.push(world.made_key(&scopes).await);
            right.push(world.user(world.org, role).await);
        }
        Access::OwnNode | Access::OwnNodeKey => right.push(world.node_key.clone()),
        Access::Enrolment | Access::System => {}
    }
    if access == Access::OwnNode {
        right.push(world.token(world.node, world.tenant()).await);
    }
    if access == Access::Enrolment {
        let token = world.enrolment_token(world.tenant());
        right.push(world.store_enrolment_token(&token).await);
    }
    right
}

/// Returns credentials to refuse, with the expected responses.
async fn wrong(world: &World, access: Access) -> Vec<Case> {
    if access == Access::Public {
        return Vec::new();
    }
    let (unknown, forbidden) = (StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN);
    let mut cases = ended(world, access).await;
    let garbage = "x".repeat(43);
    cases.push(("no credential", Credential::None, unknown));
    let bearer = Credential::Bearer(garbage.clone());
    cases.push(("an unknown key", bearer, unknown));
    let key = Credential::NodeKey(garbage.clone());
    cases.push(("an unknown node key", key, unknown));
    let cookie = Credential::Session(garbage);
    cases.push(("an unknown session", cookie, unknown));
    if access != Access::SetUp {
        let link = world.setup_link(SignedDuration::ZERO).await;
        cases.push(("a set-up link", link, forbidden));
    }
    if access != Access::Invitee {
        let (_, invitation) = world.invitation(SignedDuration::ZERO).await;
        cases.push(("an invitation", invitation, forbidden));
    }
    if access != Access::Enrolment {
        let token = world.enrolment_token(world.tenant());
        let token = world.store_enrolment_token(&token).await;
        cases.push(("an enrolment token", token, forbidden));
    }
    cases.extend(nodes(world, access).await);
    cases.extend(lacking(world, access).await);
    if matches!(
        access,
        Access::FreshSession | Access::FreshInstanceAdmin | Access::Member { fresh: true, .. }
    ) {
        let stale = world.store_user(world.org, Role::Admin, true, Some(Ended::Proof));
        cases.push(("a proof that is not fresh", stale.await, forbidden));
    }
    cases
}

/// Returns credentials of users and keys without the required role or scope.
async fn lacking(world: &World, access: Access) -> Vec<Case> {
    let forbidden = StatusCode::FORBIDDEN;
    let mut cases = Vec::new();
    match member(access) {
        Access::Member { scope, role, .. } => {
            for lower in Role::ALL.iter().copied().filter(|lower| *lower < role) {
                let user = world.user(world.org, lower).await;
                cases.push(("a lower role", user, forbidden));
            }
            if Role::Reader < role {
                let user = world
                    .project_user(world.other_project().await, Role::Admin)
                    .await;
                cases.push(("an administrator of another project", user, forbidden));
            }
            for other in Scope::ALL.iter().copied() {
                if scope != ScopeRule::Any && scope != ScopeRule::Has(other) {
                    let key = world.key(Tenant::org(world.org), &[other]);
                    cases.push(("a wrong scope", world.store_key(&key).await, forbidden));
                }
            }
        }
        Access::InstanceAdmin | Access::FreshInstanceAdmin => {
            let admin = world.user(world.org, Role::Admin).await;
            cases.push(("an organization's administrator", admin, forbidden));
            cases.push(("a full key", world.full_key().await, forbidden));
        }
        Access::Session | Access::FreshSession => {
            cases.push(("a full key", world.full_key().await, forbidden));
        }
        Access::SetUp | Access::Invitee | Access::OwnNode | Access::OwnNodeKey => {
            cases.push(("a full key", world.full_key().await, forbidden));
            let admin = world.instance_admin().await;
            cases.push(("an administrator", admin, forbidden));
        }
        Access::Public | Access::SignedIn | Access::Enrolment | Access::System => {}
    }
    cases
}

/// Returns credentials of nodes, which are refused except for the node's own paths.
async fn nodes(world: &World, access: Access) -> Vec<Case> {
    let own_path = matches!(access, Access::OwnNode | Access::OwnNodeKey);
    let status = if own_path {
        StatusCode::UNAUTHORIZED
    } else {
        StatusCode::FORBIDDEN
    };
    let (other_node, key) = world.new_node(world.tenant()).await;
    let token = world.token(other_node, world.tenant()).await;
    let (stranger, strangers_key) = world.new_node(world.other).await;
    let strangers_token = world.token(stranger, world.other).await;
    let mut cases = vec![
        ("the key of another node", key, status),
        ("the token of another node", token, status),
        ("a stranger's node key", strangers_key, status),
        ("a stranger's node token", strangers_token, status),
    ];
    if access == Access::OwnNodeKey {
        let token = world.token(world.node, world.tenant()).await;
        cases.push(("the node's own token", token, StatusCode::FORBIDDEN));
    }
    cases
}

async fn ended(world: &World, access: Access) -> Vec<Case> {
    let unknown = StatusCode::UNAUTHORIZED;
    let now = world.app.now();
    if access == Access::SetUp {
        let old = world.setup_link(SignedDuration::from_hours(25)).await;
        return vec![("an old link", old, unknown)];
    }
    if access == Access::Invitee {
        let (_, old) = world.invitation(SignedDuration::from_hours(7 * 24)).await;
        return vec![("an old invitation", old, unknown)];
    }
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
    let mut cases = vec![
        ("a revoked key", world.store_key(&revoked).await, unknown),
        ("an expired key", world.store_key(&expired).await, unknown),
        ("a session that was ended", signed_out.await, unknown),
        ("an idle session", idle.await, unknown),
    ];
    let token = || world.enrolment_token(world.tenant());
    let expired = EnrolmentToken {
        expires_at: now,
        ..token()
    };
    let revoked = EnrolmentToken {
        revoked_at: Some(now),
        ..token()
    };
    let used_up = EnrolmentToken { uses: 2, ..token() };
    for (name, token) in [
        ("an expired enrolment token", expired),
        ("a revoked enrolment token", revoked),
        ("an enrolment token that is used up", used_up),
    ] {
        cases.push((name, world.store_enrolment_token(&token).await, unknown));
    }
    cases
}

/// Returns credentials of another tenant, for which no resource exists.
async fn strangers(world: &World, route: &Route) -> Vec<Case> {
    let access = member(route.access);
    if !route.path.contains('{') || !matches!(access, Access::Member { .. }) {
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
        (
            "a stranger with the lowest role",
            world.user(world.other.org, Role::Reader).await,
            missing,
        ),
    ];
    let key = world.key(Tenant::org(world.other.org), &[Scope::NodesRead]);
    let key = world.store_key(&key).await;
    cases.push(("a stranger's key with one scope", key, missing));
    if !route.path.starts_with("/orgs/") {
        let other_project = Tenant::project(world.org, world.other_project().await);
        let key = world.store_key(&world.key(other_project, &[])).await;
        cases.push(("a key of another project", key, missing));
        if route.access == Access::Enrolment {
            let token = world.enrolment_token(other_project);
            let token = world.store_enrolment_token(&token).await;
            cases.push(("an enrolment token of another project", token, missing));
        }
    }
    cases
}

#[tokio::test]
async fn no_wrong_actor_passes_any_route() {
    for world in worlds().await {
        for route in ROUTES {
            let mut cases = wrong(&world, route.access).await;
            cases.extend(strangers(&world, route).await);
            // Refused requests change nothing, so one target suffices for all of them.
            let path = target(&world, route).await;
            let body = body(&world, route.path).await;
            for (name, credential, status) in cases {
                world.change_address();
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

/// Returns a body that the route accepts repeatedly.
pub(crate) async fn fresh_body(world: &World, path: &str) -> Value {
    if path == "/invitations/join" {
        let (_, link) = world.other_invitation().await;
        return json!({"secret": link});
    }
    body(world, path).await
}

/// Returns path and body for the credential's own user.
async fn own_target(
    world: &World,
    route: &Route,
    by: &Credential,
    path: String,
    body: Value,
) -> (String, Value) {
    let user = async || {
        let id = world.get("/users/me", by).await.text("id");
        id.parse().unwrap()
    };
    let is_delete = route.method == Method::DELETE;
    match route.path {
        "/sign-in" => {
            let person = world.person(world.org, Role::Reader).await;
            (path, json!({"email": person.email, "password": PASSWORD}))
        }
        "/password-resets/use" => {
            let person = world.person(world.org, Role::Reader).await;
            let make = format!("/orgs/{{org}}/members/{}/reset-password", person.id);
            let link = world
                .post(&make, &world.full_key().await, Value::Null)
                .await;
            let body = json!({"secret": link.text("secret"), "password": "another good one"});
            (path, body)
        }
        "/sign-in/code" | "/sign-in/recovery" => {
            let person = world.person(world.org, Role::Reader).await;
            let session = world.sign_in(&person).await.session;
            let (app, codes, _) = world.enable_totp(&session).await;
            let code = if path.ends_with("code") {
                world.next_code(&app)
            } else {
                codes[0].clone()
            };
            let sign_in = world.pending(&person).await;
            (path, json!({"sign_in": sign_in, "code": code}))
        }
        "/users/me/sessions/{session}" => {
            let listed = world.get("/users/me/sessions", by).await;
            let id = listed.body["items"][0]["id"].as_str().unwrap();
            (format!("/users/me/sessions/{id}"), body)
        }
        "/users/me/identities/{identity}" => {
            let identity = world.link_identity(user().await).await;
            (format!("/users/me/identities/{identity}"), body)
        }
        "/users/me/totp/confirm" => {
            let started = world.post("/users/me/totp", by, Value::Null).await;
            let app = authenticator(&started.text("secret"));
            (path, json!({"code": world.code(&app)}))
        }
        "/users/me/recovery-codes" => {
            world.give_totp(user().await).await;
            (path, body)
        }
        "/users/me/totp" if is_delete => {
            world.give_totp(user().await).await;
            (path, body)
        }
        _ => (path, body),
    }
}

#[tokio::test]
async fn the_right_actor_passes_every_route() {
    for world in worlds().await {
        for route in ROUTES.iter().filter(|route| !ends_the_world(route)) {
            let right = right(&world, route.access).await;
            assert!(!right.is_empty(), "{} {}", route.method, route.path);
            for credential in right {
                world.change_address();
                let world_path = target(&world, route).await;
                let path = fresh_project(&world, route, world_path).await;
                let body = fresh_body(&world, route.path).await;
                let (path, body) = own_target(&world, route, &credential, path, body).await;
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

#[tokio::test]
async fn a_role_in_a_project_opens_that_project_and_nothing_else() {
    for world in worlds().await {
        for route in ROUTES {
            let Access::Member { role, .. } = route.access else {
                continue;
            };
            // The target is a separate project, in which the user has no role.
            let is_project = route.path == "/projects/{project}" && route.method == Method::DELETE;
            if role == Role::Reader || is_project || ends_the_world(route) {
                continue;
            }
            let user = world.project_user(world.project, role).await;
            let path = target(&world, route).await;
            let body = fresh_body(&world, route.path).await;
            let answer = world.send(&route.method, &path, &user, &body, &[]).await;
            let place = format!("{} {}: {}", route.method, route.path, answer.body);
            if route.path.starts_with("/projects/") {
                assert!(answer.status.is_success(), "{place}");
            } else if !route.path.starts_with("/api-keys") {
                assert_eq!(answer.status, StatusCode::FORBIDDEN, "{place}");
            }
        }
    }
}

/// A separate test deletes the organization.
fn ends_the_world(route: &Route) -> bool {
    route.method == Method::DELETE && route.path == "/orgs/{org}"
}

/// Creates a project to delete.
async fn fresh_project(world: &World, route: &Route, path: String) -> String {
    if route.method != Method::DELETE || path != "/projects/{project}" {
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
        let (host, ours) = (("host", "control:8443"), "https://control:8443");
        let cross = ("sec-fetch-site", "cross-site");
        let (own, forbidden) = (StatusCode::CREATED, StatusCode::FORBIDDEN);
        for (status, fields) in [
            (own, &[host][..]),
            (own, &[("sec-fetch-site", "same-origin")]),
            (own, &[("sec-fetch-site", "none")]),
            (own, &[host, ("origin", ours)]),
            (forbidden, &[cross]),
            (forbidden, &[("sec-fetch-site", "same-site")]),
            (forbidden, &[host, ("origin", ours), cross]),
            (forbidden, &[host, ("origin", "https://control:9443")]),
            (
                forbidden,
                &[host, ("origin", "https://control:8443.example")],
            ),
            (forbidden, &[host, ("origin", "null")]),
            (forbidden, &[("origin", ours)]),
        ] {
            let post = Method::POST;
            let sent = world.send(&post, path, &admin, &sample(path), fields).await;
            assert_eq!(sent.status, status, "{fields:?}: {}", sent.body);
        }
    }
}
