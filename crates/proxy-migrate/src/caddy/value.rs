//! Converts placeholders in values, and edits of header fields.

use crate::kdl::Node;
use crate::site::{Message, header_fault};
use std::fmt::Write as _;

const PLACEHOLDERS: &[(&str, &str)] = &[
    ("host", "{host}"),
    ("http.request.host", "{host}"),
    ("hostport", "{host}"),
    ("http.request.hostport", "{host}"),
    ("remote_host", "{client_ip}"),
    ("client_ip", "{client_ip}"),
    ("http.request.remote.host", "{client_ip}"),
    ("remote", "{client_ip}"),
    ("scheme", "{scheme}"),
    ("http.request.scheme", "{scheme}"),
    ("method", "{method}"),
    ("path", "{path}"),
    ("uri", "{uri}"),
    ("query", "{query}"),
    ("http.request.uri", "{uri}"),
    ("http.request.orig_uri", "{uri}"),
    ("http.request.uuid", "{correlation_id}"),
    ("http.auth.user.id", "{user}"),
    ("tls_version", "{tls_version}"),
    ("tls_client_subject", "{tls_client_subject}"),
    ("tls_client_fingerprint", "{tls_client_fingerprint}"),
];

/// Converts the placeholders of a value; `None` if one has no counterpart. Environment variables
/// have the same syntax in both.
fn converted(value: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (name, behind) = after.split_once('}')?;
        if name.starts_with('$') {
            _ = write!(text, "{{{name}}}");
        } else {
            let (_, ours) = PLACEHOLDERS.iter().find(|(theirs, _)| *theirs == name)?;
            text.push_str(ours);
        }
        rest = behind;
    }
    text.push_str(rest);
    Some(text)
}

/// Default of an environment variable: `a` for `{$NAME:a}`.
pub(super) fn default_of(word: &str) -> Option<&str> {
    let inner = word.strip_prefix("{$")?.strip_suffix('}')?;
    let (_, default) = inner.split_once(':')?;
    (!default.is_empty()).then_some(default)
}

/// Converts an edit of a header field: `-Name`, `+Name value`, `?Name value` or `Name value`.
pub(super) fn edit(field: &str, value: Option<&str>, message: Message) -> Option<Node> {
    let name = field.trim_start_matches(['-', '+', '?', '>']);
    if !name.contains('*') && header_fault(name, message).is_some() {
        return None;
    }
    if let Some(name) = field.strip_prefix('-') {
        return (!name.contains('*')).then(|| Node::text("remove", name));
    }
    let value = converted(value?)?;
    match field.strip_prefix('+') {
        Some(name) => Some(Node::text("add", name).arg(&value)),
        None if field.starts_with(['?', '>']) => None,
        None => Some(Node::text("set", field).arg(&value)),
    }
}
