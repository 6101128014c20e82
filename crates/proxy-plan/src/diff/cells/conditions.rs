//! The methods, header fields and query parameters of requests, divided by the conditions of
//! routes.

use http::header::HeaderValue;
use http::{HeaderMap, HeaderName, Method};
use proxy_model::{redacted_field, redacted_parameter};
use proxy_routing::{QueryCondition, Rule};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A value that represents all values not named by a condition.
const OTHER_VALUE: &str = "other";
/// Methods that represent all methods not named by a condition, in order of preference.
const OTHER_METHODS: [&str; 8] = [
    "GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "OTHER",
];
/// Maximum number of values of one field for which all combinations are tried; above it, each alone
/// and all together.
const MAX_COMBINED_VALUES: usize = 5;

/// A part of a request that conditions name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// The method.
    Method,
    /// The header field with this name, in lower case.
    Header(String),
    /// The query parameter with this name.
    Query(String),
}

/// The state of a field, as distinguished by conditions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldState {
    /// The request does not have the field.
    Absent,
    /// None of the values named by conditions.
    Other,
    /// The named values in one request, each in its own line.
    Values(Vec<String>),
}

/// A field and the states of it that a region includes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldStates {
    /// Field that the conditions compare.
    pub field: Field,
    /// States that the conditions distinguish.
    pub states: Vec<FieldState>,
    /// The values that conditions name.
    pub(in crate::diff) named: Vec<String>,
}

/// All states of a field.
#[derive(Clone, Debug)]
pub(in crate::diff) struct Axis {
    pub(in crate::diff) field: Field,
    pub(in crate::diff) named: Vec<String>,
    pub(in crate::diff) states: Vec<FieldState>,
    /// Some combinations of values are left out of the states.
    pub(in crate::diff) is_cut: bool,
}

/// The axes of the conditions of `rules`, in the order method, headers, query parameters.
pub(in crate::diff) fn axes<'r>(rules: impl Iterator<Item = &'r Rule>) -> Vec<Axis> {
    let mut methods: BTreeSet<String> = BTreeSet::new();
    let mut fields: BTreeMap<Field, BTreeSet<String>> = BTreeMap::new();
    for rule in rules {
        methods.extend(rule.methods.iter().map(ToString::to_string));
        for header in &rule.headers {
            let values = fields
                .entry(Field::Header(header.name().to_string()))
                .or_default();
            let value = header.value().and_then(|value| value.to_str().ok());
            values.extend(value.map(str::to_owned));
        }
        for parameter in &rule.query_params {
            let values = fields
                .entry(Field::Query(parameter.name().to_owned()))
                .or_default();
            values.extend(parameter.value().map(str::to_owned));
        }
    }
    // CONNECT is refused before routing.
    methods.remove(Method::CONNECT.as_str());
    let method = (!methods.is_empty()).then(|| method_axis(methods));
    let fields = fields
        .into_iter()
        .map(|(field, named)| field_axis(field, named));
    method.into_iter().chain(fields).collect()
}

/// The method alone, for `OPTIONS *`.
pub(in crate::diff) fn options_axis() -> Axis {
    let named = vec![Method::OPTIONS.to_string()];
    Axis {
        field: Field::Method,
        states: vec![FieldState::Values(named.clone())],
        named,
        is_cut: false,
    }
}

fn method_axis(methods: BTreeSet<String>) -> Axis {
    let named: Vec<String> = methods.into_iter().collect();
    let states = named
        .iter()
        .map(|method| FieldState::Values(vec![method.clone()]));
    Axis {
        field: Field::Method,
        states: states.chain([FieldState::Other]).collect(),
        named,
        is_cut: false,
    }
}

fn field_axis(field: Field, named: BTreeSet<String>) -> Axis {
    let named: Vec<String> = named.into_iter().collect();
    let is_cut = MAX_COMBINED_VALUES < named.len();
    let mut states = vec![FieldState::Absent, FieldState::Other];
    if is_cut {
        states.extend(
            named
                .iter()
                .map(|value| FieldState::Values(vec![value.clone()])),
        );
        states.push(FieldState::Values(named.clone()));
    } else {
        let sets = 1_u32..(1 << named.len());
        states.extend(sets.map(|set| {
            let chosen = named.iter().enumerate();
            let chosen = chosen.filter(|(bit, _)| set & (1 << bit) != 0);
            FieldState::Values(chosen.map(|(_, value)| value.clone()).collect())
        }));
    }
    Axis {
        field,
        named,
        states,
        is_cut,
    }
}

