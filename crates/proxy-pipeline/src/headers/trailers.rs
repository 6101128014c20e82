//! Filtering of trailers.
//!
//! Receivers may merge trailers into the headers. Fields for framing, routing, authentication or
//! request handling are therefore not allowed after the body. [RFC 9110 §6.5.1]

use crate::headers::forwarding_claims::{remove_alike, remove_claims};
use crate::headers::http2_fields::check_field;
use crate::headers::names;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, COOKIE, EXPECT, HOST, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, MAX_FORWARDS, PRAGMA, PROXY_AUTHORIZATION, RANGE, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName};

/// Hop-by-hop and framing fields.
const CONNECTION_FIELDS: [HeaderName; 9] = [
    CONNECTION,
    CONTENT_LENGTH,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    names::HTTP2_SETTINGS,
    names::KEEP_ALIVE,
    names::PROXY_CONNECTION,
];

/// Removes the fields from a request's trailers that are only valid in a head.
#[cold]
pub(crate) fn for_targets(trailers: &mut HeaderMap) {
    let ours = [names::CORRELATION_ID, names::GRPC_TIMEOUT];
    let head_fields = [
        AUTHORIZATION,
        CACHE_CONTROL,
        CONTENT_ENCODING,
        CONTENT_RANGE,
        CONTENT_TYPE,
        COOKIE,
        EXPECT,
        HOST,
        IF_MATCH,
        IF_MODIFIED_SINCE,
        IF_NONE_MATCH,
        IF_RANGE,
        IF_UNMODIFIED_SINCE,
        MAX_FORWARDS,
        PRAGMA,
        PROXY_AUTHORIZATION,
        RANGE,
    ];
    for name in ours.iter().chain(&head_fields) {
        trailers.remove(name);
    }
    remove_claims(trailers, false);
    for_clients(trailers);
}

/// Removes the fields `names` from a request's trailers, with names that upstreams treat as equal:
/// the proxy has already evaluated them in the head.
#[cold]
pub(crate) fn remove_decided(trailers: &mut HeaderMap, names: &[HeaderName]) {
    for name in names {
        trailers.remove(name);
        remove_alike(trailers, name.as_str());
    }
}

/// Removes from a response's trailers the fields that HTTP/1.1 or HTTP/2 cannot represent.
#[cold]
pub(crate) fn for_clients(trailers: &mut HeaderMap) {
    for name in &CONNECTION_FIELDS {
        trailers.remove(name);
    }
    remove_unfit(trailers);
}

fn remove_unfit(trailers: &mut HeaderMap) {
    let unfit: Vec<HeaderName> = trailers
        .iter()
        .filter(|(name, value)| check_field(name, value).is_err())
        .map(|(name, _)| name.clone())
        .collect();
    for name in unfit {
        trailers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn trailers_cannot_replace_headers() {
        let mut trailers = HeaderMap::new();
        for name in [
            "x-sum",
            "cookie",
            "x-forwarded-for",
            "x_forwarded_for",
            "x-real-ip",
            "via",
            "content-length",
            "x\"y",
        ] {
            let name = HeaderName::from_lowercase(name.as_bytes()).unwrap();
            trailers.append(name, HeaderValue::from_static("1"));
        }
        trailers.append("x-padded", HeaderValue::from_static(" 1"));
        for_targets(&mut trailers);

        let left: Vec<_> = trailers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["x-sum"]);
    }
}
