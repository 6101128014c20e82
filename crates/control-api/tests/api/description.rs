//! The `OpenAPI` description agrees with the route table.

use crate::world::{Credential, worlds};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use control_api::ROUTES;
use control_domain::{Access, Role, Scope};
use control_http::SessionCookie;
use control_wire::ErrorCode;
use serde_json::Value;
use std::collections::BTreeSet;
use tower::ServiceExt;

fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let items = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| {
            (format!("{} {path}", method.to_uppercase()), operation)
        })
    });
    items.collect()
}

#[tokio::test]
async fn the_description_has_the_rows_of_the_table() {
    for world in worlds().await {
        let answer = world.get("/openapi.json", &Credential::None).await;
        let described: BTreeSet<String> = operations(&answer.body)
            .into_iter()
            .map(|(place, _)| place)
            .collect();
        let rows = ROUTES
            .iter()
            .map(|route| format!("{} /api/v1{}", route.method, route.path));
        assert_eq!(described, rows.collect());
        assert_eq!(answer.body["openapi"], "3.1.0");
    }
}

#[tokio::test]
async fn every_operation_has_a_name_and_its_failures() {
    let world = worlds().await.remove(0);
    let answer = world.get("/openapi.json", &Credential::None).await;
    let mut names = BTreeSet::new();
    for (place, operation) in operations(&answer.body) {
        let name = operation["operationId"].as_str().unwrap();
        assert!(names.insert(name), "{place}: {name} twice");
        let is_public = operation["security"] == serde_json::json!([]);
        let credential = ["401", "403"].into_iter().filter(|_| !is_public);
        for status in ["400", "429", "500"].into_iter().chain(credential) {
            let schema = &operation["responses"][status]["content"]["application/json"]["schema"];
            assert_eq!(
                schema["$ref"], "#/components/schemas/ErrorResponse",
                "{place}"
            );
        }
        if is_public && place.starts_with("POST") {
            let refused = &operation["responses"]["401"];
            assert!(refused.is_object(), "{place}: its body has a credential");
            let refused = &operation["responses"]["403"];
            assert!(refused.is_object(), "{place}: other sites are refused");
        }
        for (status, response) in operation["responses"].as_object().unwrap() {
            let description = response["description"].as_str().unwrap_or_default();
            assert!(!description.is_empty(), "{place}: {status}");
        }
        let named = place.matches('{').count();
        let parameters = operation["parameters"].as_array().unwrap();
        let in_path = parameters.iter().filter(|each| each["in"] == "path");
        assert_eq!(in_path.count(), named, "{place}");
    }
}

#[test]
fn a_body_without_required_fields_is_optional() {
    let document = control_api::description();
    let mut count = 0;
    for (place, operation) in operations(&document) {
        let body = &operation["requestBody"];
        if !body.is_object() {
            continue;
        }
        let name = operation["operationId"].as_str().unwrap();
        if ["rotate_node_key", "approve_node", "resolve_drift"].contains(&name) {
            assert_eq!(body["required"], false, "{place}");
            count += 1;
        }
        let pointer = body["content"]["application/json"]["schema"]["$ref"].as_str();
        let schema = pointer.and_then(|it| document.pointer(it.trim_start_matches('#')));
        let demands = |schema: &Value| schema["required"].is_array() || schema["anyOf"].is_array();
        if schema.is_some_and(demands) {
            assert_eq!(body["required"], true, "{place}");
        }
    }
    assert_eq!(count, 3);
}

#[tokio::test]
async fn archives_are_bytes_and_rate_limits_have_their_fields() {
    let document = control_api::description();
    let mut archives = 0;
    for (place, operation) in operations(&document) {
        let limited = &operation["responses"]["429"]["headers"];
        for name in ["Retry-After", "X-RateLimit-Reset"] {
            let pointer = limited[name]["$ref"].as_str().unwrap();
            let field = document.pointer(pointer.trim_start_matches('#'));
            assert_eq!(field.unwrap()["schema"]["type"], "integer", "{place}");
        }
        if let Some(archive) = operation.pointer("/responses/200/content/application~1zstd") {
            archives += 1;
            assert_eq!(archive["schema"]["format"], "binary", "{place}");
        }
    }
    assert_eq!(archives, 2);
}

#[tokio::test]
async fn a_described_name_is_the_name_on_the_wire() {
    let document = control_api::description();
    let values = |schema: &str| {
        let found = document.pointer(&format!("/components/schemas/{schema}/enum"));
        let found = found.and_then(Value::as_array).unwrap().iter();
        found
            .map(|value| value.as_str().unwrap().to_owned())
            .collect::<Vec<String>>()
    };
    let names = |all: &[Scope]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(values("ScopeName"), names(Scope::ALL));
    let roles: Vec<String> = Role::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(values("RoleName"), roles);
    let codes: Vec<String> = ErrorCode::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(values("ErrorCode"), codes);
}

