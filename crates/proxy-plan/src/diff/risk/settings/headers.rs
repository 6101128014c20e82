//! The risk of other header edits.

use super::values::{Classified, instead, listed, missing, texts};
use crate::diff::risk::class::RiskClass;
use crate::diff::setting_change::SettingChange;
use proxy_model::is_secret_name;
use proxy_model::registry::{listeners, policies};
use serde_json::Value;

/// Fields that decide how a response is read, stored or run, or which site and client a request
/// belongs to.
const DECIDING: [&str; 47] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "age",
    "alt-svc",
    "authorization",
    "cache-control",
    "cdn-cache-control",
    "clear-site-data",
    "content-disposition",
    "content-encoding",
    "content-security-policy",
    "content-type",
    "cookie",
    "etag",
    "expires",
    "forwarded",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "last-modified",
    "location",
    "origin",
    "permissions-policy",
    "pragma",
    "range",
    "referrer-policy",
    "refresh",
    "set-cookie",
    "strict-transport-security",
    "surrogate-control",
    "true-client-ip",
    "user-agent",
    "vary",
    "www-authenticate",
    "x-client-ip",
    "x-content-type-options",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-frame-options",
    "x-http-method-override",
    "x-real-ip",
    "x-robots-tag",
    "x-sendfile",
];

/// Prefixes of the names of further such fields.
const DECIDING_PREFIXES: [&str; 3] = ["access-control-", "cross-origin-", "x-accel-"];

/// Fields in [`DECIDING`] that protect a page when they are set, and break no page that is served
/// correctly.
const PROTECTING: [&str; 2] = ["referrer-policy", "x-content-type-options"];

pub(super) fn risk(change: &SettingChange) -> Classified {
    let row = change.row;
    if row == listeners::EXPOSE_REASONS.path && change.after.contains(&Value::Bool(true)) {
        let text = "responses name the reason of an error".to_owned();
        return Some((RiskClass::InnerHeaderExposed, text));
    }
    if row == listeners::VIA.path {
        let text = format!(
            "upstreams that compress no response to requests with `Via` behave differently: {}",
            instead(change)
        );
        return Some((RiskClass::HeadersChanged, text));
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
    let mut deciding = new.clone();
    deciding.retain(|name| {
        let name = name.to_ascii_lowercase();
        let is_protection = values.contains(&row) && PROTECTING.contains(&name.as_str());
        decides(&name) && !is_protection
    });
    if !deciding.is_empty() {
        let text = format!("has a new `{edit}` of {}", listed(&deciding));
        return Some((RiskClass::HeadersChanged, text));
    }
    // If no name differs, a value does, which may be redacted.
    let is_value = values.contains(&row) && (new.is_empty() || !missing(change).is_empty());
    is_value.then(|| {
        (
            RiskClass::HeadersChanged,
            format!("another value in `{edit}`: {}", instead(change)),
        )
    })
}

/// Returns true for a field, in lower case, that decides on a request or a response, or carries a
/// credential.
fn decides(name: &str) -> bool {
    let begins = |prefix: &&str| name.starts_with(*prefix);
    DECIDING.contains(&name) || DECIDING_PREFIXES.iter().any(begins) || is_secret_name(name)
}

/// The names in header fields such as `X-Env: beta`.
fn names(values: &[Value]) -> Vec<String> {
    let name = |text: String| match text.split_once(':') {
        Some((name, _)) => name.to_owned(),
        None => text,
    };
    texts(values).into_iter().map(name).collect()
}
