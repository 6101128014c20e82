//! A request made again from the bytes that were sent of it.
//!
//! A kept connection may be closed by its target at the very moment a request is written to it. Such a
//! request, if it may be repeated, is read back from what was written, so that no request pays for a
//! copy it will hardly ever need.

use crate::request_body::RequestBody;
use http::header::HeaderMap;
use http::{HeaderName, HeaderValue, Method, Request, Uri};

const MAX_FIELDS: usize = 512;

/// Whether a request may be sent twice without the client having asked for that: it has no body and a
/// method that is idempotent. [RFC 9110 §9.2.2]
pub(crate) fn may_repeat(method: &Method, has_body: bool) -> bool {
    !has_body
        && [
            Method::GET,
            Method::HEAD,
            Method::OPTIONS,
            Method::TRACE,
            Method::PUT,
            Method::DELETE,
        ]
        .contains(method)
}

/// The request whose head these bytes are; none when they do not hold a whole head.
pub(crate) fn request(sent: &[u8]) -> Option<Request<RequestBody>> {
    let mut fields = vec![httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    if !parsed.parse(sent).ok()?.is_complete() {
        return None;
    }
    let mut request = Request::new(RequestBody::default());
    *request.method_mut() = parsed.method?.parse().ok()?;
    *request.uri_mut() = Uri::try_from(parsed.path?).ok()?;
    let headers: &mut HeaderMap = request.headers_mut();
    for field in parsed.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_back_as_it_was_sent() {
        let sent = b"GET /a?b=c HTTP/1.1\r\nhost: x\r\nx-a: 1\r\nx-a: 2\r\n\r\n";
        let request = request(sent).unwrap();

        assert_eq!(request.method(), Method::GET);
        assert_eq!(request.uri(), "/a?b=c");
        let values: Vec<_> = request.headers().get_all("x-a").iter().collect();
        assert_eq!(values, ["1", "2"]);
    }

    #[test]
    fn half_a_head_is_no_request() {
        assert!(request(b"GET / HTTP/1.1\r\nhost: x\r\n").is_none());
        assert!(request(b"").is_none());
    }

    #[test]
    fn only_idempotent_requests_without_a_body_may_be_repeated() {
        assert!(may_repeat(&Method::GET, false));
        assert!(!may_repeat(&Method::GET, true));
        assert!(!may_repeat(&Method::POST, false));
    }
}