#[tokio::test]
async fn the_page_has_every_operation_and_no_script() {
    let world = worlds().await.remove(0);
    let get = async |path: &str| {
        let request = Request::get(path).body(Body::empty());
        world.send_request(request.unwrap()).await
    };
    let page = get("/api/docs").await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; style-src 'self';"),
        "{policy}"
    );
    for (_, operation) in operations(&control_api::description()) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(page.text.contains(&format!("<div id=\"{id}\">")), "{id}");
    }
    for forbidden in ["<script", "style=", "onclick", "http://", "https://"] {
        assert!(!page.text.contains(forbidden), "{forbidden}");
    }
    // Every link within the page has a target.
    for target in page.text.split("href=\"#").skip(1) {
        let id = target.split('"').next().unwrap();
        assert!(page.text.contains(&format!("id=\"{id}\"")), "{id}");
    }
    let style = get("/api/docs/style.css").await;
    assert_eq!(style.header("content-type"), "text/css; charset=utf-8");
}

#[tokio::test]
async fn every_reference_has_its_schema() {
    let world = worlds().await.remove(0);
    let document = world.get("/openapi.json", &Credential::None).await.body;
    let text = document.to_string();
    let mut count = 0;
    for rest in text.split("\"$ref\":\"#").skip(1) {
        let pointer = rest.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
        count += 1;
    }
    assert!(count > 20);
}

#[tokio::test]
async fn the_page_is_read_by_keyboard_and_by_ear() {
    let world = worlds().await.remove(0);
    let request = Request::get("/api/docs").body(Body::empty());
    let page = world.send_request(request.unwrap()).await.text;
    let count = |text: &str| page.matches(text).count();
    assert!(page.contains("<html lang=\"en\">"));
    assert!(page.contains("href=\"#main\"") && page.contains("<main id=\"main\" tabindex=\"-1\">"));
    assert_eq!(count("<h1"), 1);
    assert!(count("<th scope=\"col\">") > 100);
    assert_eq!(count("<th>"), 0, "every header says what it heads");
    assert_eq!(count("<table>"), count("<caption>"));
    assert_eq!(
        count("<pre"),
        count("<pre tabindex=\"0\""),
        "it scrolls, so it takes the focus"
    );
    // Browsers open a `details` element if the target of the link is inside it.
    assert_eq!(count("<details id="), 0);
}

#[tokio::test]
async fn the_description_is_of_this_program_alone() {
    let world = worlds().await.remove(0);
    let document = world.get("/openapi.json", &Credential::None).await.body;
    assert_eq!(document["info"]["title"], "Control plane");
    assert_eq!(document["info"]["contact"], Value::Null);
    assert_eq!(document, control_api::description());
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn the_served_description_names_the_cookie_of_its_server() {
    let world = worlds().await.remove(0);
    for cookie in [SessionCookie::Tls, SessionCookie::Loopback] {
        let router = control_api::router(&world.app, Router::new(), cookie);
        let request = Request::get("/api/v1/openapi.json").body(Body::empty());
        let answer = router.oneshot(request.unwrap()).await.unwrap();
        let bytes = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        let scheme = &document["components"]["securitySchemes"]["session"];
        assert_eq!(scheme["name"], cookie.name());
    }
}

#[tokio::test]
async fn every_id_description_names_its_noun() {
    let document = control_api::description();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let ids = schemas
        .iter()
        .filter(|(name, schema)| name.ends_with("Id") && schema["format"] == "uuid");
    let mut count = 0;
    for (name, schema) in ids {
        let text = schema["description"].as_str().unwrap();
        assert!(text.starts_with("Names a"), "{name}: {text}");
        count += 1;
    }
    assert!(12 < count, "{count}");
}

#[tokio::test]
async fn every_list_has_pages() {
    let document = control_api::description();
    let mut count = 0;
    for (place, operation) in operations(&document) {
        let schema = operation.pointer("/responses/200/content/application~1json/schema/$ref");
        let Some(pointer) = schema.and_then(Value::as_str) else {
            continue;
        };
        let schema = document.pointer(pointer.trim_start_matches('#')).unwrap();
        let has = |name: &str| schema["properties"][name].is_object();
        if !has("items") {
            continue;
        }
        count += 1;
        assert!(has("next_cursor"), "{place}");
        let parameters = operation["parameters"].as_array().unwrap();
        for name in ["limit", "cursor"] {
            let is_described = parameters.iter().any(|it| it["name"] == name);
            assert!(is_described, "{place}: {name}");
        }
    }
    assert!(20 < count, "{count}");
}

#[tokio::test]
async fn a_key_is_described_where_an_answer_is_kept() {
    let document = control_api::description();
    for route in ROUTES.iter().filter(|route| !route.method.is_safe()) {
        let path = format!("/api/v1{}", route.path);
        let operation = &document["paths"][path][route.method.as_str().to_lowercase()];
        let parameters = operation["parameters"].as_array().unwrap();
        let is_described = parameters.iter().any(|it| it["name"] == "Idempotency-Key");
        let has_no_actor = matches!(
            route.access,
            Access::Public | Access::SetUp | Access::Invitee
        );
        let is_question = ["/preview", "/explain", "/replay"]
            .iter()
            .any(|end| route.path.ends_with(end));
        assert_eq!(
            is_described,
            !has_no_actor && !is_question,
            "{} {}",
            route.method,
            route.path
        );
    }
}
