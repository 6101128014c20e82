//! The risk of responses that more requests share, and of requests that stored responses no longer
//! answer.

use super::values::{Classified, Routes, added, becomes_true, instead, listed, missing, number};
use crate::diff::parts::Change;
use crate::diff::risk::class::RiskClass;
use crate::diff::setting_change::SettingChange;
use proxy_model::registry::policies::cache;
use serde_json::Value;

/// Minimum age in seconds of stale responses that is a risk: one day.
const LONG_STALE: f64 = 86_400.0;

/// Minimum factor of a risky decrease in memory or lifetime of stored responses: the
/// upstream gets many more requests.
const RISKY_DECREASE: f64 = 4.0;

/// Request fields with a value for each client: as a part of the key, they leave hardly any
/// response to share.
const PERSONAL: [&str; 8] = [
    "authorization",
    "cookie",
    "referer",
    "traceparent",
    "user-agent",
    "x-correlation-id",
    "x-forwarded-for",
    "x-request-id",
];

pub(super) fn risk(change: &SettingChange, [_, after]: Routes<'_>) -> Classified {
    let is_gone = after.is_some_and(|route| route.policies.cache.is_none());
    if is_gone {
        // Reported once, for one of the block's settings.
        return (change.row == cache::STATUSES.path).then(|| {
            let text = "no longer stores responses: its upstream gets each request".to_owned();
            (RiskClass::LimitRemoved, text)
        });
    }
    shared(change).or_else(|| forwarded(change))
}

/// The risk of responses that more requests get.
fn shared(change: &SettingChange) -> Classified {
    let row = change.row;
    let [before, after] = [&change.before, &change.after].map(|one| number(one).unwrap_or(0.0));
    let is_wider = if row == cache::STATUSES.path {
        let before = items(&change.before);
        items(&change.after).any(|status| !before.clone().any(|known| known == status))
    } else if row == cache::IGNORE_QUERY.path {
        !added(change).is_empty()
    } else if row == cache::KEY_HEADERS.path {
        !missing(change).is_empty()
    } else if row == cache::TTL.path || row == cache::HEURISTIC.path {
        before < after
    } else if [
        cache::STALE_IF_ERROR.path,
        cache::STALE_WHILE_REVALIDATE.path,
    ]
    .contains(&row)
    {
        before < after && LONG_STALE <= after
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

/// The risk of an upstream that gets requests which stored responses answered.
fn forwarded(change: &SettingChange) -> Classified {
    let row = change.row;
    let [before, after] = [&change.before, &change.after].map(|one| number(one).unwrap_or(0.0));
    let falls = || change.change != Change::Added && after * RISKY_DECREASE <= before;
    let personal: Vec<String> = added(change)
        .into_iter()
        .filter(|name| PERSONAL.contains(&name.to_ascii_lowercase().as_str()))
        .collect();
    let text = if row == cache::KEY_HEADERS.path && !personal.is_empty() {
        format!(
            "stores a response for each value of {}: its upstream gets most requests",
            listed(&personal)
        )
    } else if row == cache::CLIENT_DIRECTIVES.path
        && change.change == Change::Changed
        && becomes_true(change)
    {
        "each client may have stored responses fetched again".to_owned()
    } else if row == cache::COLLAPSE.path && change.change == Change::Changed && after == 0.0 {
        "equal requests at the same time are all forwarded".to_owned()
    } else if [
        cache::TTL.path,
        cache::MAX_BYTES.path,
        cache::MAX_OBJECT_BYTES.path,
    ]
    .contains(&row)
        && falls()
    {
        format!("fewer requests get a stored response: {}", instead(change))
    } else {
        return None;
    };
    Some((RiskClass::LimitRemoved, text))
}

/// The values, with each list replaced by its items.
fn items(values: &[Value]) -> impl Iterator<Item = &Value> + Clone {
    values.iter().flat_map(|value| match value.as_array() {
        Some(list) => list.as_slice(),
        None => std::slice::from_ref(value),
    })
}
