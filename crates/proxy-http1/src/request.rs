//! Parsing and serialization of request heads.

use crate::body_length::BodyLength;
use crate::fields::{self, Fields, Head, is_hop_by_hop, number, trimmed};
use crate::verbatim::VerbatimFields;
use crate::{buffer_pool, find_byte};
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{Method, Request, Uri, Version};
use proxy_framing::{escaped_for_uri, is_name};

/// A request head, and its meaning for framing and connection.
#[derive(Debug)]
pub struct RequestHead {
    /// The head as a type of the `http` crate; without fields if `fields` is present.
    pub request: Request<()>,
    /// Unparsed fields, if none of them is hop-by-hop except `Connection: keep-alive`.
    pub fields: Option<VerbatimFields>,
    /// Framing of the body; without length or transfer coding there is no body. [RFC 9112 §6.3]
    pub extent: BodyLength,
    /// Whether the connection persists after the request.
    pub keeps: bool,
    /// Whether `Expect: 100-continue` is present. [RFC 9110 §10.1.1]
    pub expects: bool,
    /// Whether `TE: trailers` is present. [RFC 9110 §10.1.4]
    pub takes_trailers: bool,
}

/// Path and query as sent, in a request's extensions. The `http` crate does not accept some of
/// their bytes, so the request's URI has these escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawTarget(pub Bytes);

impl RawTarget {
    /// Path and query with the bytes escaped that the `http` crate does not accept; `None` if the
    /// result is too long for the crate, or the target is malformed.
    #[must_use]
    pub fn for_uri(&self) -> Option<PathAndQuery> {
        PathAndQuery::from_maybe_shared(Bytes::from(escaped_for_uri(&self.0))).ok()
    }
}

/// End of a request line; HTTP/1.0 has the same length.
const LINE_END: &[u8] = b" HTTP/1.1\r\n";

/// Meaning of the fields, in case they need not be parsed into a map.
struct Summary {
    length: u64,
    keeps: bool,
}

/// Parses a validated head; `None` if the `http` crate does not accept its method or target.
#[must_use]
pub fn read_request(head: Head) -> Option<RequestHead> {
    let is_new = head.bytes.get(..head.lines.start)?.ends_with(LINE_END);
    let request = read_line(&head, is_new)?;
    if let Some(Summary { length, keeps }) = summary(&head, is_new) {
        return Some(RequestHead {
            request,
            fields: Some(VerbatimFields(head)),
            extent: BodyLength::Length(length),
            keeps,
            expects: false,
            takes_trailers: false,
        });
    }
    read_fields(&head, request, is_new)
}

/// Evaluates the fields; `None` if one of them is hop-by-hop, except `Connection: keep-alive`.
fn summary(Head { bytes, lines }: &Head, is_new: bool) -> Option<Summary> {
    let (mut length, mut keeps) = (0, is_new);
    for line in &lines.fields {
        let name = bytes.get(line.from..line.colon)?;
        let value = || {
            let (from, to) = trimmed(bytes, line.colon + 1, line.end);
            bytes.get(from..to)
        };
        match name.len() {
            10 if is_name(name, b"connection") => {
                if !value()?.eq_ignore_ascii_case(b"keep-alive") {
                    return None;
                }
                keeps = true;
            }
            14 if is_name(name, b"content-length") => length = number(value()?)?,
            _ if is_hop_by_hop(name) => return None,
            _ => {}
        }
    }
    Some(Summary { length, keeps })
}

/// Parses the fields into the map of `request`.
fn read_fields(
    Head { bytes, lines }: &Head,
    mut request: Request<()>,
    is_new: bool,
) -> Option<RequestHead> {
    let mut read = Fields::new(buffer_pool::map(), is_new);
    read.take(bytes, lines)?;
    let keeps = read.keeps();
    *request.headers_mut() = read.headers;
    Some(RequestHead {
        request,
        fields: None,
        extent: read.extent.unwrap_or(BodyLength::Length(0)),
        keeps,
        expects: read.expects && is_new,
        takes_trailers: read.takes_trailers && is_new,
    })
}

