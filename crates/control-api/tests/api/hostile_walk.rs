//! Every route with arbitrary requests: foreign and malformed IDs, deleted projects, and invalid
//! bodies and queries of every kind. `access.rs` tests the same routes with wrong credentials.
//!
//! Each response must be a documented refusal, and never a 5xx. It must be the same for unknown IDs
//! and for those of another tenant.

use crate::access::{body, right, target};
use crate::world::{Answer, Credential, World, sample, worlds};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header, request};
use control_api::{ROUTES, Route};
use control_domain::{Access, Role, Tenant};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

/// Malformed IDs.
const MALFORMED: [&str; 9] = [
    "x",
    "%00",
    "%ff",
    "%2e%2e",
    "..%2f..%2fetc%2fpasswd",
    "{00000000-0000-7000-8000-000000000000}",
    "00000000-0000-7000-8000-0000000000000",
    "00000000000070008000000000000000",
    "%27%20OR%201=1--",
];
/// Queries that no route accepts, or that routes ignore.
const QUERIES: [&str; 9] = [
    "limit=-1",
    "limit=0",
    "limit=99999999999999999999",
    "limit=x",
    "cursor=x",
    "cursor=%00",
    "cursor=%ff%fe",
    "wait=-1",
    "unknown=1",
];

/// Returns the parameters in a path, such as `{bundle}`.
fn places(path: &str) -> Vec<&str> {
    let parts = path.split('/');
    parts.filter(|part| part.starts_with('{')).collect()
}

/// Replaces all parameters in a path by unknown IDs.
fn filled(path: &str) -> String {
    let places = places(path).into_iter();
    places.fold(path.to_owned(), |filled, place| {
        filled.replace(place, &Uuid::now_v7().to_string())
    })
}

/// Adds a credential to a request.
fn presenting(request: request::Builder, by: &Credential) -> request::Builder {
    match by {
        Credential::None => request,
        Credential::Bearer(key) => request.header(header::AUTHORIZATION, format!("Bearer {key}")),
        Credential::NodeKey(key) => request.header("x-service-node-key", key),
        Credential::Session(key) => request.header(header::COOKIE, format!("__Host-session={key}")),
    }
}

fn is_refused(status: StatusCode) -> bool {
    status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT
}

async fn send(world: &World, route: &Route, path: &str, by: &Credential, body: &Value) -> Answer {
    world.change_address();
    world.send(&route.method, path, by, body, &[]).await
}

/// Returns status, error code and message of a refusal.
fn refusal(answer: &Answer) -> (StatusCode, Value, Value) {
    let error = &answer.body["error"];
    (
        answer.status,
        error["code"].clone(),
        error["message"].clone(),
    )
}

/// Creates a credential with all permissions for the route.
async fn caller(world: &World, route: &Route) -> Credential {
    let mut right = right(world, route.access).await;
    right.pop().unwrap_or(Credential::None)
}

/// Returns true if the operation has a request body.
fn takes_body(document: &Value, route: &Route) -> bool {
    let method = route.method.as_str().to_lowercase();
    let path = format!("/api/v1{}", route.path);
    document["paths"][&path][method]["requestBody"].is_object()
}

#[tokio::test]
async fn no_malformed_identifier_reaches_anything() {
    for world in worlds().await {
        for route in ROUTES {
            let by = caller(&world, route).await;
            let paths = places(route.path)
                .into_iter()
                .flat_map(|place| MALFORMED.map(|text| route.path.replace(place, text)));
            for path in paths {
                let answer = send(&world, route, &path, &by, &sample(route.path)).await;
                let case = format!("{} {path}: {} {}", route.method, answer.status, answer.body);
                assert!(is_refused(answer.status), "{case}");
                assert!(answer.body["error"]["code"].is_string(), "{case}");
            }
        }
    }
}

