//! Response header fields in the `OpenAPI` document.

use crate::route::{PREFIX, Route};
use axum::http::Method;
use control_domain::Access;
use serde_json::{Map, Value, json};

/// A header field shared by several responses.
struct Field {
    name: &'static str,
    description: &'static str,
    value_type: ValueType,
}

/// JSON type of a field's value.
#[derive(Clone, Copy)]
enum ValueType {
    Text,
    /// Not negative.
    Integer,
}

const CORRELATION_ID: Field = text(
    "X-Correlation-Id",
    "Name of the request in logs and in the audit log",
);
const CACHE_CONTROL: Field = text(
    "Cache-Control",
    "`no-store` with a secret, `no-cache, private` otherwise",
);
const NOSNIFF: Field = text("X-Content-Type-Options", "`nosniff`");
const CHALLENGE: Field = text("WWW-Authenticate", "`Bearer`");
const TAG: Field = text(
    "ETag",
    "The version of the resource, for `If-Match` and `If-None-Match`",
);
const COOKIE: Field = text(
    "Set-Cookie",
    "The session, the browser that signed in before, or the end of a session",
);
const FILE: Field = text(
    "Content-Disposition",
    "The name of the file: the digest of the archive",
);
const RETRY_AFTER: Field = number("Retry-After", "Seconds until a repetition may succeed");
/// Header fields of rate limits. Responses to failures before the limit is known lack them.
const RATE: [Field; 3] = [
    number("X-RateLimit-Limit", "Requests that are admitted at once"),
    number("X-RateLimit-Remaining", "Requests that are left"),
    number(
        "X-RateLimit-Reset",
        "Time when all are left again, in seconds since 1970",
    ),
];
/// Suffix of the component's name for a field that may be absent.
const OPTIONAL: &str = ".optional";

const fn text(name: &'static str, description: &'static str) -> Field {
    Field {
        name,
        description,
        value_type: ValueType::Text,
    }
}

const fn number(name: &'static str, description: &'static str) -> Field {
    Field {
        name,
        description,
        value_type: ValueType::Integer,
    }
}

impl Field {
    fn component(&self, is_required: bool) -> Value {
        let schema = match self.value_type {
            ValueType::Text => json!({"type": "string"}),
            ValueType::Integer => json!({"type": "integer", "minimum": 0}),
        };
        json!({"description": self.description, "required": is_required, "schema": schema})
    }
}

/// Reusable components for header fields.
pub(super) fn components() -> Value {
    let always = [
        CORRELATION_ID,
        CACHE_CONTROL,
        NOSNIFF,
        CHALLENGE,
        TAG,
        FILE,
        RETRY_AFTER,
    ];
    let always = always.into_iter().chain(RATE);
    let always = always.map(|field| (field.name.to_owned(), field.component(true)));
    let optional = [TAG, COOKIE].into_iter().chain(RATE);
    let optional = optional.map(|field| {
        let name = format!("{}{OPTIONAL}", field.name);
        (name, field.component(false))
    });
    Value::Object(always.chain(optional).collect())
}

/// Adds the header fields to each response of an operation.
pub(super) fn complete(route: &Route, responses: &mut Map<String, Value>) {
    for (status, response) in responses.iter_mut() {
        let fields = fields(route, status);
        if let Some(response) = response.as_object_mut() {
            response.insert("headers".to_owned(), Value::Object(fields));
        }
    }
}

fn fields(route: &Route, status: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut add = |field: &Field, is_required: bool| {
        let end = if is_required { "" } else { OPTIONAL };
        let reference = json!({"$ref": format!("#/components/headers/{}{end}", field.name)});
        fields.insert(field.name.to_owned(), reference);
    };
    for field in [&CORRELATION_ID, &CACHE_CONTROL, &NOSNIFF] {
        add(field, true);
    }
    for field in &RATE {
        add(field, !status.starts_with('5'));
    }
    let is_resource = matches!(status, "200" | "201" | "304");
    if route.is_tagged && is_resource {
        // `/users/me` of an API key has no version, so the `ETag` is optional.
        add(
            &TAG,
            route.access != Access::SignedIn || route.method != Method::GET,
        );
    }
    match status {
        "401" => add(&CHALLENGE, true),
        "429" | "503" => add(&RETRY_AFTER, true),
        "200" | "304" if route.is_archive() => add(&FILE, true),
        "200" | "201" | "204" if route.sets_cookies => add(&COOKIE, false),
        _ => {}
    }
    if status == "201"
        && let Some(path) = route.creates
    {
        fields.insert("Location".to_owned(), location(path));
    }
    fields
}

fn location(path: &str) -> Value {
    json!({
        "description": format!("The path of what was created: `{PREFIX}{path}`"),
        "required": true,
        "schema": {"type": "string", "format": "uri-reference"},
    })
}
