//! The `OpenAPI` document: the handlers' annotations, completed with parts that all operations
//! share.

use crate::reference::{constraints, headers};
use crate::route::{PREFIX, Route};
use axum::http::Method;
use control_domain::{Access, ScopeRule};
use control_http::SessionCookie;
use control_wire::ErrorResponse;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use utoipa::OpenApi;

/// Title of the document, and schemas that no handler refers to.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Control plane",
        description = "Operates a fleet of proxies. Every answer carries `X-Correlation-Id` and \
                       the `X-RateLimit-` fields. Integers are written without a fraction and an exponent."
    ),
    components(schemas(ErrorResponse))
)]
struct Base;

/// Failures that every route may return.
const COMMON_FAILURES: &[(&str, &str)] = &[
    ("400", "The request cannot be read, or a parameter is wrong"),
    (
        "429",
        "The rate limit is exceeded; `Retry-After` says for how long",
    ),
    ("500", "The control plane failed"),
    ("503", "The database is unreachable, or the program stops"),
];
const CREDENTIAL_FAILURES: &[(&str, &str)] = &[
    ("401", "The credential is missing or not valid"),
    ("403", "The credential does not allow this"),
];
const PUBLIC_WRITE_FAILURES: &[(&str, &str)] = &[
    (
        "401",
        "The password, the code or the link in the body is not valid",
    ),
    ("403", "The request was sent by another site"),
];
const WRITE_FAILURES: &[(&str, &str)] = &[
    (
        "409",
        "The state of the resource forbids this, or it changed meanwhile",
    ),
    (
        "412",
        "The resource has another version than `If-Match` names, or none",
    ),
    ("408", "The body came too slowly"),
    ("413", "The body is too large"),
    ("415", "The body is not JSON, or it is compressed"),
    (
        "422",
        "A field of the body is wrong: `error.details` names it",
    ),
];

/// The schema of a response that is an archive.
const ARCHIVE_POINTER: &str = "/content/application~1zstd/schema";

/// The failure of lists with the parameter `sort`.
const UNSORTED: (&str, &str) = (
    "422",
    "The list has no field of the name in `sort`, or `order` is there too: `error.details` names `sort` and the fields",
);

pub(crate) fn base() -> utoipa::openapi::OpenApi {
    Base::openapi()
}

/// Completes each operation from its route: parameters, failures and credentials. `cookie` is the
/// one of the described server.
pub(crate) fn complete(
    document: &utoipa::openapi::OpenApi,
    routes: &[Route],
    cookie: SessionCookie,
) -> Value {
    let mut document = serde_json::to_value(document).unwrap_or_default();
    for route in routes {
        let path = format!("{PREFIX}{}", route.path);
        let method = route.method.as_str().to_lowercase();
        let operation = document
            .pointer_mut("/paths")
            .and_then(|paths| paths.get_mut(path))
            .and_then(|item| item.get_mut(method))
            .and_then(Value::as_object_mut);
        if let Some(operation) = operation {
            complete_operation(route, operation);
        }
    }
    constraints::complete(&mut document);
    release_bodies(&mut document);
    if let Some(components) = document
        .get_mut("components")
        .and_then(Value::as_object_mut)
    {
        components.insert("securitySchemes".to_owned(), security_schemes(cookie));
        components.insert("headers".to_owned(), headers::components());
    }
    document
}

fn security_schemes(cookie: SessionCookie) -> Value {
    let elsewhere = match cookie {
        SessionCookie::Tls => format!(
            "Named `{}` where the control plane is on loopback, without TLS or a balancer",
            SessionCookie::Loopback.name(),
        ),
        SessionCookie::Loopback => format!(
            "Named `{}` where browsers reach the control plane over TLS",
            SessionCookie::Tls.name(),
        ),
    };
    json!({
        "bearer": {"type": "http", "scheme": "bearer"},
        "session": {
            "type": "apiKey", "in": "cookie", "name": cookie.name(), "description": elsewhere,
        },
        "nodeKey": {"type": "apiKey", "in": "header", "name": "X-Service-Node-Key"},
    })
}

/// Describes bodies as optional if all of their fields are: an empty body counts as an object without
/// fields.
fn release_bodies(document: &mut Value) {
    let schemas = document.pointer("/components/schemas");
    let schemas = schemas.and_then(Value::as_object).into_iter().flatten();
    let optional: BTreeSet<String> = schemas
        .filter(|(_, schema)| {
            let demands = ["required", "allOf", "anyOf", "oneOf"];
            let is_free = demands.iter().all(|name| schema.get(*name).is_none());
            is_free && schema.get("properties").is_some()
        })
        .map(|(name, _)| format!("#/components/schemas/{name}"))
        .collect();
    let paths = document
        .pointer_mut("/paths")
        .and_then(Value::as_object_mut);
    let items = paths.into_iter().flat_map(Map::values_mut);
    let items = items.filter_map(Value::as_object_mut);
    for operation in items.flat_map(Map::values_mut) {
        let Some(body) = operation.get_mut("requestBody") else {
            continue;
        };
        let schema = body.pointer("/content/application~1json/schema/$ref");
        let is_optional = schema
            .and_then(Value::as_str)
            .is_some_and(|schema| optional.contains(schema));
        if let Some(body) = body.as_object_mut().filter(|_| is_optional) {
            body.insert("required".to_owned(), json!(false));
        }
    }
}

