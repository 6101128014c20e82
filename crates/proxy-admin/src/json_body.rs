//! Parser for JSON objects in request bodies, which refuses duplicate names.

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::{Map, Value};
use std::fmt;

/// Parses `body` as an object, and returns its members.
///
/// # Errors
/// `body` is not JSON, not an object, or has duplicate names in an object at any depth. Parsers
/// disagree about the value of a duplicate, so a gateway may have checked another one.
pub(crate) fn parse_members(body: &[u8]) -> Result<Map<String, Value>, String> {
    let Members(members) = serde_json::from_slice(body).map_err(|error| {
        let what = match error.classify() {
            Category::Data => "cannot be used",
            Category::Syntax | Category::Eof | Category::Io => "is not JSON",
        };
        format!("the body {what}: {error}")
    })?;
    Ok(members)
}

/// JSON object without duplicate names.
struct Members(Map<String, Value>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Members, A::Error> {
        read_members(access).map(Members)
    }
}

/// Parses a value of any type; refuses duplicate names in nested objects.
struct AnyValue;

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = access.next_element_seed(Self)? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Value, A::Error> {
        read_members(access).map(Value::Object)
    }
}

fn read_members<'de, A: MapAccess<'de>>(mut access: A) -> Result<Map<String, Value>, A::Error> {
    let mut members = Map::new();
    while let Some(name) = access.next_key::<String>()? {
        if members.contains_key(&name) {
            return Err(A::Error::custom(format!("`{name}` is set twice")));
        }
        members.insert(name, access.next_value_seed(AnyValue)?);
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_json_value_is_parsed() {
        let text =
            r#"{"a": [null, true, -1, 18446744073709551615, 1.5, "x\u0041"], "b": {"a": {}}}"#;
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            parse_members(text.as_bytes()).map(Value::Object),
            Ok(expected)
        );
    }

    #[test]
    fn a_name_that_an_inner_object_has_twice_is_refused() {
        let refused = parse_members(br#"{"a": [{"b": 1, "b": 2}]}"#).unwrap_err();
        let message = "the body cannot be used: `b` is set twice at line 1 column 19";
        assert_eq!(refused, message);
    }
}
