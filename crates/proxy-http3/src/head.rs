//! Validation of request heads and trailers. [RFC 9114 §4.2, §4.3]

use crate::code::{ErrorCode, Http3Error};
use crate::qpack::{Field, FieldSection};
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use proxy_framing::is_host;

/// A valid request head.
#[derive(Debug)]
pub struct RequestHead {
    /// Request method.
    pub method: Method,
    /// `:authority`, a host with or without port; `None` if the request has only `Host`.
    pub authority: Option<Bytes>,
    /// Path and query as sent; `None` for CONNECT.
    pub path: Option<Bytes>,
    /// Other fields, in order.
    pub fields: HeaderMap,
    /// Length of the body, from a single valid `Content-Length`.
    pub length: Option<u64>,
}

/// Error of a section with more fields than a `HeaderMap` can hold.
const TOO_MANY: Http3Error = Http3Error::stream(
    ErrorCode::EXCESSIVE_LOAD,
    "more fields than any message has",
);

/// Connection-specific fields, which HTTP/3 forbids. [RFC 9114 §4.2]
const CONNECTION_FIELDS: [&[u8]; 5] = [
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"transfer-encoding",
    b"upgrade",
];

impl RequestHead {
    /// Validates `section`.
    ///
    /// # Errors
    /// The first rule that it violates; its stream ends.
    pub fn read(section: &FieldSection) -> Result<Self, Http3Error> {
        let mut pseudo = PseudoFields::default();
        let mut fields = empty_map(section)?;
        for field in section.fields() {
            if field.name.starts_with(b":") {
                if !fields.is_empty() {
                    return Err(Http3Error::malformed(
                        "a pseudo-header field after other fields",
                    ));
                }
                pseudo.take(field)?;
                continue;
            }
            append(field, &mut fields)?;
        }
        pseudo.finish(fields)
    }
}

/// Validates trailers.
///
/// # Errors
/// The first rule that they violate; their stream ends.
pub fn read_trailers(section: &FieldSection) -> Result<HeaderMap, Http3Error> {
    let mut fields = empty_map(section)?;
    for field in section.fields() {
        if field.name.starts_with(b":") {
            return Err(Http3Error::malformed("a pseudo-header field in trailers"));
        }
        append(field, &mut fields)?;
    }
    Ok(fields)
}

#[derive(Debug, Default)]
struct PseudoFields {
    method: Option<Bytes>,
    scheme: Option<Bytes>,
    authority: Option<Bytes>,
    path: Option<Bytes>,
}

impl PseudoFields {
    fn take(&mut self, field: Field) -> Result<(), Http3Error> {
        let value = match &*field.name {
            b":method" => &mut self.method,
            b":scheme" => &mut self.scheme,
            b":authority" => &mut self.authority,
            b":path" => &mut self.path,
            _ => return Err(Http3Error::malformed("an unknown pseudo-header field")),
        };
        if value.replace(field.value).is_some() {
            return Err(Http3Error::malformed("a pseudo-header field occurs twice"));
        }
        Ok(())
    }

    /// Checks the pseudo-header fields as a whole. [RFC 9114 §4.3.1, §4.4]
    fn finish(self, fields: HeaderMap) -> Result<RequestHead, Http3Error> {
        let Self {
            method,
            scheme,
            authority,
            path,
        } = self;
        let method = method.ok_or(Http3Error::malformed("a request without a method"))?;
        let method = Method::from_bytes(&method)
            .map_err(|_| Http3Error::malformed("the method is not a token"))?;
        if let Some(authority) = &authority
            && !is_host(authority)
        {
            return Err(Http3Error::malformed("the authority is not a host"));
        }
        if method == Method::CONNECT {
            if scheme.is_some() || path.is_some() || authority.is_none() {
                return Err(Http3Error::malformed(
                    "CONNECT has an authority, and neither scheme nor path",
                ));
            }
        } else {
            let scheme = scheme.ok_or(Http3Error::malformed("a request without a scheme"))?;
            if !scheme.eq_ignore_ascii_case(b"https") && !scheme.eq_ignore_ascii_case(b"http") {
                return Err(Http3Error::malformed(
                    "the scheme is neither https nor http",
                ));
            }
            let path = path
                .as_deref()
                .ok_or(Http3Error::malformed("a request without a path"))?;
            let is_path = path.starts_with(b"/") || path == b"*" && method == Method::OPTIONS;
            // Only visible ASCII, as in an HTTP/1 request line. Fragments are never sent, and
            // `http::Uri` would drop them. [RFC 9110 §7.1]
            let is_visible = |byte: &u8| byte.is_ascii_graphic() && *byte != b'#';
            if !is_path || !path.iter().all(is_visible) {
                return Err(Http3Error::malformed("the path is not a path of HTTP"));
            }
        }
        Ok(RequestHead {
            length: length(&fields),
            method,
            authority,
            path,
            fields,
        })
    }
}