fn complete_operation(route: &Route, operation: &mut Map<String, Value>) {
    let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
    let mut is_sorted = false;
    if let Some(list) = parameters.as_array_mut() {
        is_sorted = list
            .iter()
            .any(|parameter| parameter.get("name").is_some_and(|name| name == "sort"));
        list.extend(parameters_of(route));
    }
    let unsorted = is_sorted.then_some(UNSORTED);
    if let Some(responses) = operation
        .get_mut("responses")
        .and_then(Value::as_object_mut)
    {
        for (status, response) in responses.iter_mut() {
            describe(status, response);
        }
        for (status, description) in failures_of(route).chain(unsorted) {
            let failure = json!({
                "description": description,
                "content": {"application/json": {
                    "schema": {"$ref": "#/components/schemas/ErrorResponse"},
                }},
            });
            responses.entry(status).or_insert(failure);
        }
        if route.method == Method::GET && route.is_tagged {
            let unchanged =
                json!({"description": "The resource still has an `ETag` of `If-None-Match`"});
            responses.entry("304").or_insert(unchanged);
        }
        headers::complete(route, responses);
    }
    operation.insert("security".to_owned(), security_of(route.access));
    operation.insert("x-access".to_owned(), json!(access_text(route.access)));
}

/// Adds the description that `OpenAPI` requires if the handler has none, and describes an archive
/// as binary instead of as a list of numbers.
fn describe(status: &str, response: &mut Value) {
    if let Some(archive) = response.pointer_mut(ARCHIVE_POINTER) {
        *archive = json!({"type": "string", "format": "binary"});
    }
    let Some(response) = response.as_object_mut() else {
        return;
    };
    let description = response.entry("description").or_insert_with(|| json!(""));
    if description == "" {
        *description = json!(match status {
            "201" => "It was created",
            "202" => "It was accepted, and is not complete yet",
            "204" => "It was done",
            _ => "The requested data, or the resource after the change",
        });
    }
}

fn parameters_of(route: &Route) -> Vec<Value> {
    let names = route.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        Some(json!({
            "name": name, "in": "path", "required": true,
            "schema": {"type": "string", "format": "uuid"},
        }))
    });
    let mut parameters: Vec<Value> = names.collect();
    let header = |name: &str, description: &str| {
        let schema = match name {
            "Idempotency-Key" => json!({"type": "string", "minLength": 1, "maxLength": 255}),
            _ => json!({"type": "string"}),
        };
        json!({
            "name": name, "in": "header", "required": false, "description": description,
            "schema": schema,
        })
    };
    if !route.method.is_safe() {
        if route.is_repeatable() {
            let repeated = "A request with the same key is carried out once; kept for 24 hours";
            parameters.push(header("Idempotency-Key", repeated));
        }
        if route.is_versioned {
            let version = "Carried out only if the resource has this `ETag`";
            parameters.push(header("If-Match", version));
        }
    } else if route.method == Method::GET && route.is_tagged {
        let version = "Answered with 304 if the resource has this `ETag`";
        parameters.push(header("If-None-Match", version));
    }
    parameters
}

fn failures_of(route: &Route) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_public = route.access == Access::Public;
    let is_read = route.method.is_safe();
    // A public write has its credential in the body: a password, a code or a link. It may set a
    // cookie, so it is refused to other sites.
    let credential: &'static [(&str, &str)] = match (is_public, is_read) {
        (true, true) => &[],
        (true, false) => PUBLIC_WRITE_FAILURES,
        (false, _) => CREDENTIAL_FAILURES,
    };
    let is_of_tenant = matches!(route.access, Access::Member { .. });
    let has_name = is_of_tenant || route.path.contains('{');
    let named = [("404", "It does not exist, or belongs to another tenant")];
    COMMON_FAILURES
        .iter()
        .copied()
        .chain(credential.iter().copied())
        .chain(named.into_iter().filter(move |_| has_name))
        .chain(WRITE_FAILURES.iter().copied().filter(move |_| !is_read))
}

fn security_of(access: Access) -> Value {
    match access {
        Access::Public => json!([]),
        Access::SignedIn | Access::Enrolment | Access::Member { .. } => {
            json!([{"bearer": []}, {"session": []}])
        }
        Access::Session
        | Access::FreshSession
        | Access::InstanceAdmin
        | Access::FreshInstanceAdmin => json!([{"session": []}]),
        Access::OwnNode => json!([{"bearer": []}, {"nodeKey": []}]),
        Access::OwnNodeKey => json!([{"nodeKey": []}]),
        Access::SetUp | Access::Invitee | Access::System => json!([{"bearer": []}]),
    }
}

/// Description of an access rule in the `OpenAPI` document.
fn access_text(access: Access) -> String {
    match access {
        Access::Public => "any client".to_owned(),
        Access::SetUp => "the bearer of the set-up link".to_owned(),
        Access::Invitee => "the bearer of an invitation".to_owned(),
        Access::SignedIn => "any user, any API key".to_owned(),
        Access::Session => "any user".to_owned(),
        Access::FreshSession => {
            "any user, after a proof of identity in the last 10 minutes".to_owned()
        }
        Access::InstanceAdmin => "an administrator of the installation".to_owned(),
        Access::FreshInstanceAdmin => {
            "an administrator of the installation, after a proof of identity in the last 10 minutes"
                .to_owned()
        }
        Access::Enrolment => {
            let actors = access_text(Access::WRITE_NODES);
            format!("the bearer of an enrolment token, or {actors}")
        }
        Access::OwnNode => "the node itself".to_owned(),
        Access::OwnNodeKey => "the node itself, by its key".to_owned(),
        Access::System => "the control plane itself".to_owned(),
        Access::Member { scope, role, fresh } => {
            let key = match scope {
                ScopeRule::Any => "any API key".to_owned(),
                ScopeRule::Has(scope) => format!("an API key with the scope {scope}"),
                ScopeRule::Unlimited => "an API key without scopes".to_owned(),
            };
            let proof = if fresh {
                " and a proof of identity in the last 10 minutes"
            } else {
                ""
            };
            format!("the role {role}{proof}, or {key}")
        }
    }
}
