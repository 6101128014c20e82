//! The JSON schema of all payloads, for agents in other languages.

use crate::decision::{MAX_CHALLENGES, MAX_REASON_BYTES};
use crate::event::EventKind;
use crate::frame::FrameType;
use crate::handshake::PROTOCOL_VERSION;
use crate::header::MAX_HEADER_EDITS;
use crate::id::RequestId;
use crate::metadata::{MAX_METADATA_ENTRIES, MAX_METADATA_KEY_BYTES, MAX_METADATA_VALUE_BYTES};
use serde_json::{Map, Value, json};

/// The text of `docs/reference/agent-protocol.schema.json`. The payload of each type of frame is a
/// definition of that name.
pub fn schema_json() -> String {
    let mut definitions = shared();
    let payloads = [
        (FrameType::Hello, hello()),
        (FrameType::Welcome, welcome()),
        (FrameType::RequestHeaders, request_headers()),
        (FrameType::RequestBody, body_chunk()),
        (FrameType::ResponseHeaders, response_headers()),
        (FrameType::ResponseBody, body_chunk()),
        (FrameType::Completion, completion()),
        (
            FrameType::Cancel,
            object(true, &json!({"id": id()}), &["id"]),
        ),
        (FrameType::Decision, decision()),
        (
            FrameType::Drain,
            object(false, &json!({"id": connection()}), &["id"]),
        ),
        (FrameType::Error, error()),
    ];
    for (frame_type, schema) in payloads {
        definitions.insert(frame_type.name().to_owned(), schema);
    }
    let codes = FrameType::ALL.map(|kind| (kind.name().to_owned(), kind.code().into()));
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Payloads of the agent protocol",
        "description": "The payload of a frame is described by the definition of its type's name.",
        "x-protocol-version": PROTOCOL_VERSION,
        "x-frame-types": Map::from_iter(codes),
        "$defs": definitions,
    });
    format!("{schema:#}\n")
}

/// An object. Agents skip unknown fields of the proxy; the proxy refuses unknown fields of an
/// agent.
fn object(is_open: bool, properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": is_open,
    })
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

fn list(items: &Value, max_items: usize) -> Value {
    json!({"type": "array", "items": items, "maxItems": max_items})
}

fn unsigned() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn id() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": RequestId::MAX.get()})
}

fn connection() -> Value {
    json!({"const": RequestId::CONNECTION.get()})
}

fn status() -> Value {
    json!({"type": "integer", "minimum": 100, "maximum": 999})
}

fn strings() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

fn shared() -> Map<String, Value> {
    let metadata = json!({
        "type": "object",
        "maxProperties": MAX_METADATA_ENTRIES,
        "propertyNames": {"pattern": format!("^[A-Za-z0-9_.-]{{1,{MAX_METADATA_KEY_BYTES}}}$")},
        "additionalProperties": {"type": "string", "maxLength": MAX_METADATA_VALUE_BYTES},
    });
    let edit = object(
        false,
        &json!({
            "op": {"enum": ["set", "add", "remove"]},
            "name": {"type": "string"},
            "value": reference("text"),
        }),
        &["op", "name"],
    );
    let definitions = [
        (
            "text",
            json!({
                "description": "Bytes of HTTP, one character each (ISO 8859-1).",
                "type": "string",
                "pattern": "^[\\u0000-\\u00ff]*$",
            }),
        ),
        (
            "bytes",
            json!({"type": "string", "contentEncoding": "base64"}),
        ),
        (
            "header",
            json!({
                "description": "A name in lower case, and a value.",
                "type": "array",
                "prefixItems": [{"type": "string"}, reference("text")],
                "minItems": 2,
                "maxItems": 2,
            }),
        ),
        ("edit", edit),
        ("metadata", metadata),
    ];
    let named = definitions.map(|(name, schema)| (name.to_owned(), schema));
    Map::from_iter(named)
}

fn hello() -> Value {
    let properties = json!({
        "id": connection(),
        "versions": {"type": "array", "items": unsigned()},
        "encodings": strings(),
        "proxy": {"type": "string"},
        "agent": {"type": "string"},
        "max_event_bytes": unsigned(),
        "max_decision_bytes": unsigned(),
        "features": strings(),
    });
    let required = [
        "id",
        "versions",
        "encodings",
        "proxy",
        "agent",
        "max_event_bytes",
        "max_decision_bytes",
    ];
    object(true, &properties, &required)
}

fn welcome() -> Value {
    let mode = json!({"enum": ["none", "buffered", "chunks"], "default": "none"});
    let flag = json!({"type": "boolean", "default": false});
    let wants = object(
        false,
        &json!({
            "request_body": mode,
            "response_headers": flag,
            "response_body": mode,
            "completion": flag,
        }),
        &[],
    );
    let properties = json!({
        "id": connection(),
        "version": unsigned(),
        "encoding": {"enum": ["json", "message-pack"], "default": "json"},
        "agent": {"type": "string"},
        "wants": wants,
        "features": strings(),
    });
    object(false, &properties, &["id", "version", "agent"])
}

