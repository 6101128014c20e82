//! Operations of the HTTP interface as commands, derived from its `OpenAPI` description.

use crate::ctl::error::CtlError;
use control_api::Route;
use control_domain::Access;
use http::Method;
use serde_json::{Map, Value};

/// An operation with the command `ctl <noun> <verb>`.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// Kind of resource, such as `api-key`.
    pub(crate) noun: String,
    /// Plural of the noun, such as `api-keys`.
    pub(crate) tag: String,
    /// The action, such as `revoke`.
    pub(crate) verb: String,
    /// First sentence of the operation's description.
    pub(crate) about: String,
    pub(crate) method: Method,
    /// Path template, such as `/api/v1/orgs/{org}`.
    pub(crate) path: String,
    /// Parameters in the path, in order.
    pub(crate) path_fields: Vec<String>,
    pub(crate) query: Vec<Field>,
    pub(crate) body: RequestBody,
    /// Maximum size of the body, which the server refuses above.
    pub(crate) max_body_bytes: usize,
    /// Whether the response is not JSON, and is written unchanged.
    pub(crate) is_raw: bool,
    /// Whether the operation requires the resource's version in `If-Match`.
    pub(crate) is_versioned: bool,
    /// Whether the credential is from a link. Such a credential cannot look up names.
    pub(crate) by_link: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum RequestBody {
    None,
    Json(Vec<Field>),
    /// Bytes of this media type.
    Bytes(String),
}

/// A query parameter, or a field of a body.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
    pub(crate) about: String,
    /// Whether the value is an ID, or a list of IDs, of the resource in the field's name, such as
    /// `nodes`.
    pub(crate) is_id: bool,
    /// All permitted values, if they are an enumeration.
    pub(crate) values: Vec<String>,
}

/// Type of a value on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    /// List of texts; the flag is repeated for each.
    Texts,
    /// Arbitrary JSON.
    Json,
}

/// Derives the operations for clients, in the order of the route table.
pub(crate) fn operations(document: &Value, routes: &[Route]) -> Vec<Operation> {
    let clients = routes.iter().filter(|route| is_client_route(route));
    clients
        .filter_map(|route| Operation::read(document, route))
        .collect()
}

/// Returns true if the operation is for clients with an API key. Operations of nodes and of
/// sessions are excluded.
pub(crate) fn is_client_route(route: &Route) -> bool {
    match route.access {
        Access::Enrolment
        | Access::OwnNode
        | Access::OwnNodeKey
        | Access::System
        | Access::Session
        | Access::FreshSession => false,
        // Public operations that write create sessions.
        Access::Public => route.method.is_safe(),
        Access::SetUp
        | Access::Invitee
        | Access::SignedIn
        | Access::InstanceAdmin
        | Access::FreshInstanceAdmin
        | Access::Member { .. } => true,
    }
}

/// Returns the first sentence of a text, which may span several lines.
fn first_sentence(text: &str) -> String {
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => line,
    }
}

