//! Agents' edits of headers.

use crate::headers::forwarding_claims::{plain_name, remove_alike};
use agent_protocol::{Decision, Header, HeaderEdit, is_protected};
use http::{HeaderMap, HeaderName, HeaderValue};
use proxy_agent::CallError;

/// Applies `edits` in their order.
pub(super) fn apply(edits: &[HeaderEdit], headers: &mut HeaderMap) {
    for edit in edits {
        match edit {
            HeaderEdit::Set(header) => {
                if let Some((name, value)) = field(header) {
                    headers.insert(name, value);
                }
            }
            HeaderEdit::Add(header) => {
                if let Some((name, value)) = field(header) {
                    headers.append(name, value);
                }
            }
            HeaderEdit::Remove(name) => {
                headers.remove(name.as_str());
            }
        }
    }
}

/// Names of the fields that `edits` set or remove.
pub(super) fn replaced(edits: &[HeaderEdit]) -> impl Iterator<Item = HeaderName> {
    let edits = edits
        .iter()
        .filter(|edit| !matches!(edit, HeaderEdit::Add(_)));
    edits.filter_map(|edit| HeaderName::try_from(edit.name()).ok())
}

/// Applies `edits` of a request in their order, and removes fields that upstreams read like an
/// edited one, because they are the client's.
pub(super) fn apply_to_request(edits: &[HeaderEdit], headers: &mut HeaderMap) {
    for edit in edits {
        remove_alike(headers, edit.name());
        apply(std::slice::from_ref(edit), headers);
    }
}

/// Checks that `decision` edits only fields that agents may change. A denial is valid without the
/// forbidden field.
pub(super) fn check(decision: &Decision) -> Result<(), CallError> {
    let Decision::Allow(allow) = decision else {
        return Ok(());
    };
    let mut request_names = allow.request_headers.iter().map(HeaderEdit::name);
    let request_names = request_names.find(|name| {
        let plain = plain_name(name);
        is_protected(&plain) || is_written_by_proxy(&plain)
    });
    let mut response_names = allow.response_headers.iter().map(HeaderEdit::name);
    match request_names.or_else(|| response_names.find(|name| is_protected(name))) {
        Some(name) => Err(CallError::BadReply(format!(
            "agents may not change the field `{name}`"
        ))),
        None => Ok(()),
    }
}

/// Fields of requests that the proxy writes itself.
fn is_written_by_proxy(name: &str) -> bool {
    matches!(
        name,
        "via" | "x-forwarded-for" | "x-forwarded-host" | "x-forwarded-proto"
    )
}

/// The fields of an agent's response that agents may set.
pub(super) fn fields(headers: &[Header<'_>]) -> Vec<(HeaderName, HeaderValue)> {
    let allowed = headers.iter().filter(|header| !is_protected(header.name()));
    allowed.filter_map(field).collect()
}

fn field(header: &Header<'_>) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_bytes(header.name().as_bytes()).ok()?;
    let value = HeaderValue::from_bytes(header.value().as_bytes()).ok()?;
    Some((name, value))
}