#[tokio::test]
async fn identifiers_of_another_tenant_are_answered_like_unknown_ones() {
    for world in worlds().await {
        let (own_org, own) = (world.other.org.to_string(), world.other.project.unwrap());
        let victims: BTreeSet<String> = [world.org.to_string(), world.project.to_string()].into();
        for route in ROUTES {
            let is_of_tenant = matches!(route.access, Access::Member { .. });
            let Some(inner) = places(route.path).pop().filter(|_| is_of_tenant) else {
                continue;
            };
            // Outer parameters are the caller's own organization and project; the last one is
            // another tenant's resource.
            let full = target(&world, route).await;
            let outer = |path: &str| {
                path.replace("{org}", &own_org)
                    .replace("{project}", &own.to_string())
            };
            let foreign = match inner {
                "{org}" | "{project}" => full.clone(),
                _ => outer(&full),
            };
            let unknown = Uuid::now_v7().to_string();
            let unknown = outer(&route.path.replace(inner, &unknown));
            let by = if let Access::Member { fresh: true, .. } = route.access {
                world.user(world.other.org, Role::Admin).await
            } else {
                let key = world.key(Tenant::org(world.other.org), &[]);
                world.store_key(&key).await
            };
            let query = full.split_once('?').map_or("", |(_, query)| query);
            let unknown = if query.is_empty() {
                unknown
            } else {
                format!("{unknown}?{query}")
            };
            let body = body(&world, route.path).await;
            let reported = send(&world, route, &foreign, &by, &body).await;
            let expected = send(&world, route, &unknown, &by, &body).await;
            let case = format!("{} {}: {}", route.method, route.path, reported.body);
            assert!(
                !reported.status.is_success() && !reported.status.is_server_error(),
                "{case}"
            );
            assert_eq!(refusal(&reported), refusal(&expected), "{case}");
            for victim in &victims {
                assert!(!reported.text.contains(victim), "{case}");
            }
        }
    }
}

#[tokio::test]
async fn bodies_with_identifiers_of_another_tenant_are_refused() {
    for world in worlds().await {
        let own = world.other.project.unwrap().to_string();
        let key = world
            .store_key(&world.key(Tenant::org(world.other.org), &[]))
            .await;
        let bundles = format!("/projects/{own}/bundles");
        let made = world
            .post(&bundles, &key, sample("/projects/{project}/bundles"))
            .await;
        let bundle = made.text("id");
        for (path, template) in [
            (
                format!("/projects/{own}/services"),
                "/projects/{project}/services",
            ),
            (
                format!("/projects/{own}/rollouts"),
                "/projects/{project}/rollouts",
            ),
            (
                format!("{bundles}/{bundle}/assign"),
                "/projects/{project}/bundles/{bundle}/assign",
            ),
        ] {
            let naming = body(&world, template).await;
            let answer = world.post(&path, &key, naming).await;
            assert!(
                is_refused(answer.status),
                "{path}: {} {}",
                answer.status,
                answer.body
            );
            assert!(
                !answer.text.contains(&world.org.to_string()),
                "{path}: {}",
                answer.body
            );
        }
    }
}

#[tokio::test]
async fn nothing_of_a_deleted_project_answers() {
    for world in worlds().await {
        let gone = world.other_project().await;
        let tenant = Tenant::project(world.org, gone);
        let of_project = world.store_key(&world.key(tenant, &[])).await;
        let token = world
            .store_enrolment_token(&world.enrolment_token(tenant))
            .await;
        let (node, node_key) = world.new_node(tenant).await;
        let node_token = world.token(node, tenant).await;
        let own = |path: &str| {
            let path = path.replace("{project}", &gone.to_string());
            path.replace("{node}", &node.to_string())
        };
        let session = world.user(world.org, Role::Admin).await;
        for path in ["/projects/{project}/nodes/{node}", "/projects/{project}"] {
            let deleted = world
                .send(&Method::DELETE, &own(path), &session, &Value::Null, &[])
                .await;
            assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.body);
        }
        for route in ROUTES {
            let is_of_project = route.path.starts_with("/projects/{project}");
            let is_of_node = route.path.starts_with("/nodes/{node}");
            if !is_of_project && !is_of_node {
                continue;
            }
            let mut path = filled(&own(route.path));
            if path.ends_with("/diff") {
                path = format!("{path}?before={}", Uuid::now_v7());
            }
            let body = body(&world, route.path).await;
            // Users and addresses may send only some dozens of requests at once, so each case has
            // its own user.
            let session = world.user(world.org, Role::Admin).await;
            let admin = world.full_key().await;
            world.change_address();
            for (name, by, expected) in [
                ("an administrator", &session, &[403, 404][..]),
                ("a key of the organization", &admin, &[403, 404]),
                ("a key of the project", &of_project, &[401]),
                ("its enrolment token", &token, &[401]),
                ("its node's key", &node_key, &[401]),
                ("its node's token", &node_token, &[401]),
            ] {
                let answer = send(&world, route, &path, by, &body).await;
                let case = format!("{} {path} by {name}: {}", route.method, answer.body);
                assert!(expected.contains(&answer.status.as_u16()), "{case}");
            }
        }
    }
}

