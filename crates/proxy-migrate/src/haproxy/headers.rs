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

/// Converts a rule without a condition to a policy of routes; notes any other. Returns false if a
/// field of the client would reach the servers that the rule removes or edits: it may be a forged
/// identity.
pub(super) fn edit(site: &mut Site, policies: &mut Policies, line: &Line) -> bool {
    if is_decision(line) || checks::is_check(line) {
        return true;
    }
    if let Some(rewrite) = rule::rewrite(line) {
        policies.rewrite = Some(rewrite);
        if line.word(1) == "replace-path" && !line.word(2).starts_with('^') {
            line.note(site, "it is written for paths that begin with it");
        }
        return true;
    }
    let is_request = line.word(0) == "http-request";
    let name = line.word(2);
    if OURS.contains(&&*name.to_ascii_lowercase()) && is_request {
        return true;
    }
    let (fields, message) = if is_request {
        (&mut policies.request_headers, Message::Request)
    } else {
        (&mut policies.response_headers, Message::Response)
    };
    let is_edit = matches!(line.word(1), "set-header" | "add-header" | "del-header");
    if let Some(fault) = header_fault(name, message).filter(|_| is_edit) {
        line.note(site, fault);
        return true;
    }
    let is_conditional = line.has("if") || line.has("unless");
    let node = match (line.word(1), value(line.word(3))) {
        _ if is_conditional => None,
        ("set-header", Some(value)) => Some(Node::text("set", name).arg(&value)),
        ("add-header", Some(value)) => Some(Node::text("add", name).arg(&value)),
        ("del-header", _) if is_whole_name(line) => Some(Node::text("remove", name)),
        _ => None,
    };
    if let Some(node) = node {
        fields.push(node);
        return true;
    }
    match line.word(1) {
        "set-header" if is_request => {
            // If this field were not set, the client's field would be forwarded instead.
            if !name.eq_ignore_ascii_case("host") {
                let removed = Node::text("remove", name);
                let quoted = removed.first().unwrap_or_default();
                fields.retain(|it| !it.first().is_some_and(|it| it.eq_ignore_ascii_case(quoted)));
                fields.push(removed);
            }
            line.note(
                site,
                "see docs/operate/headers.md for values; the field is not sent until then",
            );
            true
        }
        "del-header" | "replace-header" | "replace-value" if is_request => {
            line.note(
                site,
                "write it in the policies of a route with that condition: see docs/operate/headers.md; its routes answer 501 until then",
            );
            false
        }
        _ => {
            line.note(
                site,
                "write it in the policies of a route with that condition: see docs/operate/headers.md",
            );
            true
        }
    }
}

/// The field that `option forwardfor header NAME` sends: a client could send it itself.
pub(super) fn forwarded(line: &Line) -> Option<Node> {
    let is_option = line.word(0) == "option" && line.word(1) == "forwardfor";
    let name = line.option("header").filter(|_| is_option)?;
    let is_ours = OURS.contains(&&*name.to_ascii_lowercase());
    let is_field = !is_ours && header_fault(name, Message::Request).is_none();
    is_field.then(|| Node::text("set", name).arg("{client_ip}"))
}

/// Returns true if a `del-header` compares the whole name, as without `-m`.
fn is_whole_name(line: &Line) -> bool {
    line.words.len() == 3
        || (line.word(3) == "-m" && line.word(4) == "str" && line.words.len() == 5)
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
