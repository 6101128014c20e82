//! The schema and the page match the code.

use crate::samples::{agent_messages, proxy_messages};
use agent_protocol::{
    AgentMessage, Encoding, Frame, FrameType, PROTECTED_NAMES, ProxyMessage, read_frame,
    schema_json,
};
use serde_json::Value;
use std::fs;
use std::path::Path;

const LIMIT: usize = 1 << 20;

fn schema() -> Value {
    serde_json::from_str(&schema_json()).unwrap()
}

fn page() -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    fs::read_to_string(docs.join("agent-protocol.md")).unwrap()
}

/// All sample messages as JSON, by the names of their types.
fn payloads() -> Vec<(&'static str, Value)> {
    let mut frames = Vec::new();
    for message in proxy_messages() {
        message.encode(Encoding::Json, LIMIT, &mut frames).unwrap();
    }
    for message in agent_messages() {
        message.encode(Encoding::Json, LIMIT, &mut frames).unwrap();
    }
    let mut rest = &frames[..];
    let mut payloads = Vec::new();
    while let Some((frame, length)) = read_frame(rest, LIMIT).unwrap() {
        let payload = serde_json::from_slice(frame.payload).unwrap();
        payloads.push((frame.frame_type.name(), payload));
        rest = &rest[length..];
    }
    payloads
}

/// Error of a value that does not match; only the keywords of our schema are supported.
fn misfit(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    let mut rules = schema.as_object().unwrap().iter();
    rules.find_map(|(keyword, rule)| {
        let fits = match keyword.as_str() {
            "$ref" => {
                let name = rule.as_str().unwrap().rsplit('/').next().unwrap();
                misfit(root, &root["$defs"][name], value).is_none()
            }
            "oneOf" => {
                let choices = rule.as_array().unwrap().iter();
                choices
                    .filter(|choice| misfit(root, choice, value).is_none())
                    .count()
                    == 1
            }
            "items" | "prefixItems" | "properties" => parts_fit(root, keyword, rule, value),
            "additionalProperties" => additional(root, schema, rule, value),
            _ => is_within(keyword, rule, value),
        };
        (!fits).then(|| format!("{keyword} {rule} does not hold for {value}"))
    })
}

fn parts_fit(root: &Value, keyword: &str, rule: &Value, value: &Value) -> bool {
    let fits = |rule: &Value, part: &Value| misfit(root, rule, part).is_none();
    match keyword {
        "items" => value
            .as_array()
            .unwrap()
            .iter()
            .all(|item| fits(rule, item)),
        "prefixItems" => {
            let mut pairs = rule
                .as_array()
                .unwrap()
                .iter()
                .zip(value.as_array().unwrap());
            pairs.all(|(rule, item)| fits(rule, item))
        }
        _ => {
            let mut rules = rule.as_object().unwrap().iter();
            rules.all(|(name, rule)| value.get(name).is_none_or(|found| fits(rule, found)))
        }
    }
}

fn is_within(keyword: &str, rule: &Value, value: &Value) -> bool {
    let bound = || size(rule.as_u64().unwrap());
    let items = || value.as_array().unwrap().len();
    match keyword {
        "type" => match rule.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64(),
            other => panic!("type {other}"),
        },
        "const" => value == rule,
        "enum" => rule.as_array().unwrap().contains(value),
        "minimum" => size(value.as_u64().unwrap()) >= bound(),
        "maximum" => size(value.as_u64().unwrap()) <= bound(),
        "minItems" => items() >= bound(),
        "maxItems" => items() <= bound(),
        "maxLength" => value.as_str().unwrap().len() <= bound(),
        "maxProperties" => value.as_object().unwrap().len() <= bound(),
        "required" => {
            let mut names = rule.as_array().unwrap().iter();
            names.all(|name| value.get(name.as_str().unwrap()).is_some())
        }
        "pattern" | "propertyNames" | "contentEncoding" | "description" | "default" => true,
        other => panic!("the keyword {other}"),
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

fn additional(root: &Value, schema: &Value, rule: &Value, value: &Value) -> bool {
    let known = &schema["properties"];
    let fields = value.as_object().unwrap().iter();
    let mut others = fields.filter(|(name, _)| known.get(name).is_none());
    if let Value::Bool(is_open) = rule {
        return *is_open || others.next().is_none();
    }
    others.all(|(_, value)| misfit(root, rule, value).is_none())
}

#[test]
fn every_message_matches_the_schema_and_every_field_is_in_it() {
    let mut root = schema();
    // Fields that the proxy may add later.
    for (_, definition) in root["$defs"].as_object_mut().unwrap() {
        if definition["additionalProperties"] == Value::Bool(true) {
            definition["additionalProperties"] = Value::Bool(false);
        }
    }
    let payloads = payloads();
    assert!(payloads.len() > 14);
    for (name, payload) in payloads {
        let definition = &root["$defs"][name];
        assert!(definition.is_object(), "{name}");
        assert_eq!(
            misfit(&root, definition, &payload),
            None,
            "{name}: {payload}"
        );
    }
}

#[test]
fn every_field_that_the_schema_requires_is_required() {
    let root = schema();
    for (name, payload) in payloads() {
        let definition = &root["$defs"][name];
        let Some(required) = definition["required"].as_array() else {
            continue;
        };
        for field in payload.as_object().unwrap().keys() {
            let mut without = payload.clone();
            without.as_object_mut().unwrap().remove(field);
            let is_required = required.iter().any(|name| name == field);
            assert_eq!(
                is_refused(name, &without),
                is_required,
                "{name} without {field}"
            );
        }
    }
}

fn is_refused(name: &str, payload: &Value) -> bool {
    let payload = payload.to_string();
    let frame_type = FrameType::ALL.into_iter().find(|kind| kind.name() == name);
    let frame = Frame {
        frame_type: frame_type.unwrap(),
        payload: payload.as_bytes(),
    };
    ProxyMessage::decode(frame, Encoding::Json).is_err()
        && AgentMessage::decode(frame, Encoding::Json).is_err()
}

#[test]
fn the_page_lists_all_types_and_names_that_no_agent_touches() {
    let page = page();
    for kind in FrameType::ALL {
        let row = format!("| 0x{:02x} | {} |", kind.code(), kind.name());
        assert!(page.contains(&row), "{row}");
    }
    for name in PROTECTED_NAMES {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn the_examples_of_the_page_fit_the_schema() {
    let root = schema();
    let page = page();
    let blocks = page.split("```json\n").skip(1);
    let mut count = 0;
    for block in blocks {
        let text = block.split("```").next().unwrap();
        let example: Value = serde_json::from_str(text).unwrap();
        let mut definitions = root["$defs"].as_object().unwrap().values();
        let fits = definitions.any(|definition| {
            let is_message =
                definition.get("oneOf").is_some() || definition["properties"].get("id").is_some();
            is_message && misfit(&root, definition, &example).is_none()
        });
        assert!(fits, "{text}");
        count += 1;
    }
    assert!(count >= 9);
}
