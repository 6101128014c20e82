//! Hop-by-hop headers: upgrade and trailers they request, and their removal.
//!
//! [RFC 9110 §7.6.1]: fields listed in `Connection` are removed first, then `Connection` itself and
//! similar fields. Names that the proxy sets or depends on cannot be removed this way.

use crate::headers::forwarding_claims::{is_claim, remove_claims};
use crate::headers::indexed_headers::{IndexedHeaders, KnownHeaders};
use crate::headers::names;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue};
use proxy_http1::VerbatimFields;

/// The fields of a request that are forwarded to its target, no longer indexed.
#[derive(Debug)]
pub(crate) struct EndToEndHeaders {
    /// Empty if the fields are in `verbatim`.
    pub(crate) map: HeaderMap,
    pub(crate) verbatim: Option<VerbatimFields>,
    pub(crate) host: Option<HeaderValue>,
    /// Some of the fields are forwarding claims.
    pub(crate) has_claims: bool,
    pub(crate) has_correlation_id: bool,
}

/// Removes the hop-by-hop fields of a request, and ends the index of its fields.
#[inline]
pub(crate) fn end_to_end(headers: IndexedHeaders) -> EndToEndHeaders {
    let (mut map, verbatim, known) = headers.into_parts();
    if verbatim.is_none() {
        strip(&mut map, &known);
    }
    EndToEndHeaders {
        map,
        verbatim,
        has_claims: known.has(KnownHeaders::FORWARDING),
        has_correlation_id: known.has(KnownHeaders::CORRELATION_ID),
        host: known.host,
    }
}

/// Removes the hop-by-hop fields of a response.
#[inline]
pub(crate) fn strip_response(headers: &mut HeaderMap) {
    strip(headers, &KnownHeaders::hop_by_hop_of(headers));
}

/// The protocols of a requested upgrade, as a list in the client's order of preference: the members
/// of all `Upgrade` lines except `h2c`, if `Connection` lists `upgrade`. [RFC 9110 §7.8]
pub(crate) fn wanted_upgrade(headers: &IndexedHeaders) -> Option<HeaderValue> {
    if !headers.has(KnownHeaders::UPGRADE) || !headers.has(KnownHeaders::CONNECTION) {
        return None;
    }
    let headers = headers.as_map();
    let named = headers
        .get_all(CONNECTION)
        .iter()
        .any(|value| list_members(value).any(|name| name.eq_ignore_ascii_case(b"upgrade")));
    if !named {
        return None;
    }
    // h2c is never tunnelled: HTTP/2 is terminated by this proxy.
    let protocols: Vec<&[u8]> = headers
        .get_all(UPGRADE)
        .iter()
        .flat_map(list_members)
        .filter(|protocol| !protocol.eq_ignore_ascii_case(b"h2c"))
        .collect();
    if protocols.is_empty() {
        return None;
    }
    HeaderValue::from_bytes(&protocols.join(&b", "[..])).ok()
}

/// Returns true if the sender accepts trailers. [RFC 9110 §10.1.4]
pub(crate) fn takes_trailers(headers: &IndexedHeaders) -> bool {
    headers.has(KnownHeaders::TE)
        && headers
            .as_map()
            .get_all(TE)
            .iter()
            .any(|value| list_members(value).any(|name| name.eq_ignore_ascii_case(b"trailers")))
}

/// Prepares a head for agents: removes claims of untrusted peers, and the fields that `Connection`
/// nominates. `Connection` keeps the names of protocol options.
#[cold]
pub(crate) fn strip_for_agents(headers: &mut IndexedHeaders, is_trusted: bool) {
    if headers.has(KnownHeaders::FORWARDING) {
        headers.edit(|map| remove_claims(map, is_trusted));
    }
    if headers.has(KnownHeaders::CONNECTION) {
        headers.edit(keep_protocol_options);
    }
}

/// Removes the fields that `Connection` nominates, and its members except protocol options.
fn keep_protocol_options(headers: &mut HeaderMap) {
    strip_nominated(headers, |name| is_protocol_option(name.as_str().as_bytes()));
    let options: Vec<_> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(list_members)
        .filter(|name| is_protocol_option(name))
        .collect();
    if let Ok(options) = HeaderValue::from_bytes(&options.join(&b", "[..])) {
        headers.insert(CONNECTION, options);
    }
}

/// Returns true if `name` is a protocol option in `Connection`, not a field to remove.
fn is_protocol_option(name: &[u8]) -> bool {
    ["close", "http2-settings", "keep-alive", "te", "upgrade"]
        .iter()
        .any(|option| name.eq_ignore_ascii_case(option.as_bytes()))
}

#[inline]
fn strip(headers: &mut HeaderMap, known: &KnownHeaders) {
    if known.has(KnownHeaders::HOP) {
        strip_found(headers, known);
    }
}

