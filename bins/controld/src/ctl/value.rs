//! Conversion of command-line values to the interface's types.

use crate::ctl::error::CtlError;
use crate::ctl::files::from_folder;
use crate::ctl::grammar::{body_id, query_id};
use crate::ctl::operation::{Field, Kind, Operation};
use crate::ctl::settings::text_of;
use clap::ArgMatches;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// Builds the fields of a request body: from `--file`, overridden by flags.
pub(crate) fn fields(
    operation: &Operation,
    matches: &ArgMatches,
) -> Result<Map<String, Value>, CtlError> {
    let mut all = match matches.get_one::<PathBuf>("file") {
        Some(folder) if folder.is_dir() => from_folder(operation, folder)?,
        Some(file) => object(file)?,
        None => Map::new(),
    };
    all.extend(flags(operation.fields().iter(), matches)?);
    let missing = operation.fields().iter();
    let missing = missing.filter(|field| field.required && !all.contains_key(&field.name));
    let missing: Vec<String> = missing
        .map(|field| format!("--{}", field.name.replace('_', "-")))
        .collect();
    if !missing.is_empty() {
        return Err(CtlError::usage(format!("missing: {}", missing.join(", "))));
    }
    Ok(all)
}

/// Builds the fields that are given as flags.
pub(crate) fn flags<'a>(
    fields: impl Iterator<Item = &'a Field>,
    matches: &ArgMatches,
) -> Result<Map<String, Value>, CtlError> {
    let mut given = Map::new();
    for field in fields {
        if let Some(value) = value(field, matches, &body_id(&field.name))? {
            given.insert(field.name.clone(), value);
        }
    }
    Ok(given)
}

/// Builds the query parameters that are given, as texts.
pub(crate) fn parameters(
    operation: &Operation,
    matches: &ArgMatches,
) -> Result<Vec<(String, String)>, CtlError> {
    let mut given = Vec::new();
    for field in operation
        .query
        .iter()
        .filter(|field| field.name != "cursor")
    {
        match value(field, matches, &query_id(&field.name))? {
            None => {}
            Some(Value::String(text)) => given.push((field.name.clone(), text)),
            Some(other) => given.push((field.name.clone(), other.to_string())),
        }
    }
    Ok(given)
}

/// Reads a JSON object from a file.
pub(crate) fn object(file: &Path) -> Result<Map<String, Value>, CtlError> {
    let place = file.display();
    let text = text_of(file)?;
    let value = serde_json::from_str(&text);
    let value = value.map_err(|error| CtlError::usage(format!("{place}: {error}")))?;
    if let Value::Object(object) = value {
        return Ok(object);
    }
    Err(CtlError::usage(format!("{place}: is not a JSON object")))
}

fn value(field: &Field, matches: &ArgMatches, id: &str) -> Result<Option<Value>, CtlError> {
    let given = matches.get_many::<String>(id);
    let given: Vec<&String> = given.into_iter().flatten().collect();
    let Some(last) = given.last() else {
        return Ok(None);
    };
    let wrong = |cause: &str| {
        let flag = field.name.replace('_', "-");
        CtlError::usage(format!("--{flag} {last}: {cause}"))
    };
    let value = match field.kind {
        Kind::Text => Value::String(text(last)?),
        // An empty value is the empty list, not a list with one empty text.
        Kind::Texts if given.iter().all(|given| given.is_empty()) => Value::Array(Vec::new()),
        Kind::Texts => {
            let texts = given.iter().map(|given| Ok(Value::String(text(given)?)));
            Value::Array(texts.collect::<Result<_, CtlError>>()?)
        }
        Kind::Integer => {
            let number: i64 = last.parse().map_err(|_| wrong("is not a whole number"))?;
            number.into()
        }
        Kind::Number => {
            let number: f64 = last.parse().map_err(|_| wrong("is not a number"))?;
            number.into()
        }
        Kind::Boolean => {
            let truth: bool = last
                .parse()
                .map_err(|_| wrong("is neither true nor false"))?;
            truth.into()
        }
        Kind::Json => {
            let text = text(last)?;
            serde_json::from_str(&text).map_err(|error| wrong(&format!("is not JSON: {error}")))?
        }
    };
    Ok(Some(value))
}

