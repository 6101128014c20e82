//! The risk of other header edits.

use super::values::{Classified, instead, listed, missing, texts};
use crate::diff::parts::Change;
use crate::diff::risk::class::RiskClass;
use crate::diff::setting_change::SettingChange;
use proxy_model::registry::{listeners, policies};
use serde_json::Value;

/// Fields that decide on reading, storing and running a response, or which site and client a request is of.
const DECIDING: [&str; 39] = [
    "accept",
    "accept-language",
    "access-control-allow-credentials",
    "access-control-allow-origin",
    "alt-svc",
    "authorization",
    "cache-control",
    "clear-site-data",
    "content-disposition",
    "content-encoding",
    "content-security-policy",
    "content-type",
    "cookie",
    "cross-origin-opener-policy",
    "etag",
    "expires",
    "forwarded",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "location",
    "origin",
    "permissions-policy",
    "range",
    "referrer-policy",
    "refresh",
    "set-cookie",
    "strict-transport-security",
    "surrogate-control",
    "vary",
    "www-authenticate",
    "x-content-type-options",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-frame-options",
    "x-real-ip",
];

/// Fields of them that protect a page by being set, and break none that is served correctly.
const PROTECTING: [&str; 2] = ["referrer-policy", "x-content-type-options"];

pub(super) fn risk(change: &SettingChange) -> Classified {
    let row = change.row;
    if row == listeners::EXPOSE_REASONS.path && change.after.contains(&Value::Bool(true)) {
        let text = "responses name the reason of an error".to_owned();
        return Some((RiskClass::InnerHeaderExposed, text));
    }
    if row == listeners::VIA.path {
        let text = format!(
            "upstreams that compress no response to requests with `Via` do so no more, or again: {}",
            instead(change)
        );
        return Some((RiskClass::HeadersChanged, text));
    }
    if row == policies::RESPONSE_PRESET.path {
        let class = match change.change {
            Change::Added => RiskClass::HeadersChanged,
            Change::Removed | Change::Changed => RiskClass::HeaderEditRemoved,
        };
        return Some((class, instead(change)));
    }
    let removals = [
        policies::REMOVE_REQUEST.path,
        policies::REMOVE_RESPONSE.path,
    ];
    let values = [
        policies::SET_REQUEST.path,
        policies::ADD_REQUEST.path,
        policies::SET_RESPONSE.path,
        policies::ADD_RESPONSE.path,
    ];
    if !removals.contains(&row) && !values.contains(&row) {
        return None;
    }
    if row == policies::REMOVE_RESPONSE.path && !missing(change).is_empty() {
        let text = format!(
            "no longer removes from responses: {}",
            listed(&missing(change))
        );
        return Some((RiskClass::InnerHeaderExposed, text));
    }
    let (_, edit) = row.rsplit_once('.')?;
    let (before, after) = (names(&change.before), names(&change.after));
    let without = |names: &[String], others: &[String]| -> Vec<String> {
        let left = names.iter().filter(|name| !others.contains(name));
        left.cloned().collect()
    };
    let gone = without(&before, &after);
    if !gone.is_empty() {
        let text = format!("no longer has `{edit}` of {}", listed(&gone));
        return Some((RiskClass::HeaderEditRemoved, text));
    }
    let new = without(&after, &before);
    let deciding: Vec<String> = { new.iter() }
        .filter(|name| {
            let name = name.to_ascii_lowercase();
            let is_protection = values.contains(&row) && PROTECTING.contains(&name.as_str());
            DECIDING.contains(&name.as_str()) && !is_protection
        })
        .cloned()
        .collect();
    if !deciding.is_empty() {
        let text = format!("has a new `{edit}` of {}", listed(&deciding));
        return Some((RiskClass::HeadersChanged, text));
    }
    // With the same names, a value differs, which may be redacted.
    let is_value = values.contains(&row) && (new.is_empty() || !missing(change).is_empty());
    is_value.then(|| {
        (
            RiskClass::HeadersChanged,
            format!("another value in `{edit}`: {}", instead(change)),
        )
    })
}

/// Names of header fields, of values such as `X-Env: beta`.
fn names(values: &[Value]) -> Vec<String> {
    let name = |text: String| match text.split_once(':') {
        Some((name, _)) => name.to_owned(),
        None => text,
    };
    texts(values).into_iter().map(name).collect()
}
