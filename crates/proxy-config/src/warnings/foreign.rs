//! Warnings about the notation of other servers, which has another meaning here.

use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::diagnostics::Diagnostics;
use crate::files::Files;
use proxy_model::{
    HeaderEdits, HeaderField, Model, Policies, RequestValue, Route, Service, Setting,
};
use proxy_routing::PathPattern;
use std::path::Path;

pub(super) fn find(model: &Model, files: Files<'_>, faults: &mut Diagnostics) {
    for route in &model.routes {
        wildcards_in_paths(route, faults);
        underscores_for_hosts(route, faults);
        no_bodies(route, faults);
        variables(&route.policies, faults);
        missing_fallback(route, files, faults);
    }
}

fn wildcards_in_paths(route: &Route, faults: &mut Diagnostics) {
    for pattern in &route.matches.paths {
        let Some((place, instead)) = pattern.place().zip(without_wildcard(pattern)) else {
            continue;
        };
        let is_regex = pattern.setting() == "path-regex";
        let (meaning, label) = if is_regex {
            (
                "matches any number of `/` there",
                "`/*` is any number of slashes",
            )
        } else {
            (
                "matches a `*` in the path, and nothing else in its place",
                "a `*` stands for itself",
            )
        };
        let message = format!("`{} \"{}\"` {meaning}", pattern.setting(), pattern.as_str());
        let fault = Diagnostic::new(DiagnosticCode::ForeignNotation, place, message);
        faults.push(fault.label(label).help(instead));
    }
}

/// The warning about a wildcard in a path; `None` for a pattern without one.
fn without_wildcard(pattern: &PathPattern) -> Option<String> {
    let text = pattern.as_str();
    if pattern.setting() == "path-regex" {
        return slashes_in_regex(text);
    }
    let mut segments = text.split('/');
    if !text.ends_with('*') && !segments.any(|segment| matches!(segment, "*" | "**")) {
        return None;
    }
    let stem = text.trim_end_matches('*');
    if stem.contains('*') {
        return Some("write a `path-regex`, in which `[^/]+` is one segment".to_owned());
    }
    let instead = match stem.strip_suffix('/') {
        Some("") => {
            return Some("leave the condition out: every path is taken then".to_owned());
        }
        Some(folder) => {
            format!("write `path-prefix \"{folder}\"`, which takes `{folder}` and everything below")
        }
        None => format!("write `path-regex \"^{stem}\"`"),
    };
    Some(instead)
}

/// The warning about `/*` in a regex, which repeats the slash; `None` for a regex without one.
fn slashes_in_regex(text: &str) -> Option<String> {
    let stem = text.strip_suffix("/*");
    if stem.is_none() && !text.contains("/*/") {
        return None;
    }
    let folder = stem.map(|stem| stem.trim_start_matches('^'));
    let plain = folder.filter(|folder| folder.starts_with('/') && is_literal(folder));
    Some(match plain {
        Some(folder) => {
            format!("write `path-prefix \"{folder}\"`, which takes `{folder}` and everything below")
        }
        None => "write `[^/]+` for one segment, `.*` for any text".to_owned(),
    })
}

fn is_literal(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '~');
    text.chars().all(is_plain)
}

fn underscores_for_hosts(route: &Route, faults: &mut Diagnostics) {
    let hosts = route.matches.hosts.iter();
    for place in hosts
        .filter(|host| host.to_string() == "_")
        .filter_map(Setting::place)
    {
        let message = "`_` is a host like others here; no client asks for it";
        let fault = Diagnostic::new(DiagnosticCode::ForeignNotation, place, message);
        faults.push(fault.help("leave `host` out: every host is taken then"));
    }
}

fn no_bodies(route: &Route, faults: &mut Diagnostics) {
    let limit = route.policies.max_body_size.filter(|limit| **limit == 0);
    let Some(place) = limit.and_then(|limit| limit.place()) else {
        return;
    };
    let message = "`max-body-size 0` refuses every request that has a body";
    let fault = Diagnostic::new(DiagnosticCode::NoBodies, place, message);
    faults.push(fault.help(
        "for no limit of its own, leave it out or write a size above any body, such as `\"1TiB\"`; to \
         refuse bodies without this warning, write 1",
    ));
}

