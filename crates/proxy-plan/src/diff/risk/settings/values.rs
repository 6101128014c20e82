//! Values of a changed setting, as risks compare and show them.

use crate::diff::parts::Change;
use crate::diff::risk::class::RiskClass;
use crate::diff::setting_change::SettingChange;
use proxy_model::Route;
use serde_json::Value;

/// A class, and the change as a sentence without its full stop.
pub(super) type Classified = Option<(RiskClass, String)>;

/// The routes before and after that a setting belongs to.
pub(super) type Routes<'m> = [Option<&'m Route>; 2];

/// Values that the change removes, as text.
pub(super) fn missing(change: &SettingChange) -> Vec<String> {
    let gone = change
        .before
        .iter()
        .filter(|value| !change.after.contains(value));
    gone.map(text).collect()
}

/// Values that the change adds, as text.
pub(super) fn added(change: &SettingChange) -> Vec<String> {
    let new = change
        .after
        .iter()
        .filter(|value| !change.before.contains(value));
    new.map(text).collect()
}

pub(super) fn becomes(change: &SettingChange, word: &str) -> bool {
    change.change != Change::Removed && texts(&change.after).iter().any(|value| value == word)
}

pub(super) fn becomes_true(change: &SettingChange) -> bool {
    change.after.contains(&Value::Bool(true))
}

pub(super) fn number(values: &[Value]) -> Option<f64> {
    values.first()?.as_f64()
}

pub(super) fn texts(values: &[Value]) -> Vec<String> {
    values.iter().map(text).collect()
}

fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}

pub(super) fn shown(values: &[Value]) -> String {
    if values.is_empty() {
        return "none".to_owned();
    }
    texts(values).join(", ")
}

pub(super) fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// The path of the setting with both of its values: "`routes.route["a"].priority` is 1 instead of
/// 2".
pub(super) fn instead(change: &SettingChange) -> String {
    let (after, before) = (shown(&change.after), shown(&change.before));
    if after == before {
        // The difference is in a part that is redacted.
        return format!("`{}` has another value", change.path);
    }
    format!("`{}` is {after} instead of {before}", change.path)
}
