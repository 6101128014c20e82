//! Converts edits of messages by `http-request` and `http-response`.

use super::checks;
use super::parser::Line;
use super::rule::{self, is_decision};
use crate::kdl::Node;
use crate::site::{Message, Policies, Site, header_fault};

/// Header fields that the proxy sets itself for upstreams.
const OURS: &[&str] = &[
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "forwarded",
];

const VALUES: &[(&str, &str)] = &[
    ("%[src]", "{client_ip}"),
    ("%ci", "{client_ip}"),
    ("%[method]", "{method}"),
    ("%[path]", "{path}"),
    ("%[req.hdr(host)]", "{host}"),
    ("%[hdr(host)]", "{host}"),
    ("%[unique-id]", "{correlation_id}"),
    ("%ID", "{correlation_id}"),
];

/// Converts a rule without a condition to a policy of routes; notes a conditional one.
pub(super) fn edit(site: &mut Site, policies: &mut Policies, line: &Line) {
    if is_decision(line) || checks::is_check(line) {
        return;
    }
    if let Some(rewrite) = rule::rewrite(line) {
        policies.rewrite = Some(rewrite);
        if line.word(1) == "replace-path" && !line.word(2).starts_with('^') {
            line.note(site, "it is written for paths that begin with it");
        }
        return;
    }
    let fields = if line.word(0) == "http-request" {
        &mut policies.request_headers
    } else {
        &mut policies.response_headers
    };
    let name = line.word(2);
    if OURS.contains(&&*name.to_ascii_lowercase()) && line.word(0) == "http-request" {
        return;
    }
    let is_conditional = line.has("if") || line.has("unless");
    let (message, is_request) = if line.word(0) == "http-request" {
        (Message::Request, true)
    } else {
        (Message::Response, false)
    };
    let is_edit = matches!(line.word(1), "set-header" | "add-header" | "del-header");
    if let Some(fault) = header_fault(name, message).filter(|_| is_edit) {
        return line.note(site, fault);
    }
    let value = value(line.word(3));
    if value.is_none() && line.word(1) == "set-header" && is_request && !is_conditional {
        // If this field were not set, the client's field would be forwarded instead.
        if !name.eq_ignore_ascii_case("host") {
            fields.push(Node::text("remove", name));
        }
        return line.note(
            site,
            "see docs/operate/headers.md for values; the field is not sent until then",
        );
    }
    let node = match (line.word(1), value) {
        _ if is_conditional => None,
        ("set-header", Some(value)) => Some(Node::text("set", name).arg(&value)),
        ("add-header", Some(value)) => Some(Node::text("add", name).arg(&value)),
        ("del-header", _) => Some(Node::text("remove", name)),
        _ => None,
    };
    match node {
        Some(node) => fields.push(node),
        None => line.note(
            site,
            "write it in the policies of a route with that condition: see docs/operate/headers.md",
        ),
    }
}

/// Converts a log-format string to a value template; `None` if a part has no counterpart.
fn value(written: &str) -> Option<String> {
    if written.contains(['{', '}']) {
        return None;
    }
    let mut text = written.to_owned();
    for (theirs, ours) in VALUES {
        text = text.replace(theirs, ours);
    }
    (!text.contains('%')).then_some(text)
}
