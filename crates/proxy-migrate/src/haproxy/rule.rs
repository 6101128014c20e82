//! Classification of `http-request` rules, and their responses.

use super::parser::Line;
use crate::site::{Rewrite, Service};

/// Returns true if a rule answers requests, and so becomes a route.
pub(super) fn is_decision(line: &Line) -> bool {
    match line.word(0) {
        "http-request" => matches!(line.word(1), "deny" | "redirect" | "return"),
        "redirect" => true,
        _ => false,
    }
}

/// Response of a rule; `None` without a counterpart.
pub(super) fn service(line: &Line) -> Option<Service> {
    let line = line.action();
    let status = |names: &[&str], default: u16| {
        let mut written = names.iter().filter_map(|name| line.option(name));
        written
            .next()
            .map_or(Some(default), |word| word.parse().ok())
    };
    let has_unwritten = UNWRITTEN.iter().any(|word| line.has(word));
    if has_unwritten {
        return None;
    }
    if line.has("redirect") {
        let to = match (
            line.option("scheme"),
            line.option("prefix"),
            line.option("location"),
        ) {
            (Some(scheme), _, _) => scheme.to_owned(),
            (_, Some(prefix), _) => prefix.trim_end_matches('/').to_owned(),
            // The location has its own query.
            (_, _, Some(location)) if location.contains('?') => location.to_owned(),
            (_, _, Some(location)) => format!("{location}?"),
            _ => return None,
        };
        // A location drops the query in any case.
        let drops_query = line.has("drop-query") && line.option("location").is_none();
        if to.contains('%') || drops_query {
            return None;
        }
        return Some(Service::Redirect {
            to: Some(to),
            status: status(&["code"], 302)?,
            replace_prefix: None,
        });
    }
    let format = line.option("lf-string");
    if format.is_some_and(|text| text.contains('%')) {
        return None;
    }
    Some(match line.word(1) {
        "deny" => Service::refusal(status(&["deny_status", "status"], 403)?),
        _ => Service::Respond {
            status: status(&["status"], 200)?,
            body: line.option("string").or(format).map(str::to_owned),
            content_type: line.option("content-type").map(str::to_owned),
        },
    })
}

/// Words of a response with an effect but no counterpart.
const UNWRITTEN: &[&str] = &[
    "append-slash",
    "clear-cookie",
    "errorfile",
    "errorfiles",
    "file",
    "hdr",
    "lf-file",
    "set-cookie",
];

/// Rewrite of a rule without a condition: to a fixed path, or of a prefix.
pub(super) fn rewrite(line: &Line) -> Option<Rewrite> {
    if line.word(0) != "http-request" || line.has("if") || line.has("unless") {
        return None;
    }
    match line.word(1) {
        "set-path" => {
            let path = line.word(2);
            (!path.contains('%')).then(|| Rewrite::Path(path.to_owned()))
        }
        "replace-path" => replaced_prefix(line.word(2), line.word(3)),
        _ => None,
    }
}

/// Rewrite for `^/a/(.*)` to `/b/\1`, or `^/a(/.*)?` to `/b\1`.
fn replaced_prefix(regex: &str, format: &str) -> Option<Rewrite> {
    let regex = regex.strip_prefix('^').unwrap_or(regex);
    let regex = regex.strip_suffix('$').unwrap_or(regex);
    let forms = [("/(.*)", "/\\1"), ("(/.*)?", "\\1")];
    let (from, to) = forms
        .iter()
        .find_map(|(end, group)| regex.strip_suffix(end).zip(format.strip_suffix(group)))?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_~".contains(c);
    let is_path = |path: &str| path.chars().all(is_plain) && !path.ends_with('/');
    let is_below = to.is_empty() || to.starts_with('/');
    if !(from.starts_with('/') && is_below && is_path(from) && is_path(to)) {
        return None;
    }
    Some(if to.is_empty() {
        Rewrite::Strip(from.to_owned())
    } else {
        Rewrite::Replace(from.to_owned(), to.to_owned())
    })
}