/// Length in a single valid `Content-Length`. As with HTTP/2, an invalid one leads to an error
/// response.
fn length(fields: &HeaderMap) -> Option<u64> {
    let mut values = fields.get_all(CONTENT_LENGTH).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    let value = value.to_str().ok()?;
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| value.parse().ok()).flatten()
}

fn append(field: Field, fields: &mut HeaderMap) -> Result<(), Http3Error> {
    let Field {
        name,
        value,
        never_indexed,
    } = field;
    if CONNECTION_FIELDS.contains(&&*name) {
        return Err(Http3Error::malformed("a connection-specific field"));
    }
    if &*name == b"te" && &*value != b"trailers" {
        return Err(Http3Error::malformed(
            "`te` with a value other than `trailers`",
        ));
    }
    // Refuses upper case.
    let name = HeaderName::from_lowercase(&name)
        .map_err(|_| Http3Error::malformed("the name of a field is not a lower-case token"))?;
    let mut value = HeaderValue::from_maybe_shared(value)
        .map_err(|_| Http3Error::malformed("the value of a field has a control byte"))?;
    value.set_sensitive(never_indexed);
    fields.try_append(name, value).map_err(|_| TOO_MANY)?;
    Ok(())
}

/// Allocates a map for `section`. The section's limits may permit more fields than a map can hold.
fn empty_map(section: &FieldSection) -> Result<HeaderMap, Http3Error> {
    HeaderMap::try_with_capacity(section.len()).map_err(|_| TOO_MANY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qpack::SectionLimits;

    fn section(fields: &[(&str, &str)]) -> FieldSection {
        let mut bytes = vec![0, 0];
        for (name, value) in fields {
            // Literals with lengths below the prefix's maximum, or one byte above it.
            match u8::try_from(name.len()).unwrap() {
                len @ 0..7 => bytes.push(0x20 | len),
                len => bytes.extend([0x27, len - 7]),
            }
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(u8::try_from(value.len()).unwrap());
            bytes.extend_from_slice(value.as_bytes());
        }
        let limits = SectionLimits {
            max_bytes: 10_000,
            max_fields: 100,
        };
        FieldSection::decode(&bytes, limits).unwrap()
    }

    const GET: [(&str, &str); 4] = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "a.test"),
        (":path", "/x?y"),
    ];

    fn with(more: &[(&str, &str)]) -> Result<RequestHead, &'static str> {
        let fields = [&GET, more].concat();
        RequestHead::read(&section(&fields)).map_err(|error| error.rule)
    }

    /// The head without the field `name`, preceded by `more`.
    fn without(
        name: &str,
        more: &[(&'static str, &'static str)],
    ) -> Result<RequestHead, &'static str> {
        let rest = GET.into_iter().filter(|field| field.0 != name);
        let fields: Vec<_> = more.iter().copied().chain(rest).collect();
        RequestHead::read(&section(&fields)).map_err(|error| error.rule)
    }

    #[test]
    fn a_head_is_read() {
        let head = with(&[("te", "trailers"), ("content-length", "05"), ("x", "")]).unwrap();
        assert_eq!(head.method, Method::GET);
        assert_eq!(head.authority.as_deref(), Some(&b"a.test"[..]));
        assert_eq!(head.path.as_deref(), Some(&b"/x?y"[..]));
        assert_eq!(head.length, Some(5));
        assert_eq!(head.fields.len(), 3);
    }

    #[test]
    fn malformed_heads_are_refused() {
        for field in [
            ("Host", "a.test"),
            ("x y", "1"),
            ("", "1"),
            ("x", "a\r\nb"),
            ("x", "a\0"),
            ("connection", "close"),
            ("keep-alive", "1"),
            ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("te", "gzip"),
            ("te", "trailers, gzip"),
            (":path", "/other"),
            (":method", "GET"),
            (":authority", "a.test"),
            (":status", "200"),
            (":protocol", "websocket"),
            (":x", ""),
        ] {
            assert!(with(&[field]).is_err(), "{field:?}");
        }
        assert_eq!(
            with(&[("x", "1"), (":x", "")]).unwrap_err(),
            "a pseudo-header field after other fields"
        );
        let after = [GET[0], GET[1], GET[2], ("x", "1"), GET[3]];
        assert!(RequestHead::read(&section(&after)).is_err());
    }

    #[test]
    fn each_pseudo_header_field_has_a_valid_value() {
        assert!(without(":authority", &[]).is_ok());
        for name in [":method", ":scheme", ":path"] {
            assert!(without(name, &[]).is_err(), "{name}");
            assert!(without(name, &[(name, "")]).is_err(), "{name}");
        }
        for (name, value) in [
            (":method", "G T"),
            (":scheme", "ftp"),
            (":authority", ""),
            (":authority", "me@a.test"),
            (":authority", "a b"),
            (":path", "x"),
            (":path", "*"),
            (":path", "/a b"),
            (":path", "/a#b"),
            (":path", "/a\r\nb"),
            (":path", "/\u{e9}"),
            (":path", "http://a.test/"),
        ] {
            assert!(without(name, &[(name, value)]).is_err(), "{name} {value:?}");
        }
        assert!(without(":path", &[(":path", "/<\">`{}|^\\")]).is_ok());
        let options = [(":method", "OPTIONS"), GET[1], GET[2], (":path", "*")];
        assert!(RequestHead::read(&section(&options)).is_ok());
    }

    #[test]
    fn connect_has_an_authority_only() {
        let connect = (":method", "CONNECT");
        assert!(RequestHead::read(&section(&[connect, GET[2]])).is_ok());
        assert!(RequestHead::read(&section(&[connect])).is_err());
        assert!(RequestHead::read(&section(&[connect, GET[1], GET[2]])).is_err());
        assert!(RequestHead::read(&section(&[connect, GET[2], GET[3]])).is_err());
    }

    #[test]
    fn only_a_single_valid_length_is_expected() {
        for (values, length) in [
            (&["5"][..], Some(5)),
            (&["5", "5"], None),
            (&["5, 5"], None),
            (&["+5"], None),
            (&[""], None),
            (&["99999999999999999999"], None),
        ] {
            let fields: Vec<_> = values
                .iter()
                .map(|value| ("content-length", *value))
                .collect();
            assert_eq!(with(&fields).unwrap().length, length, "{values:?}");
        }
    }

    #[test]
    fn more_fields_than_a_map_holds_are_refused() {
        let many = [&[0, 0][..], &vec![0xd1; 40_000]].concat();
        let limits = SectionLimits {
            max_bytes: 1 << 22,
            max_fields: 100_000,
        };
        let section = FieldSection::decode(&many, limits).unwrap();
        for code in [
            RequestHead::read(&section).unwrap_err().code,
            read_trailers(&section).unwrap_err().code,
        ] {
            assert_eq!(code, ErrorCode::EXCESSIVE_LOAD);
        }
    }

    #[test]
    fn trailers_have_no_pseudo_header_fields() {
        assert_eq!(read_trailers(&section(&[("x-sum", "1")])).unwrap().len(), 1);
        for field in [GET[0], (":x", ""), ("X", "1"), ("upgrade", "x")] {
            assert!(read_trailers(&section(&[field])).is_err());
        }
    }
}
