//! Serialization of response heads.

use crate::fields;
use crate::message_writer::Framing;
use crate::verbatim::VerbatimFields;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::response::Parts;
use http::{HeaderName, HeaderValue, Method, StatusCode, Version};
use proxy_framing::is_name;
use std::ops::Range;

/// A reason phrase that differs from the status's standard one.
#[derive(Clone, Debug)]
pub(crate) struct Reason(Bytes);

impl Reason {
    /// The phrase at `place` of `head`; `None` if it is empty or the standard one.
    pub(crate) fn uncommon(head: &Bytes, place: Range<usize>, status: StatusCode) -> Option<Self> {
        let phrase = head
            .get(place.clone())
            .filter(|phrase| !phrase.is_empty())?;
        let usual = status.canonical_reason().unwrap_or_default();
        (phrase != usual.as_bytes()).then(|| Self(head.slice(place)))
    }
}

/// Properties of the answered request and of the connection.
#[derive(Clone, Debug)]
pub struct ResponseContext<'r> {
    /// Method of the request.
    pub method: &'r Method,
    /// HTTP version of the request.
    pub version: Version,
    /// Whether the connection should persist.
    pub keeps: bool,
    /// Whether the client sent `TE: trailers`.
    pub takes_trailers: bool,
    /// `Date` for a response that has none.
    pub date: &'r HeaderValue,
    /// A field that replaces all fields with its name.
    pub field: Option<(HeaderName, &'r [u8])>,
    /// Fields of the head that are not in its map.
    pub verbatim: Option<&'r VerbatimFields>,
    /// Numeric fields, each of which replaces all fields with its name.
    pub numbers: &'r [(HeaderName, u64)],
    /// Length of the body; `None` if unknown.
    pub length: Option<u64>,
}

/// Decisions made while writing a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Framing of the body; `None` if there is no body.
    pub framing: Option<Framing>,
    /// Whether the connection persists.
    pub keeps: bool,
}

/// Appends `head` as a response in the context `to`. [RFC 9112 §6, §9.3]
pub fn write_response(head: &Parts, to: &ResponseContext<'_>, out: &mut Vec<u8>) -> Written {
    let is_switch = head.status == StatusCode::SWITCHING_PROTOCOLS;
    let mut framing = framing(head, to);
    status_line(head, to.version, out);
    let (mut keeps, mut dated, mut measured) = (to.keeps, false, false);
    let mut lists_upgrade = false;
    let is_own = |name: &HeaderName, length| {
        let is_same = |own: &HeaderName| own.as_str().len() == length && own == name;
        to.field.as_ref().is_some_and(|(own, _)| is_same(own))
            || to.numbers.iter().any(|(own, _)| is_same(own))
    };
    let bare = head.status == StatusCode::NO_CONTENT || head.status.is_informational();
    let may_measure = !bare && matches!(framing, Some(Framing::Length(_)) | None);
    if let Some(fields) = to.verbatim {
        fields.write(out, |name| match name.len() {
            4 if is_name(name, b"date") => {
                dated = true;
                true
            }
            14 if is_name(name, b"content-length") => {
                may_measure && !std::mem::replace(&mut measured, true)
            }
            _ => !is_replaced(name, to),
        });
    }
    for (name, value) in &head.headers {
        match name.as_str().len() {
            4 if *name == DATE => dated = true,
            10 if *name == CONNECTION && !is_switch => {
                keeps &= !fields::lists(value, "close");
                lists_upgrade |= fields::lists(value, "upgrade");
                continue;
            }
            14 if *name == CONTENT_LENGTH && (measured || !may_measure) => continue,
            14 if *name == CONTENT_LENGTH => measured = true,
            17 if *name == TRANSFER_ENCODING => continue,
            length if is_own(name, length) => {
                continue;
            }
            _ => {}
        }
        fields::write_line(name, value, out);
    }
    write_own(to, out);
    if !dated {
        fields::write_line(&DATE, to.date, out);
    }
    write_framing(framing, measured, out);
    keeps &= framing != Some(Framing::UntilClose);
    if framing == Some(Framing::Length(0)) {
        framing = None;
    }
    if lists_upgrade {
        out.extend_from_slice(b"connection: upgrade\r\n");
    }
    match (is_switch, keeps, to.version) {
        (true, ..) | (_, true, Version::HTTP_11) => {}
        (_, true, _) => out.extend_from_slice(b"connection: keep-alive\r\n"),
        (_, false, _) => out.extend_from_slice(b"connection: close\r\n"),
    }
    out.extend_from_slice(b"\r\n");
    Written { framing, keeps }
}

