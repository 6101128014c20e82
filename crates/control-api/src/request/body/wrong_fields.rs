//! Finds all invalid fields of a body. A deserializer stops at the first one, so the body is parsed
//! again with that field repaired.

use crate::request::object::Objects;
use crate::response::wording::reworded;
use control_wire::ErrorDetail;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use serde_path_to_error::Segment;

/// Maximum number of invalid fields in a response.
const MAX_FIELDS: usize = 16;
/// Maximum size of a body for which more than the first invalid field is searched: each costs
/// several parses.
const MAX_BYTES: usize = 64 * 1024;

/// The first invalid field that a parse found.
#[derive(Debug)]
pub(crate) struct WrongField {
    detail: ErrorDetail,
    /// Names and indexes on the path to the field; `None` if unknown.
    steps: Option<Vec<Step>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Name(String),
    Position(usize),
}

/// Parses a body; ignores bytes after it.
pub(crate) fn read<T: DeserializeOwned>(
    deserializer: &mut serde_json::Deserializer<serde_json::de::StrRead<'_>>,
) -> Result<T, WrongField> {
    let read = serde_path_to_error::deserialize(Objects(deserializer));
    read.map_err(|error| WrongField::new(error.path(), error.inner()))
}

/// Finds the invalid fields after `first`; returns all of them.
pub(crate) fn all_wrong_fields<T: DeserializeOwned>(
    text: &str,
    first: WrongField,
) -> Vec<ErrorDetail> {
    let mut found = vec![first.detail];
    let Ok(mut body) = serde_json::from_str::<Value>(text) else {
        return found;
    };
    // Parsing from a `Value` visits members in another order, so its first invalid field may
    // differ.
    let mut next = reread::<T>(&body).err();
    let mut repaired: Vec<Vec<Step>> = Vec::new();
    while found.len() < MAX_FIELDS && repaired.len() < 2 * MAX_FIELDS && text.len() <= MAX_BYTES {
        let Some(WrongField {
            detail,
            steps: Some(place),
        }) = next
        else {
            return found;
        };
        // The substitute for an invalid value may itself lack fields, which are not the client's
        // fault.
        let is_below = repaired.iter().any(|outer| place.starts_with(outer));
        if !is_below && found.iter().all(|known| known.field != detail.field) {
            found.push(detail);
        }
        next = repair::<T>(&mut body, &place);
        repaired.push(place);
    }
    found
}

/// Repairs an invalid field by a valid value, and returns the next invalid field; `None` if there
/// is none, or no valid value is known.
fn repair<T: DeserializeOwned>(body: &mut Value, steps: &[Step]) -> Option<WrongField> {
    let before = body.clone();
    let (last, outer) = steps.split_last()?;
    let candidates = [
        Some(json!("")),
        Some(json!("00000000-0000-7000-8000-000000000000")),
        Some(json!("2000-01-01T00:00:00Z")),
        Some(json!(1)),
        Some(json!([])),
        Some(json!({})),
        Some(json!(false)),
        // An unknown field has no valid value.
        None,
    ];
    for candidate in candidates {
        *body = before.clone();
        set_member(body, outer, last, candidate)?;
        match reread::<T>(body) {
            Ok(()) => return None,
            Err(next) if next.steps.as_deref() != Some(steps) => return Some(next),
            Err(_) => {}
        }
    }
    None
}

/// Sets or removes a member of the value at the path `outer`.
fn set_member(body: &mut Value, outer: &[Step], last: &Step, value: Option<Value>) -> Option<()> {
    let mut place = body;
    for step in outer {
        place = match step {
            Step::Name(name) => place.get_mut(name)?,
            Step::Position(at) => place.get_mut(at)?,
        };
    }
    match (last, value) {
        (Step::Name(name), Some(value)) => {
            place.as_object_mut()?.insert(name.clone(), value);
        }
        (Step::Name(name), None) => {
            place
                .as_object_mut()
                .and_then(|all: &mut Map<_, _>| all.remove(name));
        }
        (Step::Position(at), Some(value)) => *place.get_mut(at)? = value,
        (Step::Position(at), None) => {
            let list = place.as_array_mut()?;
            (*at < list.len()).then(|| list.remove(*at))?;
        }
    }
    Some(())
}

fn reread<T: DeserializeOwned>(body: &Value) -> Result<(), WrongField> {
    let text = body.to_string();
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    read::<T>(&mut deserializer).map(drop)
}

impl WrongField {
    fn new(path: &serde_path_to_error::Path, error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let reason = match text.split(" at line ").next().unwrap_or_default() {
            "trailing characters" => "has more elements than it may",
            "expected value" => "is of a wrong type",
            reason => reason,
        };
        // Only the message names a missing or unknown field, between backticks.
        let named = reason
            .split('`')
            .nth(1)
            .filter(|_| reason.contains(" field `"));
        // After a duplicate name, the last step of the path has no name.
        let shown = path.to_string();
        let shown = shown.strip_suffix('?').unwrap_or(&shown);
        let shown = shown.strip_suffix('.').unwrap_or(shown);
        let field = match (shown, named) {
            ("", Some(name)) => name.to_owned(),
            ("", None) => "body".to_owned(),
            (shown, Some(name)) if !shown.ends_with(name) => format!("{shown}.{name}"),
            (shown, _) => shown.to_owned(),
        };
        let mut steps: Option<Vec<Step>> = path.iter().map(Step::new).collect();
        if let (Some(steps), Some(name)) = (&mut steps, named) {
            let own = Step::Name(name.to_owned());
            if steps.last() != Some(&own) {
                steps.push(own);
            }
        }
        let reason = reworded(reason);
        Self {
            detail: ErrorDetail { field, reason },
            steps,
        }
    }
}

impl Step {
    fn new(segment: &Segment) -> Option<Self> {
        match segment {
            Segment::Map { key } => Some(Self::Name(key.clone())),
            Segment::Seq { index } => Some(Self::Position(*index)),
            Segment::Enum { .. } | Segment::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::request::body::decode;
    use control_wire::HeartbeatRequest;

    fn fields(text: &str) -> Vec<String> {
        let problem = decode::<HeartbeatRequest>(text.as_bytes()).unwrap_err();
        let fields = problem.details().iter();
        fields.map(|detail| detail.field.clone()).collect()
    }

    #[test]
    fn every_wrong_field_of_a_body_is_reported() {
        for (text, expected) in [
            (
                r#"{"wrong": 1, "version": 2}"#,
                vec!["wrong", "version", "health"],
            ),
            (
                r#"{"health": {"cpu_percent": "x", "more": 1}, "status": {"order": -1, "verdict": 1}}"#,
                vec![
                    "health.cpu_percent",
                    "health.more",
                    "status.order",
                    "status.verdict",
                ],
            ),
            (
                r#"{"health": {}, "instance": "x"}"#,
                vec!["health.cpu_percent", "instance"],
            ),
            ("[]", vec!["body"]),
        ] {
            assert_eq!(fields(text), expected, "{text}");
        }
        // Their number is bounded.
        let many: Vec<String> = (0..100).map(|at| format!("\"w{at}\": 1")).collect();
        assert_eq!(fields(&format!("{{{}}}", many.join(","))).len(), 16);
    }
}