fn request_headers() -> Value {
    let tls = object(
        true,
        &json!({
            "version": {"type": "string"},
            "server_name": {"type": "string"},
            "certificate_sha256": {"type": "string"},
        }),
        &[],
    );
    let properties = json!({
        "id": id(),
        "seq": unsigned(),
        "timeout_ms": unsigned(),
        "correlation_id": {"type": "string"},
        "route": {"type": "string"},
        "client_ip": {"type": "string"},
        "client_port": {"type": "integer", "minimum": 0, "maximum": u16::MAX},
        "tls": tls,
        "method": {"type": "string"},
        "scheme": {"type": "string"},
        "authority": reference("text"),
        "target": reference("text"),
        "http_version": {"type": "string"},
        "headers": {"type": "array", "items": reference("header")},
        "has_body": {"type": "boolean"},
        "metadata": {"type": "object", "additionalProperties": reference("metadata")},
    });
    let required = [
        "id",
        "seq",
        "timeout_ms",
        "correlation_id",
        "route",
        "client_ip",
        "method",
        "scheme",
        "authority",
        "target",
        "http_version",
        "headers",
        "has_body",
    ];
    object(true, &properties, &required)
}

fn body_chunk() -> Value {
    let properties = json!({
        "id": id(),
        "seq": unsigned(),
        "timeout_ms": unsigned(),
        "data": reference("bytes"),
        "last": {"type": "boolean"},
        "truncated": {"type": "boolean", "default": false},
        "decoded": {"type": "boolean", "default": false},
    });
    object(
        true,
        &properties,
        &["id", "seq", "timeout_ms", "data", "last"],
    )
}

fn response_headers() -> Value {
    let properties = json!({
        "id": id(),
        "seq": unsigned(),
        "timeout_ms": unsigned(),
        "upstream": {"type": "string"},
        "status": status(),
        "http_version": {"type": "string"},
        "headers": {"type": "array", "items": reference("header")},
        "has_body": {"type": "boolean"},
    });
    let required = [
        "id",
        "seq",
        "timeout_ms",
        "status",
        "http_version",
        "headers",
        "has_body",
    ];
    object(true, &properties, &required)
}

fn completion() -> Value {
    let properties = json!({
        "id": id(),
        "status": status(),
        "reason": {"type": "string"},
        "request_bytes": unsigned(),
        "response_bytes": unsigned(),
        "duration_ms": unsigned(),
    });
    let required = ["id", "request_bytes", "response_bytes", "duration_ms"];
    object(true, &properties, &required)
}

fn decision() -> Value {
    let verbs = [
        (allow(), None),
        (block(), None),
        (redirect(), Some("location")),
        (challenge(), Some("challenges")),
    ];
    let of_verb = verbs.map(|(mut properties, also)| {
        if let Some(properties) = properties.as_object_mut() {
            properties.insert("id".to_owned(), id());
            properties.insert("seq".to_owned(), unsigned());
        }
        let mut required = vec!["id", "seq", "decision"];
        required.extend(also);
        object(false, &properties, &required)
    });
    json!({"oneOf": of_verb})
}

fn allow() -> Value {
    let edits = list(&reference("edit"), MAX_HEADER_EDITS);
    let later = EventKind::ALL.into_iter().skip(1).map(EventKind::name);
    let later: Vec<&str> = later.collect();
    let max_skips = later.len();
    json!({
        "decision": {"const": "allow"},
        "request_headers": edits,
        "response_headers": edits,
        "metadata": reference("metadata"),
        "skip": list(&json!({"enum": later}), max_skips),
    })
}

fn block() -> Value {
    json!({
        "decision": {"const": "block"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "headers": list(&reference("header"), MAX_HEADER_EDITS),
        "body": reference("bytes"),
        "reason": reason(),
    })
}

fn redirect() -> Value {
    json!({
        "decision": {"const": "redirect"},
        "status": {"enum": [301, 302, 303, 307, 308], "default": 302},
        "location": reference("text"),
        "headers": list(&reference("header"), MAX_HEADER_EDITS),
        "body": reference("bytes"),
    })
}

fn challenge() -> Value {
    json!({
        "decision": {"const": "challenge"},
        "challenges": {
            "type": "array",
            "items": reference("text"),
            "minItems": 1,
            "maxItems": MAX_CHALLENGES,
        },
        "headers": list(&reference("header"), MAX_HEADER_EDITS),
        "body": reference("bytes"),
        "reason": reason(),
    })
}

fn reason() -> Value {
    json!({"type": "string", "maxLength": MAX_REASON_BYTES})
}

fn error() -> Value {
    let properties = json!({
        "id": {"type": "integer", "minimum": 0, "maximum": RequestId::MAX.get()},
        "code": {"type": "string"},
        "message": {"type": "string"},
    });
    object(true, &properties, &["id", "code", "message"])
}