fn variables(policies: &Policies, faults: &mut Diagnostics) {
    for edits in [&policies.request_headers, &policies.response_headers] {
        let HeaderEdits {
            remove: _,
            set,
            add,
        } = edits;
        for field in set.iter().chain(add) {
            variable_in(field, faults);
        }
    }
}

fn variable_in(field: &Setting<HeaderField>, faults: &mut Diagnostics) {
    let value = field.value.value.to_str().unwrap_or_default();
    let Some((place, variable)) = field.place().zip(variable(value)) else {
        return;
    };
    let message = format!(
        "the value of `{}` is sent as it is written, with `{variable}` in it",
        field.value.name
    );
    let fault = Diagnostic::new(DiagnosticCode::ForeignNotation, place, message);
    faults.push(fault.label("not a value of this program").help(
        "values of the request are `{host}`, `{client_ip}` and the like; the proxy itself sends \
         upstreams `X-Forwarded-For`, `X-Forwarded-Proto`, `X-Forwarded-Host` and `X-Correlation-Id`",
    ));
}

/// The first part of `value` in the syntax of a variable: `$host`, `${host}`, `{host}`, `%{host}`,
/// `%[src]`.
fn variable(value: &str) -> Option<&str> {
    let mut places = value.char_indices();
    places.find_map(|(at, c)| {
        let rest = value.get(at..)?;
        let length = match c {
            // Of `${host}` and `%{host}` the part in braces.
            '$' | '%' if rest.get(1..)?.starts_with('{') => {
                let braces = rest.get(1..)?;
                return braces.get(..enclosed(braces, '}')?);
            }
            '$' => name_length(rest, 1).filter(|_| begins_name(rest, 1)),
            '{' => enclosed(rest, '}').filter(|length| {
                let name = rest.get(1..length - 1);
                name.and_then(RequestValue::find).is_none()
            }),
            '%' if rest.starts_with("%[") => enclosed(rest.get(1..)?, ']').map(|length| length + 1),
            _ => None,
        };
        rest.get(..length?)
    })
}

fn begins_name(text: &str, at: usize) -> bool {
    let first = text.get(at..).and_then(|rest| rest.chars().next());
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
}

/// The end of the name that begins at byte `at` of `text`, as a length from the beginning.
fn name_length(text: &str, at: usize) -> Option<usize> {
    let name = text.get(at..)?;
    let length = name
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(name.len());
    (length > 0).then_some(at + length)
}

/// The length of the name in brackets at the beginning of `text`.
fn enclosed(text: &str, close: char) -> Option<usize> {
    let end = text.find(close)?;
    let name = text.get(1..end)?;
    let is_name = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '%'));
    (begins_name(name.trim_start_matches(['$', '%']), 0) && is_name).then_some(end + 1)
}

fn missing_fallback(route: &Route, files: Files<'_>, faults: &mut Diagnostics) {
    let Service::Static(folder) = &route.service else {
        return;
    };
    let Some(fallback) = &folder.fallback else {
        return;
    };
    let path = folder.root.join(Path::new(fallback.as_str()));
    let Some(place) = fallback.place().filter(|_| files.lacks(&path)) else {
        return;
    };
    let message = format!("`{}` does not exist", path.display());
    let fault = Diagnostic::new(DiagnosticCode::MissingFallback, place, message);
    faults.push(
        fault
            .label("paths that name no file are answered 404")
            .help("put the file there, or name one that is below the root"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_looks_like_a_variable_is_found() {
        for (value, found) in [
            ("$host", Some("$host")),
            ("https://${host}/x", Some("{host}")),
            ("for=$remote_addr;by=x", Some("$remote_addr")),
            ("{host}", None),
            ("https://{host}{uri}", None),
            ("{http.request.host}", Some("{http.request.host}")),
            ("%{Host}e", Some("{Host}")),
            ("%[src]", Some("%[src]")),
            ("nonce-{random}", Some("{random}")),
            ("a {$b}", Some("{$b}")),
            ("costs $5", None),
            ("$", None),
            ("{}", None),
            ("{\"group\":\"default\"}", None),
            ("100%", None),
            ("max-age=5", None),
        ] {
            assert_eq!(variable(value), found, "{value}");
        }
    }
}
