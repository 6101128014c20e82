//! The `OpenAPI` document, parsed for both renderings of the reference.

use serde_json::Value;

/// The parsed document.
#[derive(Debug)]
pub(super) struct Reference {
    pub(super) title: String,
    pub(super) about: String,
    pub(super) groups: Vec<Group>,
    pub(super) schemas: Vec<Schema>,
}

/// The operations on one kind of resource.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) operations: Vec<Operation>,
}

#[derive(Debug)]
pub(super) struct Operation {
    pub(super) id: String,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) about: String,
    /// Description of the access rule.
    pub(super) access: String,
    pub(super) parameters: Vec<Field>,
    pub(super) body: Option<Kind>,
    pub(super) answers: Vec<Answer>,
}

/// A status that an operation may return.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: String,
    pub(super) about: String,
    pub(super) body: Option<Kind>,
}

/// A parameter, or a property of a schema.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    /// `path`, `query` or `header`; empty for a property.
    pub(super) place: String,
    pub(super) kind: Kind,
    pub(super) required: bool,
    pub(super) about: String,
}

/// Description of a type, and the schema that it refers to.
#[derive(Debug, Default)]
pub(super) struct Kind {
    pub(super) words: String,
    pub(super) schema: Option<String>,
}

/// A named type.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) fields: Vec<Field>,
    /// Permitted values of an enumeration.
    pub(super) values: Vec<String>,
}

impl Reference {
    pub(super) fn read(document: &Value) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for (path, item) in members(document, "/paths") {
            for (method, described) in item.as_object().into_iter().flatten() {
                let operation = Operation::read(path, method, described);
                let tag = described.pointer("/tags/0").and_then(Value::as_str);
                let tag = tag.unwrap_or("other");
                match groups.iter_mut().find(|group| group.name == tag) {
                    Some(group) => group.operations.push(operation),
                    None => groups.push(Group {
                        name: tag.to_owned(),
                        operations: vec![operation],
                    }),
                }
            }
        }
        let schemas = members(document, "/components/schemas");
        Self {
            title: text(document, "/info/title"),
            about: text(document, "/info/description"),
            groups,
            schemas: schemas
                .map(|(name, schema)| Schema::read(name, schema))
                .collect(),
        }
    }
}

impl Operation {
    fn read(path: &str, method: &str, described: &Value) -> Self {
        let summary = text(described, "/summary");
        let parameters = described.get("parameters").and_then(Value::as_array);
        let body = described.pointer("/requestBody");
        Self {
            id: text(described, "/operationId"),
            method: method.to_uppercase(),
            path: path.to_owned(),
            about: if summary.is_empty() {
                text(described, "/description")
            } else {
                summary
            },
            access: text(described, "/x-access"),
            parameters: parameters.into_iter().flatten().map(parameter).collect(),
            body: body.and_then(content),
            answers: members(described, "/responses")
                .map(|(status, answer)| Answer {
                    status: status.clone(),
                    about: text(answer, "/description"),
                    body: content(answer),
                })
                .collect(),
        }
    }
}

impl Schema {
    fn read(name: &str, schema: &Value) -> Self {
        let mut fields = Vec::new();
        collect_fields(schema, &mut fields);
        let values = schema.get("enum").and_then(Value::as_array);
        Self {
            name: name.to_owned(),
            about: text(schema, "/description"),
            fields,
            values: values.into_iter().flatten().map(plain).collect(),
        }
    }
}

/// Collects the properties of an object, including those of each part of a combination.
fn collect_fields(schema: &Value, fields: &mut Vec<Field>) {
    let required = schema.get("required").and_then(Value::as_array);
    for (name, property) in members(schema, "/properties") {
        let mut names = required.into_iter().flatten();
        fields.push(Field {
            name: name.clone(),
            place: String::new(),
            kind: kind(property),
            required: names.any(|one| one == name),
            about: text(property, "/description"),
        });
    }
    for combination in ["allOf", "oneOf"] {
        let parts = schema.get(combination).and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            collect_fields(part, fields);
        }
    }
}

fn parameter(parameter: &Value) -> Field {
    let required = parameter.get("required").and_then(Value::as_bool);
    Field {
        name: text(parameter, "/name"),
        place: text(parameter, "/in"),
        kind: parameter.get("schema").map(kind).unwrap_or_default(),
        required: required.unwrap_or(false),
        about: text(parameter, "/description"),
    }
}

/// Type of a body; includes the media type unless it is JSON.
fn content(holder: &Value) -> Option<Kind> {
    let kinds = holder.get("content")?.as_object()?;
    let (media, described) = kinds.iter().next()?;
    let mut found = described.get("schema").map(kind).unwrap_or_default();
    if media != "application/json" {
        found.words = format!("{media}: {}", found.words);
    }
    Some(found)
}

fn kind(schema: &Value) -> Kind {
    let referred = schema.get("$ref").and_then(Value::as_str);
    if let Some(name) = referred.and_then(|pointer| pointer.rsplit('/').next()) {
        return Kind {
            words: String::new(),
            schema: Some(name.to_owned()),
        };
    }
    let choices = schema.get("oneOf").or(schema.get("anyOf"));
    let choices = choices.and_then(Value::as_array);
    let mut other = choices.into_iter().flatten();
    if let Some(choice) = other.find(|one| types(one) != ["null"]) {
        return kind(choice);
    }
    if let Some(items) = schema.get("items") {
        let Kind { words, schema } = kind(items);
        let words = format!("list of {words}");
        return Kind { words, schema };
    }
    let mut words: Vec<String> = types(schema).into_iter().map(str::to_owned).collect();
    words.retain(|word| word != "null");
    let mut words = words.join(" or ");
    let format = text(schema, "/format");
    if !format.is_empty() {
        words.extend([" (", &format, ")"]);
    }
    words.push_str(&bounds(schema));
    Kind {
        words,
        schema: None,
    }
}

fn bounds(schema: &Value) -> String {
    let bound = |names: [&str; 2]| {
        let mut found = names.iter().filter_map(|name| schema.get(*name));
        found.next().map(plain)
    };
    match (
        bound(["minimum", "minLength"]),
        bound(["maximum", "maxLength"]),
    ) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least), None) => format!(", {least} or more"),
        (None, Some(most)) => format!(", at most {most}"),
        (None, None) => String::new(),
    }
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn members<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let found = value.pointer(pointer).and_then(Value::as_object);
    found.into_iter().flatten()
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).map(plain).unwrap_or_default()
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
