//! Values of settings as text.

use proxy_model::EffectiveSetting;
use proxy_model::registry::{self, Shape, show_size};
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;

/// The kind of each setting's value, by the setting's row of the registry.
#[derive(Debug)]
pub(super) struct Shapes(HashMap<&'static str, Shape>);

impl Shapes {
    pub(super) fn from_registry() -> Self {
        let rows = registry::all().into_iter();
        Self(rows.map(|row| (row.path, row.shape)).collect())
    }

    /// The setting's value with its unit.
    pub(super) fn shown(&self, setting: &EffectiveSetting) -> String {
        let EffectiveSetting {
            path: _,
            row,
            value,
            origin: _,
        } = setting;
        let in_unit = match self.0.get(row) {
            Some(Shape::Size { .. }) => value.as_u64().map(show_size),
            Some(Shape::Time { .. }) => time(value, row.ends_with("-ms")).map(show_time),
            _ => None,
        };
        in_unit.unwrap_or_else(|| plain(value))
    }
}

fn time(value: &Value, in_millis: bool) -> Option<Duration> {
    match (in_millis, value.as_u64()) {
        (true, millis) => millis.map(Duration::from_millis),
        (false, Some(seconds)) => Some(Duration::from_secs(seconds)),
        (false, None) => Duration::try_from_secs_f64(value.as_f64()?).ok(),
    }
}

fn show_time(time: Duration) -> String {
    if time.subsec_nanos() == 0 {
        format!("{}s", time.as_secs())
    } else {
        format!("{}ms", time.as_millis())
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(members) => {
            let members: Vec<String> = members.iter().map(plain).collect();
            members.join(", ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}
