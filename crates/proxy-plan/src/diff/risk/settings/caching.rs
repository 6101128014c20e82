//! The risk of responses that more requests share.

use super::values::{Classified, added, instead, missing, number};
use crate::diff::parts::Change;
use crate::diff::risk::class::RiskClass;
use crate::diff::setting_change::SettingChange;
use proxy_model::registry::policies::cache;
use serde_json::Value;

pub(super) fn risk(change: &SettingChange) -> Classified {
    let row = change.row;
    let is_wider = if row == cache::STATUSES.path {
        let before = items(&change.before);
        items(&change.after).any(|status| !before.clone().any(|known| known == status))
    } else if row == cache::IGNORE_QUERY.path {
        !added(change).is_empty()
    } else if row == cache::KEY_HEADERS.path {
        !missing(change).is_empty()
    } else if row == cache::TTL.path || row == cache::HEURISTIC.path {
        number(&change.before).unwrap_or(0.0) < number(&change.after).unwrap_or(0.0)
    } else {
        false
    };
    let is_new = row == cache::STATUSES.path && change.change == Change::Added;
    let text = if is_new {
        "stores responses".to_owned()
    } else {
        format!("stored responses: {}", instead(change))
    };
    is_wider.then_some((RiskClass::ResponsesShared, text))
}

/// The values, with those of lists in place of the lists.
fn items(values: &[Value]) -> impl Iterator<Item = &Value> + Clone {
    values.iter().flat_map(|value| match value.as_array() {
        Some(list) => list.as_slice(),
        None => std::slice::from_ref(value),
    })
}
