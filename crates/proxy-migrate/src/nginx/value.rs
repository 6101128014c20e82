//! Converts variables in values.

use super::parser::Directive;
use super::scope::Scope;
use crate::site::{Message, Site, header_fault};

/// Variables, with the proxy's placeholders.
const VARIABLES: &[(&str, &str)] = &[
    ("remote_addr", "{client_ip}"),
    ("realip_remote_addr", "{client_ip}"),
    ("scheme", "{scheme}"),
    ("host", "{host}"),
    ("http_host", "{host}"),
    ("server_name", "{host}"),
    ("request_method", "{method}"),
    ("request_uri", "{uri}"),
    ("uri", "{path}"),
    ("document_uri", "{path}"),
    ("query_string", "{query}"),
    ("args", "{query}"),
    ("request_id", "{correlation_id}"),
    ("remote_user", "{user}"),
    ("ssl_protocol", "{tls_version}"),
    ("ssl_server_name", "{tls_server_name}"),
    ("ssl_client_s_dn", "{tls_client_subject}"),
    ("ssl_client_fingerprint", "{tls_client_fingerprint}"),
];

/// Replaces the variables in a value by placeholders; `None` if one has no counterpart.
fn converted(value: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        let (name, behind) = if let Some(braced) = after.strip_prefix('{') {
            braced.split_once('}')?
        } else {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            after.split_at(end.unwrap_or(after.len()))
        };
        let (_, ours) = VARIABLES.iter().find(|(theirs, _)| *theirs == name)?;
        text.push_str(ours);
        rest = behind;
    }
    text.push_str(rest);
    Some(text)
}

/// Returns true if a value contains variables.
pub(super) fn has_variables(value: &str) -> bool {
    value.contains('$')
}

/// Converts the value of a header field; notes a value without a counterpart.
pub(super) fn value(site: &mut Site, directive: &Directive, value: &str) -> Option<String> {
    if value.contains(char::is_control) {
        site.note(
            &directive.place,
            &directive.shown(),
            "the value of a header field has no line breaks",
        );
        return None;
    }
    let found = converted(value);
    if found.is_none() {
        site.note(
            &directive.place,
            &directive.shown(),
            "no value of a request stands for the variable: see docs/operate/headers.md",
        );
    }
    found
}

/// Returns true if a `proxy_set_header` copies a field of the login server's response under the
/// same name.
pub(super) fn is_copied(scope: &Scope<'_>, directive: &Directive) -> bool {
    let (Some(name), Some(variable)) = (directive.word(0), directive.word(1)) else {
        return false;
    };
    let has_login = scope.word("auth_request").is_some_and(|it| it != "off");
    let variables = scope.all("auth_request_set").iter();
    let mut values = variables
        .filter(|it| it.word(0) == Some(variable))
        .filter_map(|it| it.word(1)?.strip_prefix("$upstream_http_"));
    let field = name.to_ascii_lowercase().replace('-', "_");
    let is_usable = has_login && header_fault(name, Message::Request).is_none();
    is_usable && values.any(|it| it == field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_values_of_the_request() {
        for (value, expected) in [
            ("plain", Some("plain")),
            ("$remote_addr", Some("{client_ip}")),
            ("a-${scheme}-b", Some("a-{scheme}-b")),
            (
                "$scheme://$host$request_uri",
                Some("{scheme}://{host}{uri}"),
            ),
            ("$upstream_addr", None),
            ("${open", None),
        ] {
            assert_eq!(converted(value).as_deref(), expected, "{value}");
        }
    }
}