/// Replaces `@FILE` by the file's text.
fn text(given: &str) -> Result<String, CtlError> {
    match given.strip_prefix('@') {
        Some(file) => text_of(Path::new(file)),
        None => Ok(given.to_owned()),
    }
}

/// Returns true if `found` has all fields in `wanted`. Other fields of objects are not compared.
/// Numbers, times and identifiers are compared by their values: the interface answers them in one
/// spelling, and accepts others.
pub(crate) fn is_within(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => wanted.iter().all(|(name, value)| {
            let own = found.get(name);
            own.is_some_and(|own| is_within(value, own))
        }),
        (Value::Array(wanted), Value::Array(found)) => {
            let mut pairs = wanted.iter().zip(found);
            wanted.len() == found.len() && pairs.all(|(wanted, found)| is_within(wanted, found))
        }
        // Whole numbers are exact; a fraction such as `1.0` is compared with either kind.
        (Value::Number(wanted), Value::Number(found)) if wanted.is_f64() || found.is_f64() => {
            wanted.as_f64() == found.as_f64()
        }
        (Value::String(wanted), Value::String(found)) => {
            wanted == found || is_same_time(wanted, found) || is_same_id(wanted, found)
        }
        _ => wanted == found,
    }
}

fn is_same_time(wanted: &str, found: &str) -> bool {
    let time = |text: &str| text.parse::<Timestamp>().ok();
    time(wanted).is_some_and(|wanted| Some(wanted) == time(found))
}

fn is_same_id(wanted: &str, found: &str) -> bool {
    let is_hyphenated = |text: &str| text.len() == Hyphenated::LENGTH;
    let id = |text: &str| text.parse::<Uuid>().ok().filter(|_| is_hyphenated(text));
    id(wanted).is_some_and(|wanted| Some(wanted) == id(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn omitted_fields_make_no_difference() {
        let found = json!([{"address": "a:1", "weight": 1}, {"address": "b:1", "weight": 2}]);
        for (wanted, same) in [
            (json!([{"address": "a:1"}, {"address": "b:1"}]), true),
            (json!([{"address": "a:1"}]), false),
            (
                json!([{"address": "a:1"}, {"address": "b:1", "weight": 1}]),
                false,
            ),
            (
                json!([{"address": "a:1"}, {"address": "b:1", "color": 1}]),
                false,
            ),
        ] {
            assert_eq!(is_within(&wanted, &found), same, "{wanted}");
        }
    }

    #[test]
    fn numbers_times_and_ids_are_the_same_in_every_spelling() {
        for (wanted, found, same) in [
            (json!(1.0), json!(1), true),
            (json!(1.5), json!(1), false),
            (
                json!(9_007_199_254_740_993_i64),
                json!(9_007_199_254_740_993_i64),
                true,
            ),
            (
                json!("2026-11-30T09:00:00+01:00"),
                json!("2026-11-30T08:00:00Z"),
                true,
            ),
            (
                json!("2026-11-30T09:00:00Z"),
                json!("2026-11-30T08:00:00Z"),
                false,
            ),
            (
                json!("01900000-0000-7000-8000-00000000ABCD"),
                json!("01900000-0000-7000-8000-00000000abcd"),
                true,
            ),
            (
                json!(9_007_199_254_740_993_i64),
                json!(9_007_199_254_740_992_i64),
                false,
            ),
            (json!("Edge"), json!("edge"), false),
            (json!("1"), json!(1), false),
        ] {
            assert_eq!(is_within(&wanted, &found), same, "{wanted} {found}");
        }
    }
}