#[cold]
fn strip_found(headers: &mut HeaderMap, known: &KnownHeaders) {
    if known.has(KnownHeaders::CONNECTION) {
        strip_nominated(headers, |_| false);
        headers.remove(CONNECTION);
    }
    for (bit, name) in [
        (KnownHeaders::TE, TE),
        (KnownHeaders::UPGRADE, UPGRADE),
        (KnownHeaders::KEEP_ALIVE, names::KEEP_ALIVE),
        (KnownHeaders::PROXY_CONNECTION, names::PROXY_CONNECTION),
        (KnownHeaders::TRANSFER_ENCODING, TRANSFER_ENCODING),
        (KnownHeaders::EXPECT, EXPECT),
        (KnownHeaders::HTTP2_SETTINGS, names::HTTP2_SETTINGS),
    ] {
        if known.has(bit) {
            headers.remove(name);
        }
    }
}

/// Removes the fields that `Connection` nominates, except protected ones and ones that `is_kept`.
fn strip_nominated(headers: &mut HeaderMap, is_kept: impl Fn(&HeaderName) -> bool) {
    let usual = |value: &HeaderValue| {
        let value = value.as_bytes();
        value.eq_ignore_ascii_case(b"keep-alive") || value.eq_ignore_ascii_case(b"close")
    };
    if headers.get_all(CONNECTION).iter().all(usual) {
        return;
    }
    let nominated: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(list_members)
        .filter_map(|name| HeaderName::from_bytes(name).ok())
        .filter(|name| !is_protected(name) && !is_kept(name))
        .collect();
    for name in nominated {
        headers.remove(name);
    }
}

/// Names that end-to-end semantics, framing or the proxy itself depend on.
fn is_protected(name: &HeaderName) -> bool {
    [CONTENT_LENGTH, HOST, names::CORRELATION_ID].contains(name) || is_claim(name.as_str())
}

/// The members of a list, without empty ones. A member with a byte outside ASCII hides no
/// further one. [RFC 9110 §5.6.1]
pub(crate) fn list_members(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    let members = value.as_bytes().split(|byte| *byte == b',');
    members
        .map(<[u8]>::trim_ascii)
        .filter(|member| !member.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn stripped(fields: &[(&'static str, &'static str)]) -> Vec<String> {
        let mut headers = head(fields);
        let kept = end_to_end(IndexedHeaders::from(headers.clone())).map;
        strip_response(&mut headers);
        assert_eq!(kept, headers, "a response loses the same fields");
        kept.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn fields_that_connection_names_go_with_it() {
        let kept = stripped(&[
            ("connection", "keep-alive, x-secret"),
            ("connection", "X-Other"),
            ("x-secret", "1"),
            ("x-other", "2"),
            ("x-kept", "3"),
        ]);

        assert_eq!(kept, ["x-kept"]);
    }

    #[test]
    fn a_byte_outside_ascii_does_not_save_nominated_fields() {
        let fields = |value: &[u8]| {
            let mut headers = head(&[("x-secret", "1"), ("x-kept", "2"), ("upgrade", "a")]);
            headers.insert(CONNECTION, HeaderValue::from_bytes(value).unwrap());
            headers
        };
        for value in [b"x-secret, \xff".as_slice(), b"\xe9,x-secret,upgrade"] {
            let mut response = fields(value);
            strip_response(&mut response);
            assert!(response.keys().eq(["x-kept"]), "{response:?}");

            let mut asked = IndexedHeaders::from(fields(value));
            strip_for_agents(&mut asked, false);
            assert!(!asked.as_map().contains_key("x-secret"));
        }
        let asked = fields(b"\xe9, Upgrade");
        assert_eq!(wanted_upgrade(&IndexedHeaders::from(asked)).unwrap(), "a");
    }

    #[test]
    fn connection_options_cannot_remove_fields_that_the_proxy_relies_on() {
        let mut kept = stripped(&[
            (
                "connection",
                "x-forwarded-for, via, host, content-length, x-correlation-id",
            ),
            ("x-forwarded-for", "1.2.3.4"),
            ("host", "a"),
            ("content-length", "0"),
        ]);

        kept.sort();
        assert_eq!(kept, ["content-length", "host", "x-forwarded-for"]);
    }

    #[test]
    fn every_hop_by_hop_field_is_removed() {
        let kept = stripped(&[
            ("connection", "upgrade, http2-settings"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABkAAQAAP__"),
            ("expect", "100-continue"),
            ("trailer", "x-sum"),
        ]);

        assert_eq!(kept, ["trailer"]);
    }

    #[test]
    fn an_upgrade_counts_only_when_connection_names_it() {
        let asked = head(&[
            ("connection", "Keep-Alive, Upgrade"),
            ("upgrade", "websocket"),
        ]);
        let unasked = head(&[("connection", "keep-alive"), ("upgrade", "websocket")]);
        let h2c = head(&[("connection", "upgrade"), ("upgrade", "h2c")]);
        let list = head(&[
            ("connection", "upgrade"),
            ("upgrade", "H2C,websocket"),
            ("upgrade", "HTTP/3.0 , , foo/1"),
        ]);

        let wanted = |headers: HeaderMap| wanted_upgrade(&IndexedHeaders::from(headers));
        assert_eq!(wanted(asked).unwrap(), "websocket");
        assert_eq!(wanted(unasked), None);
        assert_eq!(wanted(h2c), None);
        assert_eq!(wanted(list).unwrap(), "websocket, HTTP/3.0, foo/1");
    }
}
