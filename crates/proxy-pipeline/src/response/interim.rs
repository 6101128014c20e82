//! Heads of 1xx responses, filtered for the client.

use crate::headers::http2_fields::check_field;
use http::{HeaderName, HeaderValue, Response, StatusCode};

/// Fields of the upstream's connection, and fields about the length of a body. [RFC 9110 §7.6.1,
/// §8.6]
const FORBIDDEN_FIELDS: &[&[u8]] = &[
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"te",
    b"upgrade",
    b"transfer-encoding",
    b"content-length",
];

/// Filters a sequence of whole heads, and leaves only fields with names for which `is_kept` is
/// true.
pub(crate) fn for_clients(heads: &[u8], is_kept: impl Fn(&HeaderName) -> bool) -> Vec<u8> {
    let mut kept = Vec::with_capacity(heads.len());
    let mut rest = heads;
    while !rest.is_empty() {
        let end = rest.windows(4).position(|at| at == b"\r\n\r\n");
        let (head, after) = rest.split_at(end.map_or(rest.len(), |end| end + 4));
        copy_kept_fields(head, &is_kept, &mut kept);
        rest = after;
    }
    kept
}

/// An HTTP/2 head in HTTP/1.1 syntax, filtered likewise; empty if it must not be forwarded.
pub(crate) fn as_head(response: &Response<()>, is_kept: impl Fn(&HeaderName) -> bool) -> Vec<u8> {
    let status = response.status();
    if matches!(
        status,
        StatusCode::CONTINUE | StatusCode::SWITCHING_PROTOCOLS
    ) {
        return Vec::new();
    }
    let reason = status.canonical_reason().unwrap_or_default();
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    let fields = response.headers().iter();
    for (name, value) in fields.filter(|(name, value)| check_field(name, value).is_ok()) {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    head.extend_from_slice(b"\r\n");
    for_clients(&head, is_kept)
}

/// A sequence of whole heads as HTTP/2 responses.
#[must_use]
pub fn informational(heads: &[u8]) -> Vec<Response<()>> {
    const MAX_FIELDS: usize = 256;
    let mut parsed = Vec::new();
    let mut rest = heads;
    loop {
        let mut fields = vec![httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut head = httparse::Response::new(&mut fields);
        let Ok(httparse::Status::Complete(end)) = head.parse(rest) else {
            return parsed;
        };
        let mut response = Response::new(());
        *response.status_mut() = status(head.code);
        for field in head.headers.iter() {
            let name = HeaderName::from_bytes(field.name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(field.value)) {
                response.headers_mut().append(name, value);
            }
        }
        parsed.push(response);
        rest = rest.get(end..).unwrap_or_default();
    }
}

fn status(code: Option<u16>) -> StatusCode {
    let code = code.and_then(|code| StatusCode::from_u16(code).ok());
    code.unwrap_or(StatusCode::PROCESSING)
}

fn copy_kept_fields(head: &[u8], is_kept: impl Fn(&HeaderName) -> bool, kept: &mut Vec<u8>) {
    let mut lines = head.split_inclusive(|byte| *byte == b'\n');
    kept.extend_from_slice(lines.next().unwrap_or_default());
    let nominated: Vec<&[u8]> = lines
        .clone()
        .filter(|line| is_named(line, b"connection"))
        .flat_map(|line| value(line).split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .collect();
    for line in lines {
        let mut unfit = FORBIDDEN_FIELDS.iter().chain(&nominated);
        let is_unfit = unfit.any(|name| is_named(line, name));
        // The empty line has no name.
        if !is_unfit && name(line).is_none_or(|name| is_kept(&name)) {
            kept.extend_from_slice(line);
        }
    }
}

fn name(line: &[u8]) -> Option<HeaderName> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    HeaderName::from_bytes(line.get(..colon)?).ok()
}

fn is_named(line: &[u8], name: &[u8]) -> bool {
    let own = line.split(|byte| *byte == b':').next();
    own.is_some_and(|own| own.len() < line.len() && own.eq_ignore_ascii_case(name))
}

fn value(line: &[u8]) -> &[u8] {
    let colon = line.iter().position(|byte| *byte == b':');
    let after = colon.and_then(|colon| line.get(colon + 1..));
    after.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hop_by_hop_fields_are_left_out_of_each_head() {
        let heads = b"HTTP/1.1 103 Early Hints\r\nConnection: x-a, X-B\r\nx-a: 1\r\nX-b: 2\r\n\
            Keep-Alive: 5\r\nX-Cut: 1\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\nx-a: 3\r\n\r\n";

        let kept = for_clients(heads, |name| name != "x-cut");
        let expected = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
            HTTP/1.1 102 Processing\r\nx-a: 3\r\n\r\n";
        assert_eq!(
            kept.escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
    }

    #[test]
    fn a_status_line_is_never_taken_for_a_field() {
        let head = b"HTTP/1.1 103 a:b\r\nConnection: HTTP/1.1 103 a\r\n\r\n";

        assert!(for_clients(head, |_| true).starts_with(b"HTTP/1.1 103 a:b\r\n"));
    }
}
