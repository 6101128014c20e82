//! Writes request heads and reads response heads.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version};
use hyper::ext::ReasonPhrase;
use proxy_framing::RequestKind;

/// `HTTP/1.x SSS`, which the guard has seen to be there.
const STATUS_LINE: usize = 12;

/// Most response heads hold fewer fields.
const USUAL_FIELDS: usize = 12;

/// How the end of a response's body is told. [RFC 9112 §6.3]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// By its length, which may be 0.
    Length(u64),
    /// By its last chunk.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

/// A response head and what it says about the connection.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) response: Response<()>,
    pub(crate) extent: Extent,
    /// Whether the target means to keep the connection.
    pub(crate) keeps: bool,
}

/// Appends the head of `request` in HTTP/1.1.
pub(crate) fn write_request<B>(request: &Request<B>, out: &mut Vec<u8>) {
    let target = request.uri().path_and_query();
    out.extend_from_slice(request.method().as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(target.map_or("/", PathAndQuery::as_str).as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    write_fields(request.headers(), out);
    out.extend_from_slice(b"\r\n");
}

/// Appends a field line for each header.
pub(crate) fn write_fields(headers: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in headers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// The status of a head that begins with these bytes.
pub(crate) fn status(head: &[u8]) -> Option<StatusCode> {
    StatusCode::from_bytes(head.get(9..STATUS_LINE)?).ok()
}

/// Reads a whole head that a guard has accepted. None if it is not one after all.
pub(crate) fn read_response(head: &Bytes, kind: RequestKind) -> Option<Head> {
    let status = status(head)?;
    let mut response = Response::new(());
    *response.status_mut() = status;
    let is_new = head.get(7) == Some(&b'1');
    *response.version_mut() = if is_new {
        Version::HTTP_11
    } else {
        Version::HTTP_10
    };
    let line_end = memchr::memchr(b'\n', head)? + 1;
    let reason = head.get(STATUS_LINE + 1..line_end.checked_sub(2)?);
    if let Some(reason) = reason.filter(|own| is_uncommon(own, status))
        && let Ok(reason) = ReasonPhrase::try_from(reason)
    {
        response.extensions_mut().insert(reason);
    }
    let mut read = Fields {
        bytes: head,
        headers: HeaderMap::with_capacity(USUAL_FIELDS),
        extent: Extent::UntilClose,
        keeps: is_new,
    };
    read.take(line_end)?;
    let Fields {
        headers,
        extent,
        keeps,
        ..
    } = read;
    *response.headers_mut() = headers;
    let bodiless = kind == RequestKind::Head
        || status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let extent = if bodiless { Extent::Length(0) } else { extent };
    Some(Head {
        response,
        extent,
        keeps,
    })
}

/// Reads the fields of a trailer section that a guard has accepted.
pub(crate) fn read_trailers(section: &Bytes) -> Option<HeaderMap> {
    let mut read = Fields {
        bytes: section,
        headers: HeaderMap::new(),
        extent: Extent::UntilClose,
        keeps: true,
    };
    read.take(0)?;
    Some(read.headers)
}

fn is_uncommon(reason: &[u8], status: StatusCode) -> bool {
    let usual = status.canonical_reason().unwrap_or_default();
    !reason.is_empty() && reason != usual.as_bytes()
}

struct Fields<'b> {
    bytes: &'b Bytes,
    headers: HeaderMap,
    extent: Extent,
    keeps: bool,
}

impl Fields<'_> {
    /// Takes the lines from `at` to the empty one.
    fn take(&mut self, mut at: usize) -> Option<()> {
        loop {
            let rest = self.bytes.get(at..)?;
            if rest.starts_with(b"\r\n") {
                return Some(());
            }
            let colon = memchr::memchr(b':', rest)?;
            let end = colon + memchr::memchr(b'\n', rest.get(colon..)?)?;
            let name = HeaderName::from_bytes(rest.get(..colon)?).ok()?;
            let raw = rest.get(colon + 1..end)?;
            let start = raw.len() - raw.trim_ascii_start().len();
            let length = raw.trim_ascii().len();
            let from = at + colon + 1 + start.min(raw.len() - length);
            let value = HeaderValue::from_maybe_shared(self.bytes.slice(from..from + length));
            self.add(name, value.ok()?);
            at += end + 1;
        }
    }

    fn add(&mut self, name: HeaderName, value: HeaderValue) {
        match name.as_str().len() {
            10 if name == CONNECTION => self.hear(value.as_bytes()),
            14 if name == CONTENT_LENGTH => {
                let length = value.to_str().ok().and_then(|text| text.parse().ok());
                self.extent = length.map_or(self.extent, Extent::Length);
            }
            17 if name == TRANSFER_ENCODING => self.extent = Extent::Chunked,
            _ => {}
        }
        self.headers.append(name, value);
    }

    /// [RFC 9112 §9.3]
    fn hear(&mut self, connection: &[u8]) {
        for option in connection.split(|byte| *byte == b',') {
            let option = option.trim_ascii();
            if option.eq_ignore_ascii_case(b"close") {
                self.keeps = false;
                return;
            }
            self.keeps |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &'static str, kind: RequestKind) -> Head {
        read_response(&Bytes::from_static(head.as_bytes()), kind).unwrap()
    }

    #[test]
    fn fields_are_read_without_the_space_around_them() {
        let head = read(
            "HTTP/1.1 200 OK\r\nA:b\r\nx-empty:  \r\nSet-Cookie: \t1 2 \r\nset-cookie: 3\r\n\r\n",
            RequestKind::Other,
        );

        let headers = head.response.headers();
        assert_eq!(headers["a"], "b");
        assert_eq!(headers["x-empty"], "");
        let cookies: Vec<_> = headers.get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["1 2", "3"]);
        assert_eq!(head.extent, Extent::UntilClose);
    }

    #[test]
    fn what_has_no_body_has_none_whatever_it_says() {
        for (head, kind) in [
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
                RequestKind::Head,
            ),
            (
                "HTTP/1.1 304 x\r\ntransfer-encoding: chunked\r\n\r\n",
                RequestKind::Other,
            ),
            ("HTTP/1.1 204 No Content\r\n\r\n", RequestKind::Other),
        ] {
            assert_eq!(read(head, kind).extent, Extent::Length(0), "{head}");
        }
    }

    #[test]
    fn a_connection_is_kept_as_its_version_and_options_say() {
        for (head, keeps) in [
            ("HTTP/1.1 200 OK\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nconnection: x, Close\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\n\r\n", true),
        ] {
            assert_eq!(read(head, RequestKind::Other).keeps, keeps, "{head}");
        }
    }

    #[test]
    fn an_uncommon_reason_is_kept() {
        let common = read("HTTP/1.1 200 OK\r\n\r\n", RequestKind::Other);
        assert!(common.response.extensions().is_empty());
        let own = read("HTTP/1.1 200 Fine\r\n\r\n", RequestKind::Other);
        let reason = own.response.extensions().get::<ReasonPhrase>().unwrap();
        assert_eq!(reason.as_bytes(), b"Fine");
        let none = read("HTTP/1.1 200 \r\n\r\n", RequestKind::Other);
        assert!(none.response.extensions().is_empty());
    }

    #[test]
    fn a_request_is_written_line_by_line() {
        let request = Request::post("/a?b").header("x", "1").body(()).unwrap();
        let mut out = Vec::new();
        write_request(&request, &mut out);

        assert_eq!(out, b"POST /a?b HTTP/1.1\r\nx: 1\r\n\r\n");
    }
}
