//! Compares the header fields of all responses in these tests with the `OpenAPI` description: each
//! sent field is described, and those described as required are always sent.

use crate::world::{Credential, worlds};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use control_api::description;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Fields that `OpenAPI` does not describe as header fields.
const UNDESCRIBED_FIELDS: [&str; 3] = ["content-type", "content-length", "allow"];

/// Fields of responses by operation and status, and whether each is required.
type Described = BTreeMap<String, BTreeMap<String, BTreeMap<String, bool>>>;

static DESCRIBED: LazyLock<Described> = LazyLock::new(|| read(&description()));

fn read(document: &Value) -> Described {
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| {
            let place = format!("{} {path}", method.to_uppercase());
            (place, responses(document, operation))
        })
    });
    operations.collect()
}

/// Returns the fields of an operation's responses, by status.
fn responses(document: &Value, operation: &Value) -> BTreeMap<String, BTreeMap<String, bool>> {
    let responses = operation["responses"].as_object().unwrap().iter();
    let responses = responses.map(|(status, response)| {
        let fields = response["headers"].as_object().unwrap().iter();
        let fields =
            fields.map(|(name, field)| (name.to_lowercase(), is_required(document, field)));
        (status.clone(), fields.collect())
    });
    responses.collect()
}

fn is_required(document: &Value, field: &Value) -> bool {
    let pointer = field["$ref"].as_str();
    let pointer = pointer.map(|pointer| pointer.trim_start_matches('#'));
    let field = pointer.map_or(Some(field), |pointer| document.pointer(pointer));
    field.unwrap()["required"].as_bool().unwrap()
}

/// Returns the operation of a request: the matching one with the fewest parameters.
fn operation(method: &Method, path: &str) -> Option<&'static String> {
    let parts: Vec<&str> = path.split('/').collect();
    let is_parameter = |part: &str| part.starts_with('{');
    let fits = |place: &&String| {
        let (own_method, own) = place.split_once(' ').unwrap();
        let own: Vec<&str> = own.split('/').collect();
        let same = |(own, part): (&&str, &&str)| own == part || is_parameter(own);
        own_method == method.as_str()
            && own.len() == parts.len()
            && own.iter().zip(&parts).all(same)
    };
    let parameters = |place: &&String| place.split('/').filter(|part| is_parameter(part)).count();
    DESCRIBED.keys().filter(fits).min_by_key(parameters)
}

/// Compares the fields of a response with the description. Not described: responses without an
/// operation, and statuses that the framework sends by itself.
pub(crate) fn check(method: &Method, path: &str, status: StatusCode, headers: &HeaderMap) {
    let Some(place) = operation(method, path) else {
        return;
    };
    let Some(described) = DESCRIBED[place].get(status.as_str()) else {
        return;
    };
    for name in headers.keys().map(HeaderName::as_str) {
        let is_known = UNDESCRIBED_FIELDS.contains(&name) || described.contains_key(name);
        assert!(
            is_known,
            "{place}: {status} has the field {name}, which is not described"
        );
    }
    for (name, _) in described.iter().filter(|(_, is_required)| **is_required) {
        let is_sent = headers.contains_key(name);
        assert!(
            is_sent,
            "{place}: {status} is described with the field {name}: {headers:?}"
        );
    }
}

#[test]
fn additional_and_missing_fields_are_found() {
    let response = |fields: &[&str]| {
        let names = [
            "x-correlation-id",
            "cache-control",
            "x-content-type-options",
        ];
        let rate = [
            "x-ratelimit-limit",
            "x-ratelimit-remaining",
            "x-ratelimit-reset",
        ];
        let mut headers = HeaderMap::new();
        for name in names.iter().chain(&rate).chain(fields) {
            let name: HeaderName = name.parse().unwrap();
            headers.insert(name, "1".parse().unwrap());
        }
        let path = "/api/v1/orgs/5";
        let found =
            std::panic::catch_unwind(|| check(&Method::GET, path, StatusCode::OK, &headers));
        found.is_ok()
    };
    assert!(response(&["etag"]));
    assert!(response(&["etag", "content-type"]));
    assert!(!response(&[]));
    assert!(!response(&["etag", "location"]));
}

#[tokio::test]
async fn failures_have_the_fields_of_their_descriptions() {
    for world in worlds().await {
        let admin = &world.full_key().await;
        let name = json!({"name": "edge-2"});
        // Each response is compared when it is received.
        for (status, method, path, by, body) in [
            (200, Method::GET, "/orgs/{org}", admin, Value::Null),
            (
                201,
                Method::POST,
                "/orgs/{org}/projects",
                admin,
                name.clone(),
            ),
            (
                401,
                Method::GET,
                "/orgs/{org}",
                &Credential::None,
                Value::Null,
            ),
            (404, Method::GET, "/projects/{org}", admin, Value::Null),
            (409, Method::POST, "/orgs/{org}/projects", admin, name),
            (
                422,
                Method::POST,
                "/orgs/{org}/projects",
                admin,
                json!({"name": ""}),
            ),
        ] {
            let answer = world.send(&method, path, by, &body, &[]).await;
            assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        }
        let first = world.get("/orgs/{org}", admin).await;
        let tag = [("if-none-match", first.header("etag"))];
        let path = "/orgs/{org}";
        let same = world
            .send(&Method::GET, path, admin, &Value::Null, &tag)
            .await;
        assert_eq!(same.status, StatusCode::NOT_MODIFIED);
        assert_eq!(same.header("etag"), first.header("etag"));
        world.change_address();
        let mut status = StatusCode::UNAUTHORIZED;
        while status == StatusCode::UNAUTHORIZED {
            status = world.get("/orgs", &Credential::None).await.status;
        }
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    }
}