#[tokio::test]
async fn bodies_of_wrong_kinds_are_refused_by_every_route_that_takes_one() {
    let document = control_api::description();
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let wrong: [(&str, &str, &[u16]); 8] = [
        ("text/plain", "{}", &[415]),
        ("application/x-www-form-urlencoded", "name=a", &[415]),
        ("multipart/form-data; boundary=x", "--x--", &[415]),
        ("application/json", "{", &[400]),
        ("application/json", "\u{feff}{}", &[400]),
        ("application/json", "[]", &[400, 422]),
        ("application/json", "\"text\"", &[400, 422]),
        ("application/json", &deep, &[400, 422]),
    ];
    for world in worlds().await {
        for route in ROUTES.iter().filter(|route| takes_body(&document, route)) {
            let by = caller(&world, route).await;
            let path = target(&world, route).await;
            let path = path
                .replace("{org}", &world.org.to_string())
                .replace("{project}", &world.project.to_string())
                .replace("{node}", &world.node.to_string());
            let post = async |kind: &str, body: Body| {
                world.change_address();
                let request = Request::builder()
                    .method(&route.method)
                    .uri(format!("/api/v1{path}"))
                    .header(header::CONTENT_TYPE, kind);
                let request = presenting(request, &by);
                world.send_request(request.body(body).unwrap()).await
            };
            for (kind, text, expected) in wrong {
                let answer = post(kind, Body::from(text.to_owned())).await;
                let shown: String = text.chars().take(20).collect();
                let case = format!(
                    "{} {}, {kind} {shown}: {}",
                    route.method, route.path, answer.body
                );
                assert!(expected.contains(&answer.status.as_u16()), "{case}");
            }
            let large = post(
                "application/json",
                Body::from(vec![b' '; route.max_body_bytes + 1]),
            )
            .await;
            let case = format!("{} {}: {}", route.method, route.path, large.body);
            assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE, "{case}");
        }
    }
}

#[tokio::test]
async fn no_query_and_no_method_is_an_error_of_the_server() {
    let methods = [
        Method::GET,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::POST,
    ];
    for world in worlds().await {
        for route in ROUTES.iter().filter(|route| route.method == Method::GET) {
            let by = caller(&world, route).await;
            let path = target(&world, route).await;
            let path = format!("{path}{}", if path.contains('?') { '&' } else { '?' });
            for query in QUERIES {
                let asked = format!("{path}{query}");
                let answer = send(&world, route, &asked, &by, &Value::Null).await;
                let case = format!("{}?{query}: {} {}", route.path, answer.status, answer.body);
                assert!(!answer.status.is_server_error(), "{case}");
            }
        }
        let known: BTreeSet<(&str, &str)> = ROUTES
            .iter()
            .map(|route| (route.method.as_str(), route.path))
            .collect();
        let others = ROUTES.iter().flat_map(|route| {
            let methods = methods.iter().map(move |method| (method, route.path));
            methods.filter(|(method, path)| !known.contains(&(method.as_str(), *path)))
        });
        for (method, route) in others {
            world.change_address();
            let path = filled(route);
            let answer = world
                .send(method, &path, &Credential::None, &json!({}), &[])
                .await;
            // Another route may have a parameter in place of a word.
            let is_refused = [401, 404, 405].contains(&answer.status.as_u16());
            assert!(is_refused, "{method} {route}: {}", answer.body);
        }
    }
}
