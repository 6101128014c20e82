//! Values that the `OpenAPI` description forbids are refused.

use crate::world::{Credential, World, sample, worlds};
use axum::http::{Method, StatusCode};
use control_api::{ROUTES, Route};
use control_domain::{Access, Role};
use serde_json::{Map, Value, json};

/// Returns values that a property's schema forbids.
fn forbidden(schema: &Value) -> Vec<Value> {
    let types = &schema["type"];
    let is = |name: &str| {
        types == name
            || types
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one == name))
    };
    let number = |name: &str| schema[name].as_i64();
    let length = |name: &str| number(name).and_then(|count| usize::try_from(count).ok());
    let mut values = Vec::new();
    if is("string") {
        values.extend(length("maxLength").map(|max| json!("a".repeat(max + 1))));
        values.extend(schema.get("pattern").map(|_| json!("\u{0}")));
        let least = length("minLength").filter(|least| 0 < *least);
        values.extend(least.map(|_| json!("")));
    }
    if is("integer") {
        let above = number("maximum").and_then(|most| most.checked_add(1));
        let below = number("minimum").and_then(|least| least.checked_sub(1));
        values.extend(above.into_iter().chain(below).map(|value| json!(value)));
    }
    if is("array") {
        let item = schema["items"].get("$ref").map_or(json!("a"), |_| {
            json!("01900000-0000-7000-8000-00000000abcd")
        });
        values.extend(length("maxItems").map(|max| json!(vec![item; max + 1])));
        for item in forbidden(&schema["items"]) {
            values.push(json!([item]));
        }
    }
    if is("object") {
        let names = &schema["propertyNames"];
        for name in forbidden(names) {
            values.push(json!({name.as_str().unwrap(): "a"}));
        }
        for value in forbidden(&schema["additionalProperties"]) {
            values.push(json!({"a": value}));
        }
        let many = length("maxProperties").map(|max| {
            let named = (0..=max).map(|index| (format!("n{index}"), json!("reader")));
            Value::Object(named.collect::<Map<_, _>>())
        });
        values.extend(many);
    }
    values
}

/// Creates a credential that may use the route. It is new each time, and so is its rate limit.
async fn actor(world: &World, route: &Route) -> Option<Credential> {
    Some(match route.access {
        Access::Member { .. } => world.user(world.org, Role::Admin).await,
        Access::OwnNode => world.node_key.clone(),
        Access::Enrolment => world.full_key().await,
        Access::InstanceAdmin | Access::FreshInstanceAdmin => world.instance_admin().await,
        Access::Public
        | Access::SetUp
        | Access::Invitee
        | Access::SignedIn
        | Access::Session
        | Access::FreshSession
        | Access::OwnNodeKey
        | Access::System => return None,
    })
}

/// Bounds in fields that no sample has, or within a field.
const BOUNDS: &[(&str, &str)] = &[
    (
        "NewRolloutRequest/properties/labels",
        "/propertyNames/pattern",
    ),
    ("NewRolloutRequest/properties/nodes", "/minItems"),
    ("NodeEvent/properties/at", "/pattern"),
    ("PolicyRequest/properties/freeze", "/items/pattern"),
    ("PrometheusCondition/properties/url", "/pattern"),
    ("QuestionBody/properties/client_ip", "/pattern"),
    ("ServicesRequest/properties/http", "/pattern"),
    ("ServicesRequest/properties/https", "/pattern"),
];

#[test]
fn bounds_of_fields_beyond_the_samples_are_described() {
    let document = control_api::description();
    for (field, bound) in BOUNDS {
        let pointer = format!("/components/schemas/{field}{bound}");
        assert!(document.pointer(&pointer).is_some(), "{pointer}");
    }
}