/// A method that represents all except the `named` ones.
pub(in crate::diff) fn other_method(named: &[String]) -> &'static str {
    let mut methods = OTHER_METHODS.into_iter();
    let other = methods.find(|method| named.iter().all(|one| one != method));
    other.unwrap_or("OTHER-METHOD")
}

/// A value that represents all except the `named` ones.
fn other_value(named: &[String]) -> String {
    let mut value = OTHER_VALUE.to_owned();
    while named.contains(&value) {
        value.push_str("-value");
    }
    value
}

pub(in crate::diff) fn lines(state: &FieldState, named: &[String]) -> Vec<String> {
    match state {
        FieldState::Absent => Vec::new(),
        FieldState::Other => vec![other_value(named)],
        FieldState::Values(values) => values.clone(),
    }
}

impl FieldStates {
    /// Returns true if the field of a request is in one of the states.
    #[must_use]
    pub fn holds(&self, method: &Method, query: &str, headers: &HeaderMap) -> bool {
        self.states.contains(&self.state(method, query, headers))
    }

    fn state(&self, method: &Method, query: &str, headers: &HeaderMap) -> FieldState {
        let has_value = |value: &str| match &self.field {
            Field::Method => method.as_str() == value,
            Field::Header(name) => headers
                .get_all(name.as_str())
                .iter()
                .any(|line| line == value),
            Field::Query(name) => {
                QueryCondition::equals(name, value).is_ok_and(|one| one.holds(query))
            }
        };
        let is_present = match &self.field {
            Field::Method => true,
            Field::Header(name) => headers.contains_key(name.as_str()),
            Field::Query(name) => QueryCondition::present(name).is_ok_and(|one| one.holds(query)),
        };
        if !is_present {
            return FieldState::Absent;
        }
        let values = self.named.iter().filter(|value| has_value(value));
        let values: Vec<String> = values.cloned().collect();
        if values.is_empty() {
            FieldState::Other
        } else {
            FieldState::Values(values)
        }
    }

    fn shown(&self, state: &FieldState) -> String {
        match (&self.field, state) {
            (Field::Method, FieldState::Values(values)) => {
                format!("method {}", values.join(" and "))
            }
            (Field::Method, FieldState::Absent | FieldState::Other) => {
                format!("no method of {}", self.named.join(", "))
            }
            (Field::Header(name), FieldState::Absent) => format!("no header {name}"),
            (Field::Header(name), FieldState::Other) => {
                format!("header {name} with {}", self.unnamed())
            }
            (Field::Header(name), FieldState::Values(values)) => {
                let values = values.iter().map(|value| shown_header(name, value));
                format!("header {}", values.collect::<Vec<_>>().join(" and "))
            }
            (Field::Query(name), FieldState::Absent) => format!("no query-param {name}"),
            (Field::Query(name), FieldState::Other) => {
                format!("query-param {name} with {}", self.unnamed())
            }
            (Field::Query(name), FieldState::Values(values)) => {
                let values = values.iter().map(|value| shown_parameter(name, value));
                format!("query-param {}", values.collect::<Vec<_>>().join(" and "))
            }
        }
    }

    fn unnamed(&self) -> &'static str {
        if self.named.is_empty() {
            "any value"
        } else {
            "another value"
        }
    }
}

/// A header field, with the value redacted if the name is a secret's.
pub(crate) fn shown_header(name: &str, value: &str) -> String {
    let field = HeaderName::from_bytes(name.as_bytes()).ok();
    let field = field.zip(HeaderValue::from_str(value).ok());
    let shown = field.map(|(name, value)| redacted_field(&name, &value));
    shown.unwrap_or_else(|| name.to_owned())
}

fn shown_parameter(name: &str, value: &str) -> String {
    let shown = QueryCondition::equals(name, value).map(|one| redacted_parameter(&one));
    shown.unwrap_or_else(|_| name.to_owned())
}

impl fmt::Display for FieldStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let states: Vec<String> = self.states.iter().map(|state| self.shown(state)).collect();
        f.write_str(&states.join(" or "))
    }
}
