//! The JSON Schema of configurations.

use proxy_model::registry::{self, Presence, SettingSpec, Shape};
use serde_json::{Map, Value, json};

/// `docs/reference/config.schema.json`: a JSON Schema, draft 2020-12, of a configuration as JSON.
///
/// A block is an object of its settings; named blocks are an object keyed by name; a repeatable
/// setting is an array.
pub fn schema_json() -> String {
    let settings = registry::all();
    let mut schema = Map::new();
    schema.insert(
        "$schema".to_owned(),
        "https://json-schema.org/draft/2020-12/schema".into(),
    );
    schema.insert("title".to_owned(), "proxyd configuration".into());
    schema.insert("type".to_owned(), "object".into());
    fill(&mut schema, "", &settings);
    let mut text = format!("{:#}", Value::Object(schema));
    text.push('\n');
    text
}

/// Adds the settings of `block` to the schema of its object.
fn fill(schema: &mut Map<String, Value>, block: &str, settings: &[SettingSpec]) {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let within = |spec: &&SettingSpec| spec.block() == block || spec.also.contains(&block);
    for spec in settings.iter().filter(within) {
        properties.insert(spec.name().to_owned(), property(spec, settings));
        if spec.presence == Presence::Required {
            required.push(spec.name());
        }
    }
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("additionalProperties".to_owned(), false.into());
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
}

fn property(spec: &SettingSpec, settings: &[SettingSpec]) -> Value {
    let mut one = value(spec, settings);
    if let (Shape::Block { argument }, Some(schema)) = (&spec.shape, one.as_object_mut()) {
        fill(schema, spec.path, settings);
        let is_named = argument.is_some() && spec.presence == Presence::Repeatable;
        if is_named {
            one = json!({ "type": "object", "additionalProperties": one });
        }
    } else if spec.presence == Presence::Repeatable {
        one = json!({ "type": "array", "items": one });
    }
    let Some(schema) = one.as_object_mut() else {
        return one;
    };
    schema.insert("description".to_owned(), spec.doc.replace('\n', " ").into());
    if let Presence::Default(default) = &spec.presence {
        schema.insert("default".to_owned(), default_value(default));
    }
    if spec.deprecated.is_some() {
        schema.insert("deprecated".to_owned(), true.into());
    }
    one
}

fn value(spec: &SettingSpec, settings: &[SettingSpec]) -> Value {
    match &spec.shape {
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Integer {
            least,
            greatest,
            words,
            ..
        } => {
            let number = json!({ "type": "integer", "minimum": integer(*least), "maximum": integer(*greatest) });
            if words.is_empty() {
                return number;
            }
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            json!({ "anyOf": [number, { "enum": words }] })
        }
        Shape::Decimal {
            least, greatest, ..
        } => {
            json!({ "type": "number", "minimum": least, "maximum": greatest })
        }
        Shape::Size { least, greatest } => json!({ "anyOf": [
            { "type": "integer", "minimum": least, "maximum": greatest },
            { "type": "string", "pattern": "^[0-9]+ ?([KMGT]i?)?B$" },
        ] }),
        Shape::Time {
            least_ms,
            greatest_ms,
        } => {
            let per = if spec.name().ends_with("-ms") {
                1
            } else {
                1_000
            };
            let (least, greatest) = (least_ms.div_ceil(per), greatest_ms / per);
            json!({ "type": "integer", "minimum": least, "maximum": greatest })
        }
        Shape::Choice(words) => {
            let words: Vec<&str> = words.iter().map(|word| word.name).collect();
            let word = json!({ "enum": words });
            if settings.iter().any(|setting| setting.block() == spec.path) {
                let mut block = Map::new();
                fill(&mut block, spec.path, settings);
                return json!({ "anyOf": [word, Value::Object(block)] });
            }
            word
        }
        Shape::Text { what, example, .. } => {
            json!({ "type": "string", "title": what, "examples": [example] })
        }
        Shape::Pair { .. } => json!({
            "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 2,
        }),
        Shape::Block { .. } => json!({ "type": "object" }),
    }
}

fn integer(number: i128) -> Value {
    i64::try_from(number).map_or(Value::Null, Value::from)
}

/// The JSON form of a default.
fn default_value(written: &str) -> Value {
    let plain = written.trim_start_matches('#');
    serde_json::from_str(plain).unwrap_or_else(|_| plain.into())
}
