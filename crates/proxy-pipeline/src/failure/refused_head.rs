//! Parsing of the readable parts of a refused head, for its records.

use crate::failure::framing_problem;
use http::Method;
use proxy_errors::{Problem, ResponseForm, ServiceForm};
use proxy_framing::FramingError;
use proxy_telemetry::AccessLogRequest;

/// Maximum length of a target in a record, in bytes.
const MAX_TARGET_BYTES_IN_RECORD: usize = 2_048;

/// Maximum length of a field's name in a record, in bytes.
const MAX_NAME_BYTES_IN_RECORD: usize = 64;

/// Maximum length of a method, in bytes.
const MAX_METHOD_BYTES: usize = 32;

/// The problem of `fault`, with the field that caused it, taken from `head`: the accepted bytes
/// before the error.
#[must_use]
pub fn refused_head_problem(fault: FramingError, head: &[u8]) -> Problem {
    let problem = framing_problem(fault);
    match field_to_blame(fault, head) {
        Some(name) => problem.with_field(name),
        None => problem,
    }
}

/// The readable parts of the request.
pub(crate) fn facts(head: &[u8]) -> AccessLogRequest<'_> {
    let nothing = AccessLogRequest {
        // No client sends this method.
        method: b"-",
        host: None,
        path: b"",
        user_agent: None,
        referer: None,
    };
    let (line, fields) = split(head);
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return nothing;
    };
    if !(1..=MAX_METHOD_BYTES).contains(&method.len()) || !method.iter().all(|byte| is_tchar(*byte))
    {
        return nothing;
    }
    AccessLogRequest {
        method,
        host: value(fields, b"host"),
        path: target.get(..MAX_TARGET_BYTES_IN_RECORD).unwrap_or(target),
        user_agent: value(fields, b"user-agent"),
        ..nothing
    }
}

/// The form of the response: by `Accept`, if that line was read, since a refused head has no route.
pub(crate) fn response_form(head: &[u8]) -> ResponseForm {
    let accept = value(split(head).1, b"accept");
    ResponseForm::choose(ServiceForm::Unsaid, accept, None)
}

/// HEAD, for a response without a body, or GET for any other method.
pub(crate) fn method(head: &[u8]) -> &'static Method {
    if facts(head).method == b"HEAD" {
        &Method::HEAD
    } else {
        &Method::GET
    }
}

/// The request line, and the bytes after it.
fn split(head: &[u8]) -> (&[u8], &[u8]) {
    // Empty lines may precede a request. [RFC 9112 §2.2]
    let begins = head.iter().position(|byte| !b"\r\n".contains(byte));
    let head = begins.and_then(|at| head.get(at..)).unwrap_or_default();
    match head.iter().position(|byte| *byte == b'\n') {
        Some(at) => {
            let (line, fields) = head.split_at(at + 1);
            (line.trim_ascii_end(), fields)
        }
        None => (head, b""),
    }
}

/// The value of the first complete line of this name.
fn value<'h>(fields: &'h [u8], wanted: &[u8]) -> Option<&'h [u8]> {
    let mut lines = fields.split_inclusive(|byte| *byte == b'\n');
    lines.find_map(|line| {
        let line = line.strip_suffix(b"\r\n")?;
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":")?;
        name.eq_ignore_ascii_case(wanted)
            .then(|| value.trim_ascii())
    })
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "most faults do not concern a single field"
)]
fn field_to_blame(fault: FramingError, head: &[u8]) -> Option<Box<str>> {
    match fault {
        FramingError::RepeatedHost | FramingError::BadHost => Some("Host".into()),
        FramingError::ConflictingContentLength
        | FramingError::RepeatedContentLength
        | FramingError::BadContentLength
        | FramingError::ContentLengthWithTransferEncoding => Some("Content-Length".into()),
        FramingError::TransferEncodingNotChunked | FramingError::TransferEncodingInHttp10 => {
            Some("Transfer-Encoding".into())
        }
        FramingError::BareLf
        | FramingError::BareCr
        | FramingError::NulByte
        | FramingError::ObsFold
        | FramingError::SpaceBeforeColon
        | FramingError::BadNameByte
        | FramingError::ControlByteInValue
        | FramingError::NameSize { .. }
        | FramingError::ValueSize { .. } => last_name(split(head).1),
        _ => None,
    }
}

/// The name in the last line.
fn last_name(fields: &[u8]) -> Option<Box<str>> {
    let mut lines = fields.split(|byte| *byte == b'\n');
    let last = lines.rfind(|line| !line.trim_ascii().is_empty())?;
    let name = last.split(|byte| *byte == b':').next()?.trim_ascii();
    let name = name.get(..MAX_NAME_BYTES_IN_RECORD).unwrap_or(name);
    let name = String::from_utf8_lossy(name);
    (!name.is_empty()).then(|| name.into())
}

/// Returns true if a byte may occur in a token. [RFC 9110 §5.6.2]
fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> (&str, &str, Option<&str>) {
        let facts = facts(head.as_bytes());
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        (text(facts.method), text(facts.path), facts.host.map(text))
    }

    #[test]
    fn the_bytes_that_arrived_are_counted() {
        for (head, reported) in [
            ("", ("-", "", None)),
            ("GET", ("-", "", None)),
            ("G(T / HTTP/1.1\r\n", ("-", "", None)),
            ("GET /a?b", ("GET", "/a?b", None)),
            ("\r\nGET /a HTTP/1.1\r\nHo", ("GET", "/a", None)),
            ("GET /a HTTP/1.1\r\nHost: a.te", ("GET", "/a", None)),
            (
                "GET /a HTTP/1.1\r\nhOst:  a.test \r\nX",
                ("GET", "/a", Some("a.test")),
            ),
        ] {
            assert_eq!(read(head), reported, "{head:?}");
        }
    }

    #[test]
    fn a_complete_accept_line_chooses_the_form() {
        for (fields, form) in [
            ("Accept: text/html\r\nX", ResponseForm::Html),
            ("Accept: text/html", ResponseForm::Json),
            ("Accept: application/json\r\n", ResponseForm::Json),
            ("", ResponseForm::Json),
        ] {
            let head = format!("GET / HTTP/1.1\r\n{fields}");
            assert_eq!(response_form(head.as_bytes()), form, "{fields:?}");
        }
    }

    #[test]
    fn the_line_that_was_refused_names_the_field() {
        let name = |fault, head: &str| {
            let problem = refused_head_problem(fault, head.as_bytes());
            problem.field().map(str::to_owned)
        };
        let head = "GET / HTTP/1.1\r\nA: 1\r\nX-B";
        assert_eq!(
            name(FramingError::SpaceBeforeColon, head).as_deref(),
            Some("X-B")
        );
        assert_eq!(name(FramingError::MissingHost, head), None);
        assert_eq!(name(FramingError::NulByte, "GET /"), None);
        let folded = "GET / HTTP/1.1\r\nX-C: 1\r\n";
        assert_eq!(name(FramingError::ObsFold, folded).as_deref(), Some("X-C"));
        let head = "GET / HTTP/1.1\r\nX-Secret: s3cr";
        assert_eq!(
            name(FramingError::ControlByteInValue, head).as_deref(),
            Some("X-Secret")
        );
    }
}