/// Parses the head without its fields.
fn read_line(Head { bytes: head, lines }: &Head, is_new: bool) -> Option<Request<()>> {
    let line = head.get(..lines.start)?;
    let method_end = find_byte::position(b' ', line)?;
    let target_end = line.len().checked_sub(LINE_END.len())?;
    let mut request = Request::new(());
    let method = Method::from_bytes(line.get(..method_end)?).ok()?;
    let target = method_end + 1..target_end;
    line.get(target.clone())?;
    let target = head.slice(target);
    *request.uri_mut() = if let Some(uri) = read_target(&method, target.clone()) {
        uri
    } else {
        let uri = read_target(&method, escaped_for_uri(&target).into())?;
        request.extensions_mut().insert(origin_form(target)?);
        uri
    };
    *request.method_mut() = method;
    *request.version_mut() = if is_new {
        Version::HTTP_11
    } else {
        Version::HTTP_10
    };
    Some(request)
}

/// Parses the target. `OPTIONS` with a target that lacks a path concerns the whole server, which
/// only the raw bytes show. [RFC 9112 §3.2.4]
fn read_target(method: &Method, target: Bytes) -> Option<Uri> {
    if *method != Method::OPTIONS || names_path(&target) {
        return Uri::from_maybe_shared(target).ok();
    }
    let mut parts = Uri::from_maybe_shared(target).ok()?.into_parts();
    parts.path_and_query = Some(PathAndQuery::from_static("*"));
    Uri::from_parts(parts).ok()
}

/// Path and query of a target, which may be an absolute URI.
fn origin_form(target: Bytes) -> Option<RawTarget> {
    if target.starts_with(b"/") {
        return Some(RawTarget(target));
    }
    let scheme = target.windows(3).position(|at| at == b"://")?;
    let authority = target.get(scheme + 3..)?;
    let path = authority.iter().position(|byte| b"/?".contains(byte))?;
    let rest = target.slice(scheme + 3 + path..);
    if rest.starts_with(b"/") {
        return Some(RawTarget(rest));
    }
    Some(RawTarget([b"/", &*rest].concat().into()))
}

/// Returns true if `target`, in any form, has a path or a query.
fn names_path(target: &[u8]) -> bool {
    let scheme = target.windows(3).position(|at| at == b"://");
    match scheme.and_then(|at| target.get(at + 3..)) {
        Some(rest) if !target.starts_with(b"/") => rest.iter().any(|byte| b"/?".contains(byte)),
        Some(_) | None => true,
    }
}

