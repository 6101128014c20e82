//! Detection of known headers in one pass, and removal of hop-by-hop headers.
//!
//! [RFC 9110 §7.6.1]: fields listed in `Connection` are removed first, then `Connection` itself and
//! similar fields. Names that the proxy sets or depends on cannot be removed this way.

use crate::claims::{is_claim, is_shadow, may_be_claim};
use crate::names;
use http::header::{
    ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, HeaderName, REFERER, TE,
    TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use http::{HeaderMap, HeaderValue};
use proxy_errors::is_grpc;

/// The known headers of a head: bits for names, and the two values that every request needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownHeaders {
    bits: u16,
    /// `Host`, as sent.
    pub(crate) host: Option<HeaderValue>,
    /// The length of the body in bytes, if it was announced.
    pub(crate) content_length: Option<u64>,
}

/// Headers that are only logged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoggedHeaders<'a> {
    pub(crate) user_agent: Option<&'a HeaderValue>,
    pub(crate) referer: Option<&'a HeaderValue>,
}

impl KnownHeaders {
    pub(crate) const TE: u16 = 1;
    pub(crate) const UPGRADE: u16 = 1 << 1;
    pub(crate) const CONNECTION: u16 = 1 << 2;
    pub(crate) const KEEP_ALIVE: u16 = 1 << 3;
    pub(crate) const PROXY_CONNECTION: u16 = 1 << 4;
    pub(crate) const TRANSFER_ENCODING: u16 = 1 << 5;
    pub(crate) const EXPECT: u16 = 1 << 6;
    pub(crate) const HTTP2_SETTINGS: u16 = 1 << 7;
    /// A name on the list of forwarding claims, or one of them with `_` in place of `-`.
    pub(crate) const FORWARDING: u16 = 1 << 8;
    pub(crate) const CORRELATION_ID: u16 = 1 << 9;
    /// `Accept` mentions HTML.
    pub(crate) const ACCEPTS_HTML: u16 = 1 << 10;
    /// `Content-Type` is gRPC's.
    pub(crate) const GRPC: u16 = 1 << 11;

    /// `Content-Length` has leading zeros.
    pub(crate) const PADDED_LENGTH: u16 = 1 << 12;

    /// `traceparent`.
    pub(crate) const TRACE_PARENT: u16 = 1 << 13;

    /// Hop-by-hop fields.
    const HOP: u16 = Self::TE
        | Self::UPGRADE
        | Self::CONNECTION
        | Self::KEEP_ALIVE
        | Self::PROXY_CONNECTION
        | Self::TRANSFER_ENCODING
        | Self::EXPECT
        | Self::HTTP2_SETTINGS;

    /// Examines each field once; the length of its name selects the few candidates.
    pub(crate) fn in_head(headers: &HeaderMap) -> (Self, LoggedHeaders<'_>) {
        let mut known = Self::default();
        let mut logged = LoggedHeaders::default();
        for (name, value) in headers {
            known.bits |= match name.as_str().len() {
                4 if *name == HOST => {
                    known.host = Some(value.clone());
                    0
                }
                6 if *name == ACCEPT => accepts_html(value),
                7 if *name == REFERER => {
                    logged.referer.get_or_insert(value);
                    0
                }
                10 if *name == USER_AGENT => {
                    logged.user_agent.get_or_insert(value);
                    0
                }
                12 if *name == CONTENT_TYPE => calls_by_grpc(value),
                14 if *name == CONTENT_LENGTH => {
                    known.content_length = number(value);
                    padded(value)
                }
                _ => match rare(name) {
                    0 if claims(name.as_str()) => Self::FORWARDING,
                    bits => bits,
                },
            };
        }
        (known, logged)
    }

    /// Examines the head again after it was edited. Claims that it has now are believed. What the client
    /// accepts stays as it said.
    pub(crate) fn reread(&mut self, headers: &HeaderMap, is_trusted: bool) {
        const OF_CLIENT: u16 = KnownHeaders::ACCEPTS_HTML | KnownHeaders::GRPC;
        let (known, _) = Self::in_head(headers);
        let claims = if is_trusted { 0 } else { Self::FORWARDING };
        let bits = (known.bits & !OF_CLIENT & !claims) | (self.bits & OF_CLIENT);
        *self = Self { bits, ..known };
    }

    /// Like [`Self::in_head`], for a response, of which only names matter.
    pub(crate) fn in_response(headers: &HeaderMap) -> Self {
        let names = headers.keys();
        Self {
            bits: names.fold(0, |bits, name| bits | rare(name)),
            ..Self::default()
        }
    }

    /// Whether any of `bits` is set.
    #[inline]
    pub(crate) const fn has(&self, bits: u16) -> bool {
        self.bits & bits != 0
    }
}

/// The bit of a rarer name.
#[inline]
fn rare(name: &HeaderName) -> u16 {
    match name.as_str().len() {
        2 if *name == TE => KnownHeaders::TE,
        6 if *name == EXPECT => KnownHeaders::EXPECT,
        7 if *name == UPGRADE => KnownHeaders::UPGRADE,
        10 if *name == CONNECTION => KnownHeaders::CONNECTION,
        10 if *name == names::KEEP_ALIVE => KnownHeaders::KEEP_ALIVE,
        11 if *name == names::TRACE_PARENT => KnownHeaders::TRACE_PARENT,
        14 if *name == names::HTTP2_SETTINGS => KnownHeaders::HTTP2_SETTINGS,
        16 if *name == names::PROXY_CONNECTION => KnownHeaders::PROXY_CONNECTION,
        16 if *name == names::CORRELATION_ID => KnownHeaders::CORRELATION_ID,
        17 if *name == TRANSFER_ENCODING => KnownHeaders::TRANSFER_ENCODING,
        _ => 0,
    }
}