#[tokio::test]
async fn hosts_are_ascii_and_rollouts_name_their_nodes() {
    let world = worlds().await.remove(0);
    let admin = world.user(world.org, Role::Admin).await;
    let upstreams = "/projects/{project}/upstreams";
    let upstream = world.post(upstreams, &admin, sample(upstreams)).await;
    let bundles = "/projects/{project}/bundles";
    let bundle = world.post(bundles, &admin, sample(bundles)).await;
    for (path, body) in [
        (
            upstreams,
            json!({"name": "a", "targets": [{"address": "ä.example.com:80"}]}),
        ),
        (
            "/projects/{project}/services",
            json!({"name": "a", "host": "ä.example.com", "upstream": upstream.text("id")}),
        ),
        (
            "/projects/{project}/rollouts",
            json!({"bundle": bundle.text("id"), "nodes": []}),
        ),
        (
            "/projects/{project}/rollouts",
            json!({"bundle": bundle.text("id"), "labels": {"Tier": "edge"}}),
        ),
    ] {
        let answer = world.post(path, &admin, body.clone()).await;
        let expected = StatusCode::UNPROCESSABLE_ENTITY;
        assert_eq!(answer.status, expected, "{body}: {}", answer.text);
    }
}

fn is_reached(path: &str) -> bool {
    let mut names = path.split('/').filter(|part| part.starts_with('{'));
    names.all(|name| ["{org}", "{project}", "{node}"].contains(&name))
}

#[tokio::test]
async fn a_value_that_the_description_forbids_is_refused() {
    let document = control_api::description();
    let world = worlds().await.remove(0);
    let mut tried = 0;
    for route in ROUTES.iter().filter(|route| is_reached(route.path)) {
        let method: &Method = &route.method;
        let operation =
            &document["paths"][format!("/api/v1{}", route.path)][method.as_str().to_lowercase()];
        let body = operation.pointer("/requestBody/content/application~1json/schema/$ref");
        let schema = body.and_then(Value::as_str).and_then(|pointer| {
            let pointer = pointer.strip_prefix('#')?;
            document.pointer(pointer)
        });
        let (Some(schema), Value::Object(good)) = (schema, sample(route.path)) else {
            continue;
        };
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            let Some(actor) = actor(&world, route).await else {
                continue;
            };
            for wrong in forbidden(property) {
                world.change_address();
                let mut body = good.clone();
                body.insert(field.clone(), wrong);
                let body = Value::Object(body);
                let answer = world.send(method, route.path, &actor, &body, &[]).await;
                let text = body.to_string();
                let shown: String = text.chars().take(300).collect();
                let place = format!("{method} {} {field}: {shown}: {}", route.path, answer.text);
                assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{place}");
                tried += 1;
            }
        }
    }
    assert!(80 < tried, "{tried}");
}

#[tokio::test]
async fn a_value_at_a_bound_is_taken() {
    let world = worlds().await.remove(0);
    let admin = world.user(world.org, Role::Admin).await;
    let name = "ä".repeat(100);
    for (path, field, value) in [
        ("/projects/{project}/services", "priority", json!(1_000_000)),
        (
            "/projects/{project}/services",
            "priority",
            json!(-1_000_000),
        ),
        (
            "/projects/{project}/services",
            "path_prefix",
            json!("/a%20b/ü"),
        ),
        (
            "/projects/{project}/services",
            "host",
            json!("*.example.com"),
        ),
        (
            "/projects/{project}/enrolment-tokens",
            "labels",
            json!({"a.b/c_d-1": "x,y=z~!"}),
        ),
        ("/projects/{project}/enrolment-tokens", "name", json!(name)),
    ] {
        let mut body = sample(path);
        body[field] = value;
        if path.ends_with("services") {
            let upstreams = "/projects/{project}/upstreams";
            let upstream = world.post(upstreams, &admin, sample(upstreams)).await;
            body["upstream"] = json!(upstream.text("id"));
        }
        let answer = world.post(path, &admin, body.clone()).await;
        assert_eq!(
            answer.status,
            StatusCode::CREATED,
            "{body}: {}",
            answer.text
        );
    }
}