impl Operation {
    fn read(document: &Value, route: &Route) -> Option<Self> {
        let path = format!("/api/v1{}", route.path);
        let method = route.method.as_str().to_ascii_lowercase();
        let described = document.get("paths")?.get(&path)?.get(method)?;
        let tag = described.get("tags")?.get(0)?.as_str()?;
        let noun = singular(tag);
        let verb = verb(text(described, "operationId"), &noun);
        let about = described.get("summary").or(described.get("description"));
        let about = about.and_then(Value::as_str).unwrap_or_default();
        let parameters = described.get("parameters").and_then(Value::as_array);
        let parameters = parameters.map(Vec::as_slice).unwrap_or_default();
        let of = |place: &'static str| {
            let own = move |parameter: &&Value| text(parameter, "in") == place;
            parameters.iter().filter(own)
        };
        Some(Self {
            noun,
            tag: tag.to_owned(),
            verb,
            about: first_sentence(about),
            method: route.method.clone(),
            path,
            path_fields: of("path").map(|one| text(one, "name").to_owned()).collect(),
            query: of("query").map(|one| parameter(document, one)).collect(),
            body: body(document, described),
            max_body_bytes: route.max_body_bytes,
            is_raw: is_raw(described),
            is_versioned: route.is_versioned,
            by_link: matches!(route.access, Access::SetUp | Access::Invitee),
        })
    }

    /// Checks the size of a body before it is sent.
    ///
    /// # Errors
    ///
    /// [`CtlError::Usage`] for more than the server reads.
    pub(crate) fn check_size(&self, bytes: usize) -> Result<(), CtlError> {
        if bytes <= self.max_body_bytes {
            return Ok(());
        }
        let (noun, max) = (&self.noun, self.max_body_bytes / 1024);
        Err(CtlError::usage(format!(
            "the {noun} has {} KiB, the maximum is {max} KiB",
            bytes.div_ceil(1024)
        )))
    }

    /// Returns true if the response is one page of a list.
    pub(crate) fn is_paged(&self) -> bool {
        self.query.iter().any(|field| field.name == "cursor")
    }

    /// Returns the fields of a JSON body.
    pub(crate) fn fields(&self) -> &[Field] {
        match &self.body {
            RequestBody::Json(fields) => fields,
            RequestBody::None | RequestBody::Bytes(_) => &[],
        }
    }
}

fn is_raw(described: &Value) -> bool {
    let responses = described.get("responses").and_then(Value::as_object);
    let mut good = responses.into_iter().flatten();
    let good = good.find(|(status, _)| status.starts_with('2'));
    let content = good.and_then(|(_, response)| response.get("content")?.as_object());
    content.is_some_and(|kinds| !kinds.contains_key("application/json"))
}

fn parameter(document: &Value, parameter: &Value) -> Field {
    let schema = parameter.get("schema").unwrap_or(&Value::Null);
    let required = parameter.get("required").and_then(Value::as_bool);
    let mut field = field(document, text(parameter, "name"), schema);
    field.required = required.unwrap_or(false);
    field.about = sentence(text(parameter, "description"));
    field
}

fn body(document: &Value, described: &Value) -> RequestBody {
    let content = described.pointer("/requestBody/content");
    let Some((kind, media)) = content.and_then(Value::as_object).and_then(|all| {
        let json = all.get_key_value("application/json");
        json.or_else(|| all.iter().next())
    }) else {
        return RequestBody::None;
    };
    if kind != "application/json" {
        return RequestBody::Bytes(kind.clone());
    }
    let schema = plain(document, media.get("schema").unwrap_or(&Value::Null));
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| {
        let mut names = required.into_iter().flatten();
        names.any(|required| required == name)
    };
    let fields = properties.into_iter().flat_map(Map::iter);
    let fields = fields.map(|(name, schema)| Field {
        required: is_required(name),
        ..field(document, name, schema)
    });
    RequestBody::Json(fields.collect())
}

fn field(document: &Value, name: &str, schema: &Value) -> Field {
    let about = sentence(text(schema, "description"));
    let schema = plain(document, schema);
    let own = sentence(text(schema, "description"));
    let item_schema = schema.get("items").map(|items| plain(document, items));
    let values = item_schema.unwrap_or(schema).get("enum");
    let values = values.and_then(Value::as_array).into_iter().flatten();
    Field {
        name: name.to_owned(),
        kind: kind(schema, item_schema),
        required: false,
        is_id: text(item_schema.unwrap_or(schema), "format") == "uuid",
        about: (if about.is_empty() { own } else { about }) + &defaults(schema),
        values: values
            .filter_map(|value| Some(value.as_str()?.to_owned()))
            .collect(),
    }
}

/// Describes the default values of an object, for the help of its flag.
fn defaults(schema: &Value) -> String {
    let properties = schema.get("properties").and_then(Value::as_object);
    let defaults: Vec<String> = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, property)| Some(format!("`{name}` {}", property.get("default")?)))
        .collect();
    if defaults.is_empty() {
        return String::new();
    }
    format!(" Absent fields: {}.", defaults.join(", "))
}

