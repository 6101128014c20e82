//! Additional settings of upstreams and services: a configuration block as JSON.
//!
//! There is no second model of the settings: names and values are the configuration's own, and its
//! checks report faults.

use kdl::{KdlNode, KdlValue};
use serde_json::{Map, Value};

const MAX_BYTES: usize = 16 * 1024;
const MAX_DEPTH: usize = 8;

/// Settings with a dedicated field in an upstream; refused in the block.
pub(crate) const UPSTREAM_FIELDS: &[&str] = &["load-balancing", "target", "targets", "tls"];
/// Settings with a dedicated field in a service; refused in the block.
pub(crate) const SERVICE_FIELDS: &[&str] = &["matches", "priority", "upstream"];

/// Converts the JSON object to KDL nodes. A scalar becomes the argument of its node, an object its
/// block. A list becomes several arguments, followed by an optional object as the block; a list of
/// lists becomes one node for each.
///
/// # Errors
///
/// The reason, if the text is not an object of settings, or names one of `fields`.
pub(crate) fn nodes(text: &str, fields: &[&str]) -> Result<Vec<KdlNode>, String> {
    if MAX_BYTES < text.len() {
        return Err("are larger than 16 KiB".to_owned());
    }
    let settings: Map<String, Value> =
        serde_json::from_str(text).map_err(|_| "are not an object".to_owned())?;
    if let Some(own) = settings.keys().find(|name| fields.contains(&name.as_str())) {
        return Err(format!("`{own}` has a separate field"));
    }
    block(&settings, 0)
}

fn block(settings: &Map<String, Value>, depth: usize) -> Result<Vec<KdlNode>, String> {
    if MAX_DEPTH < depth {
        return Err("are nested more than 8 deep".to_owned());
    }
    let mut nodes = Vec::new();
    for (name, value) in settings {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(format!("{name:?} is not a name of a setting"));
        }
        if let Value::Array(all) = value
            && all.iter().any(Value::is_array)
        {
            for one in all {
                nodes.push(node(name, one, depth)?);
            }
        } else {
            nodes.push(node(name, value, depth)?);
        }
    }
    Ok(nodes)
}

fn node(name: &str, value: &Value, depth: usize) -> Result<KdlNode, String> {
    let mut node = KdlNode::new(name);
    let parts = value.as_array().map(Vec::as_slice);
    let parts = parts.unwrap_or(std::slice::from_ref(value));
    for (at, part) in parts.iter().enumerate() {
        if let Value::Object(inner) = part
            && at + 1 == parts.len()
        {
            *node.ensure_children().nodes_mut() = block(inner, depth + 1)?;
        } else {
            node.push(argument(name, part)?);
        }
    }
    Ok(node)
}

fn argument(name: &str, value: &Value) -> Result<KdlValue, String> {
    match value {
        Value::String(text) => Ok(KdlValue::String(text.clone())),
        Value::Bool(flag) => Ok(KdlValue::Bool(*flag)),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Ok(KdlValue::Integer(whole.into())),
            (None, Some(fraction)) => Ok(KdlValue::Float(fraction)),
            (None, None) => Err(format!("`{name}` has a number out of range")),
        },
        Value::Null => Err(format!("`{name}` is null")),
        Value::Array(_) | Value::Object(_) => {
            Err(format!("`{name}` has a block that is not its last part"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kdl::KdlDocument;

    fn text(json: &str) -> Result<String, String> {
        let mut document = KdlDocument::new();
        *document.nodes_mut() = nodes(json, UPSTREAM_FIELDS)?;
        document.autoformat();
        Ok(document.to_string())
    }

    #[test]
    fn settings_are_written_as_in_a_configuration() {
        let json = r#"{
            "protocol": "h2",
            "timeouts": {"connect-secs": 2},
            "health-check": {"type": ["http", {"path": "/\" }"}]},
            "header": [["X-A", "1"], ["X-B", "2"]],
            "both": ["a", true, 1.5]
        }"#;
        let expected = "both a #true 1.5\n\
            header X-A \"1\"\nheader X-B \"2\"\n\
            health-check {\n    type http {\n        path \"/\\\" }\"\n    }\n}\n\
            protocol h2\n\
            timeouts {\n    connect-secs 2\n}\n";
        assert_eq!(text(json).unwrap(), expected);
        assert_eq!(text("{}").unwrap(), "");
    }

    #[test]
    fn an_unknown_setting_is_refused() {
        let deep = format!("{}1{}", "{\"a\":".repeat(20), "}".repeat(20));
        let large = format!("{{\"a\": {:?}}}", "x".repeat(MAX_BYTES));
        for wrong in [
            "[]",
            "{\"a\": null}",
            "{\"a\": [[null]]}",
            "{\"a b\": 1}",
            "{\"\": 1}",
            "{\"a\": [{}, 1]}",
            "{\"tls\": {}}",
            deep.as_str(),
            large.as_str(),
        ] {
            assert!(text(wrong).is_err(), "{wrong}");
        }
    }
}
