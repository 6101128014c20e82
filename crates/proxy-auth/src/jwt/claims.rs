//! Claims of a verified token.

use serde_json::{Map, Value};

/// Claims of a verified token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenClaims(Map<String, Value>);

impl TokenClaims {
    pub(super) const fn new(claims: Map<String, Value>) -> Self {
        Self(claims)
    }

    /// Claims with these texts; those with the same name are a list.
    pub fn from_texts<'a>(claims: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut map = Map::new();
        for (name, text) in claims {
            let value = match map.remove(name) {
                None => text.into(),
                Some(Value::Array(mut list)) => {
                    list.push(text.into());
                    list.into()
                }
                Some(one) => vec![one, text.into()].into(),
            };
            map.insert(name.to_owned(), value);
        }
        Self(map)
    }

    /// The claim `name`. A name with dots that is not a claim itself is a path into objects:
    /// `realm_access.roles`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        if let Some(claim) = self.0.get(name) {
            return Some(claim);
        }
        let (first, rest) = name.split_once('.')?;
        let mut steps = rest.split('.');
        steps.try_fold(self.0.get(first)?, |value, step| value.get(step))
    }

    /// The claim `name` if it is a text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// Returns true if the claim is `wanted`, as text, number or boolean, or a list that contains
    /// it.
    #[must_use]
    pub fn has(&self, name: &str, wanted: &str) -> bool {
        let is_wanted = |value: &Value| match value {
            Value::String(text) => text == wanted,
            Value::Number(number) => number.to_string().as_str() == wanted,
            Value::Bool(flag) => wanted == if *flag { "true" } else { "false" },
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        };
        match self.get(name) {
            Some(Value::Array(list)) => list.iter().any(is_wanted),
            Some(value) => is_wanted(value),
            None => false,
        }
    }

    /// Returns true if `scope` has `wanted` among its words [RFC 8693 §4.2], or `scp`, a text or a
    /// list, does.
    #[must_use]
    pub fn has_scope(&self, wanted: &str) -> bool {
        let has = |name: &str| match self.0.get(name) {
            Some(Value::String(words)) => words.split(' ').any(|word| word == wanted),
            Some(Value::Array(list)) => list.iter().any(|word| word == wanted),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
                false
            }
        };
        has("scope") || has("scp")
    }

    /// The claim as the value of a header field: texts, numbers and booleans unchanged, lists
    /// separated by commas.
    ///
    /// # Errors
    /// The claim is an object, has control characters or white space at its ends, or is a list with an
    /// element that has a comma: an upstream would read something else.
    pub fn field_value(&self, name: &str) -> Result<Option<String>, UnfitClaim> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(list)) => {
                let elements: Result<Vec<String>, UnfitClaim> = list.iter().map(element).collect();
                Ok(Some(elements?.join(",")))
            }
            Some(value) => scalar(value).map(Some),
        }
    }
}

/// A claim that no header field can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfitClaim;

fn element(value: &Value) -> Result<String, UnfitClaim> {
    let text = scalar(value)?;
    (!text.contains(',')).then_some(text).ok_or(UnfitClaim)
}

fn scalar(value: &Value) -> Result<String, UnfitClaim> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return Err(UnfitClaim),
    };
    let is_plain = !text.chars().any(char::is_control) && text.trim() == text;
    is_plain.then_some(text).ok_or(UnfitClaim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claims(json: &Value) -> TokenClaims {
        TokenClaims(json.as_object().cloned().unwrap_or_default())
    }

    #[test]
    fn a_field_never_carries_a_claim_that_would_be_read_as_another() {
        let claims = claims(&json!({
            "sub": "ann", "n": 7, "yes": true, "none": null,
            "roles": ["a", "b"], "empty": [],
            "tricky": ["a,root"], "spaced": [" a"], "padded": "ann ", "nested": [["a"]],
            "lines": "a\r\nX-Admin: 1", "object": {"a": 1},
            "realm": {"roles": ["ops"], "deep": {"er": "x"}}, "a.b": "dotted", "a": {"b": "path"},
        }));
        let field = |name: &str| claims.field_value(name);
        let is = |text: &str| Ok(Some(text.to_owned()));

        for (name, expected) in [
            ("sub", is("ann")),
            ("n", is("7")),
            ("yes", is("true")),
            ("none", Ok(None)),
            ("missing", Ok(None)),
            ("roles", is("a,b")),
            ("empty", is("")),
            ("tricky", Err(UnfitClaim)),
            ("spaced", Err(UnfitClaim)),
            ("padded", Err(UnfitClaim)),
            ("nested", Err(UnfitClaim)),
            ("lines", Err(UnfitClaim)),
            ("object", Err(UnfitClaim)),
            ("realm.roles", is("ops")),
            ("realm.deep.er", is("x")),
            ("realm.none", Ok(None)),
            ("a.b", is("dotted")),
        ] {
            assert_eq!(field(name), expected, "{name}");
        }
    }

    #[test]
    fn scopes_are_whole_words() {
        let claims = claims(&json!({"scope": "orders:read orders", "scp": ["mail"]}));

        for (wanted, has) in [
            ("orders", true),
            ("orders:read", true),
            ("mail", true),
            ("order", false),
            ("", false),
            ("orders:read orders", false),
        ] {
            assert_eq!(claims.has_scope(wanted), has, "{wanted:?}");
        }
        assert!(!claims.has("scope", "orders"), "claims are compared whole");
    }

    #[test]
    fn repeated_texts_are_a_list() {
        let claims = TokenClaims::from_texts([("r", "a"), ("r", "b"), ("r", "c"), ("sub", "x")]);

        assert_eq!(claims.field_value("r"), Ok(Some("a,b,c".to_owned())));
        assert!(claims.has("r", "b") && claims.has("sub", "x") && !claims.has("r", "x"));
    }
}