#[inline]
fn claims(name: &str) -> bool {
    may_be_claim(name) && (is_claim(name) || is_shadow(name))
}

/// Removes the fields on the list of claims unless their sender is `believed`, and always those
/// with `_` in place of `-`.
#[cold]
pub(crate) fn remove_claims(headers: &mut HeaderMap, believed: bool) {
    let dropped = |name: &HeaderName| {
        let name = name.as_str();
        !believed && is_claim(name) || is_shadow(name)
    };
    let names = headers.keys().filter(|name| dropped(name));
    let names: Vec<HeaderName> = names.cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

fn accepts_html(accept: &HeaderValue) -> u16 {
    let text = accept.as_bytes();
    let named = text.len() >= 9
        && text
            .windows(9)
            .any(|at| at.eq_ignore_ascii_case(b"text/html"));
    if named { KnownHeaders::ACCEPTS_HTML } else { 0 }
}

fn calls_by_grpc(content_type: &HeaderValue) -> u16 {
    if is_grpc(content_type.as_bytes()) {
        KnownHeaders::GRPC
    } else {
        0
    }
}

fn padded(length: &HeaderValue) -> u16 {
    match length.as_bytes() {
        [b'0', _, ..] => KnownHeaders::PADDED_LENGTH,
        _ => 0,
    }
}

fn number(value: &HeaderValue) -> Option<u64> {
    value.to_str().ok()?.parse().ok()
}

/// The protocol of a requested upgrade: `Upgrade`, if `Connection` lists it.
pub(crate) fn wanted_upgrade(headers: &HeaderMap, known: &KnownHeaders) -> Option<HeaderValue> {
    if !known.has(KnownHeaders::UPGRADE) || !known.has(KnownHeaders::CONNECTION) {
        return None;
    }
    let named = headers
        .get_all(CONNECTION)
        .iter()
        .any(|value| names_in(value).any(|name| name.eq_ignore_ascii_case("upgrade")));
    let protocol = headers.get(UPGRADE).filter(|_| named)?;
    // h2c is never tunnelled: HTTP/2 is terminated by this proxy.
    let is_h2c = protocol.as_bytes().eq_ignore_ascii_case(b"h2c");
    (!is_h2c).then(|| protocol.clone())
}

/// Whether the sender accepts trailers. [RFC 9110 §10.1.4]
pub(crate) fn takes_trailers(headers: &HeaderMap, known: &KnownHeaders) -> bool {
    known.has(KnownHeaders::TE)
        && headers
            .get_all(TE)
            .iter()
            .any(|value| names_in(value).any(|name| name.eq_ignore_ascii_case("trailers")))
}

/// Brings a head into the form that agents see and edit: without claims unless the peer is trusted, and
/// without the fields that `Connection` nominates, of which it keeps the names of protocol options.
#[cold]
pub(crate) fn strip_for_agents(
    headers: &mut HeaderMap,
    known: &mut KnownHeaders,
    is_trusted: bool,
) {
    if known.has(KnownHeaders::FORWARDING) {
        remove_claims(headers, is_trusted);
    }
    if known.has(KnownHeaders::CONNECTION) {
        strip_nominated(headers, |name| is_protocol_option(name.as_str()));
        let options: Vec<_> = headers
            .get_all(CONNECTION)
            .iter()
            .flat_map(names_in)
            .filter(|name| is_protocol_option(name))
            .collect();
        let options = HeaderValue::try_from(options.join(", "));
        if let Ok(options) = options {
            headers.insert(CONNECTION, options);
        }
    }
    known.reread(headers, is_trusted);
}

/// Whether `Connection` may have the name although no field of it is removed.
fn is_protocol_option(name: &str) -> bool {
    ["close", "http2-settings", "keep-alive", "te", "upgrade"]
        .iter()
        .any(|option| name.eq_ignore_ascii_case(option))
}

/// Removes hop-by-hop fields.
#[inline]
pub(crate) fn strip(headers: &mut HeaderMap, known: &KnownHeaders) {
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

/// Removes the fields that `Connection` names, but those that are protected or that `is_kept`.
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
        .flat_map(names_in)
        .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
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

fn names_in(value: &HeaderValue) -> impl Iterator<Item = &str> {
    let list = value.to_str().unwrap_or_default();
    list.split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
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
        let known = KnownHeaders::in_head(&headers).0;
        strip(&mut headers, &known);
        headers.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn of_fields_sent_twice_the_first_is_written_down() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (USER_AGENT, "one"),
            (USER_AGENT, "two"),
            (REFERER, "three"),
            (REFERER, "four"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }

        let (known, logged) = KnownHeaders::in_head(&headers);

        assert_eq!(known, KnownHeaders::default());
        assert_eq!(logged.user_agent.unwrap(), "one");
        assert_eq!(logged.referer.unwrap(), "three");
        let nothing = HeaderMap::new();
        let (_, silent) = KnownHeaders::in_head(&nothing);
        assert!(silent.user_agent.is_none() && silent.referer.is_none());
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
    fn names_the_proxy_relies_on_cannot_be_nominated_away() {
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

        let wanted =
            |headers: &HeaderMap| wanted_upgrade(headers, &KnownHeaders::in_head(headers).0);
        assert_eq!(wanted(&asked).unwrap(), "websocket");
        assert_eq!(wanted(&unasked), None);
        assert_eq!(wanted(&h2c), None);
    }
}