/// Appends the field for the body's framing, unless an earlier field has `measured` the length.
#[inline]
fn write_framing(framing: Option<Framing>, measured: bool, out: &mut Vec<u8>) {
    match framing {
        Some(Framing::Length(length)) if !measured => {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        Some(Framing::Chunked { .. }) => {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
        }
        Some(Framing::Length(_) | Framing::UntilClose) | None => {}
    }
}

/// Appends the fields of `to` that replace those of the response.
fn write_own(to: &ResponseContext<'_>, out: &mut Vec<u8>) {
    if let Some((name, value)) = &to.field {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    for (name, number) in to.numbers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// Returns true if a field of `to` replaces the one with this name, ignoring case.
fn is_replaced(name: &[u8], to: &ResponseContext<'_>) -> bool {
    let is_same = |own: &HeaderName| {
        let own = own.as_str();
        own.len() == name.len() && name.eq_ignore_ascii_case(own.as_bytes())
    };
    to.field.as_ref().is_some_and(|(own, _)| is_same(own))
        || to.numbers.iter().any(|(own, _)| is_same(own))
}

fn status_line(head: &Parts, version: Version, out: &mut Vec<u8>) {
    let reason = head.extensions.get::<Reason>();
    if head.status == StatusCode::OK && reason.is_none() && version == Version::HTTP_11 {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        return;
    }
    out.extend_from_slice(if version == Version::HTTP_10 {
        b"HTTP/1.0 "
    } else {
        b"HTTP/1.1 "
    });
    out.extend_from_slice(head.status.as_str().as_bytes());
    out.push(b' ');
    let usual = head.status.canonical_reason().unwrap_or("Unknown");
    out.extend_from_slice(reason.map_or(usual.as_bytes(), |reason| &reason.0));
    out.extend_from_slice(b"\r\n");
}

/// Framing of the body; `None` if the response must not have one, whatever its head says.
fn framing(head: &Parts, to: &ResponseContext<'_>) -> Option<Framing> {
    let bodiless = to.method == Method::HEAD
        || head.status.is_informational()
        || matches!(
            head.status,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        );
    if bodiless {
        return None;
    }
    let from_field = || {
        let length = head.headers.get(CONTENT_LENGTH)?;
        length.to_str().ok()?.parse().ok()
    };
    Some(match (to.length.or_else(from_field), to.version) {
        (Some(length), _) => Framing::Length(length),
        (None, Version::HTTP_10) => Framing::UntilClose,
        (None, _) => Framing::Chunked {
            trailers: to.takes_trailers,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Response;

    fn written(
        response: http::response::Builder,
        change: impl FnOnce(&mut ResponseContext<'_>),
    ) -> (String, Written) {
        let (head, ()) = response.body(()).unwrap().into_parts();
        let date = HeaderValue::from_static("now");
        let mut to = ResponseContext {
            method: &Method::GET,
            version: Version::HTTP_11,
            keeps: true,
            takes_trailers: false,
            date: &date,
            field: None,
            verbatim: None,
            numbers: &[],
            length: None,
        };
        change(&mut to);
        let mut out = Vec::new();
        let written = write_response(&head, &to, &mut out);
        (String::from_utf8(out).unwrap(), written)
    }

    #[test]
    fn a_known_length_is_sent() {
        let (text, settled) = written(Response::builder(), |to| to.length = Some(3));

        assert_eq!(
            text,
            "HTTP/1.1 200 OK\r\ndate: now\r\ncontent-length: 3\r\n\r\n"
        );
        assert_eq!(settled.framing, Some(Framing::Length(3)));
        assert!(settled.keeps);
    }

    #[test]
    fn an_unknown_length_is_framed_by_chunks_or_by_the_end() {
        let (text, settled) = written(Response::builder(), |_| {});
        assert!(text.ends_with("transfer-encoding: chunked\r\n\r\n"));
        assert!(settled.keeps);
        let (text, settled) = written(Response::builder(), |to| to.version = Version::HTTP_10);
        assert_eq!(
            text,
            "HTTP/1.0 200 OK\r\ndate: now\r\nconnection: close\r\n\r\n"
        );
        assert_eq!(settled.framing, Some(Framing::UntilClose));
        assert!(!settled.keeps);
    }

    #[test]
    fn a_head_without_a_body_keeps_its_length_field() {
        let response = || Response::builder().header(CONTENT_LENGTH, "5");
        let (text, settled) = written(response(), |to| to.method = &Method::HEAD);
        assert!(text.contains("content-length: 5\r\n"));
        assert_eq!(settled.framing, None);
        let (text, _) = written(response().status(204), |_| {});
        assert!(!text.contains("content-length"));
        let (text, settled) = written(response().status(304), |_| {});
        assert!(text.contains("content-length: 5\r\n"));
        assert_eq!(settled.framing, None);
    }

    #[test]
    fn a_length_is_sent_once_and_not_with_chunks() {
        let twice = Response::builder()
            .header(CONTENT_LENGTH, "5")
            .header(CONTENT_LENGTH, "5");
        let (text, _) = written(twice, |_| {});
        assert_eq!(text.matches("content-length: 5\r\n").count(), 1);
        let empty = Response::builder().header(CONTENT_LENGTH, "");
        let (text, settled) = written(empty, |_| {});
        assert!(!text.contains("content-length"));
        assert_eq!(settled.framing, Some(Framing::Chunked { trailers: false }));
    }

    #[test]
    fn the_connection_field_is_sent_once() {
        let response = Response::builder().header(CONNECTION, "close");
        let (text, settled) = written(response, |to| to.length = Some(0));
        assert_eq!(text.matches("connection: ").count(), 1);
        assert!(!settled.keeps && text.contains("connection: close\r\n"));
        let (text, _) = written(Response::builder(), |to| {
            to.length = Some(0);
            to.version = Version::HTTP_10;
        });
        assert!(text.contains("connection: keep-alive\r\n"));
    }

    #[test]
    fn a_required_upgrade_is_listed_in_the_connection_field() {
        let response = || {
            let response = Response::builder().status(426);
            response
                .header(CONNECTION, "upgrade")
                .header("upgrade", "websocket")
        };
        let (text, settled) = written(response(), |to| to.length = Some(0));
        assert!(text.contains("connection: upgrade\r\n"), "{text}");
        assert!(settled.keeps);
        let (text, settled) = written(response(), |to| (to.length, to.keeps) = (Some(0), false));
        assert!(text.contains("connection: upgrade\r\nconnection: close\r\n"));
        assert!(!settled.keeps);
    }

    #[test]
    fn a_field_takes_the_place_of_those_of_its_name() {
        let (name, value) = (
            HeaderName::from_static("x-id"),
            HeaderValue::from_static("b"),
        );
        let response = Response::builder().header("x-id", "a");
        let (text, _) = written(response, |_| {});
        assert!(text.contains("x-id: a\r\n"));
        let (head, ()) = Response::builder()
            .header("x-id", "a")
            .body(())
            .unwrap()
            .into_parts();
        let to = ResponseContext {
            method: &Method::GET,
            version: Version::HTTP_11,
            keeps: true,
            takes_trailers: false,
            date: &value,
            field: Some((name, value.as_bytes())),
            verbatim: None,
            numbers: &[],
            length: Some(0),
        };
        let mut out = Vec::new();
        write_response(&head, &to, &mut out);
        let text = String::from_utf8(out).unwrap();

        assert_eq!(text.matches("x-id").count(), 1);
        assert!(text.contains("x-id: b\r\n"));
    }

    #[test]
    fn a_number_takes_the_place_of_the_fields_of_its_name() {
        let response = Response::builder()
            .header("x-left", "a")
            .header("x-other", "b")
            .header("x-left", "c");
        let numbers = [
            (HeaderName::from_static("x-left"), 0),
            (HeaderName::from_static("x-limit"), u64::MAX),
        ];
        let (head, ()) = response.body(()).unwrap().into_parts();
        let to = ResponseContext {
            method: &Method::GET,
            version: Version::HTTP_11,
            keeps: true,
            takes_trailers: false,
            date: &HeaderValue::from_static("now"),
            field: None,
            verbatim: None,
            numbers: &numbers,
            length: Some(105),
        };
        let mut out = Vec::new();
        write_response(&head, &to, &mut out);

        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 200 OK\r\nx-other: b\r\nx-left: 0\r\nx-limit: 18446744073709551615\r\n\
             date: now\r\ncontent-length: 105\r\n\r\n"
        );
    }

    #[test]
    fn a_switch_of_protocols_keeps_its_fields() {
        let response = Response::builder()
            .status(101)
            .header(CONNECTION, "upgrade");
        let (text, settled) = written(response, |_| {});

        assert!(text.starts_with("HTTP/1.1 101 Switching Protocols\r\n"));
        assert!(text.contains("connection: upgrade\r\n"));
        assert_eq!(settled.framing, None);
    }
}