fn kind(schema: &Value, item_schema: Option<&Value>) -> Kind {
    match type_of(schema) {
        "string" => Kind::Text,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        "array" if item_schema.is_some_and(|items| type_of(items) == "string") => Kind::Texts,
        _ => Kind::Json,
    }
}

/// Resolves references in a schema, and removes the alternative `null`.
fn plain<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    // Generated descriptions have only short chains of references.
    for _ in 0..8 {
        // Alternatives next to fields only define which fields exclude each other.
        let choices = schema.get("oneOf").or(schema.get("anyOf"));
        let choices = choices.filter(|_| schema.get("properties").is_none());
        let choice = choices.and_then(Value::as_array).and_then(|all| {
            let mut others = all.iter().filter(|one| type_of(one) != "null");
            others.next().filter(|_| all.len() <= 2)
        });
        let target = text(schema, "$ref").strip_prefix('#');
        let referred = target.and_then(|pointer| document.pointer(pointer));
        let Some(next) = referred.or(choice) else {
            break;
        };
        schema = next;
    }
    schema
}

fn type_of(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(one)) => one,
        Some(Value::Array(several)) => several
            .iter()
            .filter_map(Value::as_str)
            .find(|one| *one != "null")
            .unwrap_or_default(),
        _ => "",
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn sentence(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join(" ")
}

/// Returns the singular of a tag: `api-key` of `api-keys`.
pub(crate) fn singular(tag: &str) -> String {
    match (tag.strip_suffix("ies"), tag.strip_suffix('s')) {
        (Some(stem), _) => format!("{stem}y"),
        (None, Some(stem)) => stem.to_owned(),
        (None, None) => tag.to_owned(),
    }
}

/// Removes the noun from an operation's name: `revoke_api_key` becomes `revoke`.
fn verb(operation_id: &str, noun: &str) -> String {
    let noun: Vec<&str> = noun.split('-').collect();
    let mut words: Vec<&str> = operation_id.split('_').collect();
    let found = words.windows(noun.len()).position(|part| {
        let mut pairs = part.iter().zip(&noun);
        pairs.all(|(word, noun)| word == noun || singular(word) == *noun)
    });
    if let Some(start) = found {
        words.drain(start..start + noun.len());
    }
    if words.len() > 1 && words.first() == Some(&"get") {
        words.remove(0);
    }
    match words.concat() {
        // Removing the noun `setup` from `set_up` leaves nothing.
        whole if whole == noun.concat() => "run".to_owned(),
        _ => words.join("-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_of_an_object_shows_the_defaults_of_its_fields() {
        let document = serde_json::json!({"gate": {"type": "object", "description": "A gate.", "properties": {
            "min": {"type": "integer", "default": 100}, "name": {"type": "string"}, "max": {"default": 0},
        }}});
        let reference = serde_json::json!({"$ref": "#/gate"});
        let found = field(&document, "gate", &reference);
        assert_eq!(found.about, "A gate. Absent fields: `max` 0, `min` 100.");
    }

    #[test]
    fn the_verb_is_the_rest_of_the_operation_id() {
        for (id, noun, expected) in [
            ("list_api_keys", "api-key", "list"),
            ("revoke_api_key", "api-key", "revoke"),
            ("rotate_node_key", "node", "rotate-key"),
            ("get_node_stats", "node", "stats"),
            ("get_node", "node", "get"),
            ("get_me", "user", "me"),
            ("list_audit", "audit", "list"),
            ("diff_bundles", "bundle", "diff"),
            ("set_up", "setup", "run"),
        ] {
            assert_eq!(verb(id, noun), expected, "{id}");
        }
        assert_eq!(singular("services"), "service");
        assert_eq!(singular("policies"), "policy");
        assert_eq!(singular("drift"), "drift");
    }
}