/// Appends the head of `request` as HTTP/1.1, followed by the field lines that `more` appends.
pub fn write_request<B>(request: &Request<B>, out: &mut Vec<u8>, more: impl FnOnce(&mut Vec<u8>)) {
    let target = request.uri().path_and_query();
    let target = target.map_or("/", PathAndQuery::as_str).as_bytes();
    let raw = request.extensions().get::<RawTarget>();
    out.extend_from_slice(request.method().as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(raw.map_or(target, |RawTarget(raw)| raw));
    out.extend_from_slice(b" HTTP/1.1\r\n");
    fields::write(request.headers(), out);
    more(out);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_without_a_path_asks_about_the_whole_server() {
        let path = |method: &str, target: &'static str| {
            let method = method.parse().unwrap();
            let uri = read_target(&method, Bytes::from_static(target.as_bytes())).unwrap();
            uri.path_and_query().unwrap().to_string()
        };

        assert_eq!(path("OPTIONS", "http://a.test"), "*");
        assert_eq!(path("OPTIONS", "*"), "*");
        assert_eq!(path("OPTIONS", "http://a.test/"), "/");
        assert_eq!(path("OPTIONS", "http://a.test?q"), "/?q");
        assert_eq!(path("OPTIONS", "/a://b"), "/a://b");
        assert_eq!(path("GET", "http://a.test"), "/");
    }
    use bytes::BytesMut;
    use proxy_framing::Lines;

    fn read(head: &str) -> RequestHead {
        read_request(Head::take(&mut BytesMut::from(head), Lines::new()).unwrap()).unwrap()
    }

    #[test]
    fn a_head_is_read_line_by_line() {
        let head = read("POST /a?b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n");

        assert_eq!(head.request.method(), Method::POST);
        assert_eq!(head.request.uri(), "/a?b");
        assert_eq!(head.request.version(), Version::HTTP_11);
        assert_eq!(head.fields.unwrap().to_map()["host"], "x");
        assert!(head.request.headers().is_empty());
        assert_eq!(head.extent, BodyLength::Length(3));
    }

    #[test]
    fn fields_about_the_connection_are_read_into_the_map() {
        for (field, in_map) in [
            ("X: close", false),
            ("Connection: Keep-Alive", false),
            ("Connection: keep-alive, x", true),
            ("Connection: close", true),
            ("TE: trailers", true),
            ("Expect: 100-continue", true),
            ("Trailer: x", true),
            ("Upgrade: h2c", true),
            ("Keep-Alive: 5", true),
            ("Proxy-Connection: close", true),
            ("HTTP2-Settings: AA", true),
            ("Transfer-Encoding: chunked", true),
            ("Content-Length: 0", false),
            ("Content-Length: 1234567890123456789", true),
        ] {
            let head = read(&format!("POST / HTTP/1.1\r\n{field}\r\n\r\n"));
            assert_eq!(head.fields.is_none(), in_map, "{field}");
            assert_eq!(head.request.headers().len(), usize::from(in_map), "{field}");
        }
    }

    #[test]
    fn every_form_of_a_target_is_read() {
        for (line, target) in [
            ("GET http://a.test:80/x HTTP/1.1", "http://a.test:80/x"),
            ("OPTIONS * HTTP/1.1", "*"),
            ("CONNECT a.test:443 HTTP/1.1", "a.test:443"),
        ] {
            let head = read(&format!("{line}\r\n\r\n"));
            assert_eq!(head.request.uri().to_string(), target);
        }
    }

    #[test]
    fn an_old_client_keeps_only_what_it_asks_to_keep() {
        assert!(!read("GET / HTTP/1.0\r\n\r\n").keeps);
        assert!(read("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keeps);
        assert!(!read("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").expects);
    }

    #[test]
    fn a_target_that_http_cannot_represent_is_forwarded_unchanged() {
        for (target, uri, raw) in [
            (
                "/a`<b>?c=\"d\"<>",
                "/a%60%3Cb%3E?c=%22d%22%3C%3E",
                "/a`<b>?c=\"d\"<>",
            ),
            ("/?q={a=\"b`c\"}", "/?q={a=%22b`c%22}", "/?q={a=\"b`c\"}"),
            ("http://a.test?\"", "http://a.test/?%22", "/?\""),
            ("http://a.test:80/<?", "http://a.test:80/%3C?", "/<?"),
        ] {
            let head = read(&format!("GET {target} HTTP/1.1\r\n\r\n"));
            assert_eq!(head.request.uri().to_string(), uri);
            let mut out = Vec::new();
            write_request(&head.request, &mut out, |_| ());
            let line = format!("GET {raw} HTTP/1.1\r\n\r\n");
            assert_eq!(out, line.as_bytes(), "{target}");
        }
        let common = read("GET /a\"{}|^?a={}|^` HTTP/1.1\r\n\r\n");
        assert!(common.request.extensions().get::<RawTarget>().is_none());
    }

    #[test]
    fn a_request_is_written_line_by_line() {
        let request = Request::post("/a?b").header("x", "1").body(()).unwrap();
        let mut out = Vec::new();
        write_request(&request, &mut out, |out| out.extend_from_slice(b"y: 2\r\n"));

        assert_eq!(out, b"POST /a?b HTTP/1.1\r\nx: 1\r\ny: 2\r\n\r\n");
    }
}
