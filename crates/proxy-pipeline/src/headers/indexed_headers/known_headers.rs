//! Facts from one pass over the fields of a head: bits for names, and the two values that every
//! request needs.

use crate::headers::forwarding_claims::is_read_as_claim;
use http::header::{HOST, HeaderName};
use http::{HeaderMap, HeaderValue};
use proxy_errors::is_grpc;
use proxy_framing::is_name;
use proxy_http1::VerbatimFields;

/// Facts about the fields of one map.
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
    pub(crate) host: Option<&'a [u8]>,
    pub(crate) user_agent: Option<&'a [u8]>,
    pub(crate) referer: Option<&'a [u8]>,
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
    /// A name on the list of forwarding claims, or a variant with another character in place of
    /// `-`.
    pub(crate) const FORWARDING: u16 = 1 << 8;
    pub(crate) const CORRELATION_ID: u16 = 1 << 9;
    /// `Accept` mentions HTML.
    pub(crate) const ACCEPTS_HTML: u16 = 1 << 10;
    /// `Content-Type` is gRPC's.
    pub(crate) const GRPC: u16 = 1 << 11;

    /// `Content-Length` has leading zeros.
    pub(crate) const PADDED_LENGTH: u16 = 1 << 12;

    pub(crate) const TRACE_PARENT: u16 = 1 << 13;

    /// `Trailer`, which announces trailers.
    pub(crate) const TRAILER: u16 = 1 << 14;

    /// Hop-by-hop fields.
    pub(crate) const HOP: u16 = Self::TE
        | Self::UPGRADE
        | Self::CONNECTION
        | Self::KEEP_ALIVE
        | Self::PROXY_CONNECTION
        | Self::TRANSFER_ENCODING
        | Self::EXPECT
        | Self::HTTP2_SETTINGS;

    /// Fields that are not forwarded as received, except `Connection: keep-alive`.
    pub(crate) const REWRITTEN: u16 = Self::HOP & !Self::CONNECTION
        | Self::FORWARDING
        | Self::CORRELATION_ID
        | Self::PADDED_LENGTH
        | Self::TRACE_PARENT
        | Self::TRAILER;

    /// Examines each field once; the length of its name selects the few candidates.
    #[inline]
    pub(super) fn read(map: &HeaderMap) -> (Self, LoggedHeaders<'_>) {
        let mut known = Self::default();
        let mut logged = LoggedHeaders::default();
        for (name, value) in map {
            if *name == HOST {
                known.host = Some(value.clone());
            }
            known.learn_logged(name.as_str().as_bytes(), value.as_bytes(), &mut logged);
        }
        (known, logged)
    }

    /// Reads fields that are not in a map.
    #[inline]
    pub(super) fn read_verbatim(fields: &VerbatimFields) -> (Self, LoggedHeaders<'_>) {
        let mut known = Self::default();
        let mut logged = LoggedHeaders::default();
        for (name, value) in fields.fields() {
            known.learn_logged(name, value, &mut logged);
        }
        known.host = logged.host.and_then(|host| fields.shared(host));
        (known, logged)
    }

    #[inline]
    fn learn_logged<'f>(&mut self, name: &[u8], value: &'f [u8], logged: &mut LoggedHeaders<'f>) {
        match name.len() {
            4 if is_name(name, b"host") => logged.host = Some(value),
            7 if is_name(name, b"referer") => {
                logged.referer.get_or_insert(value);
            }
            10 if is_name(name, b"user-agent") => {
                logged.user_agent.get_or_insert(value);
            }
            _ => self.bits |= self.learn_other(name, value),
        }
    }

    /// The hop-by-hop fields of `map`, by name only.
    pub(crate) fn hop_by_hop_of(map: &HeaderMap) -> Self {
        let names = map.keys().map(|name| name.as_str().as_bytes());
        let bits = names.fold(0, |bits, name| bits | bit_of(name));
        Self {
            bits: bits & Self::HOP,
            ..Self::default()
        }
    }

    /// Appends a field after existing ones with the same name.
    #[inline]
    pub(super) fn learn(&mut self, name: &HeaderName, value: &HeaderValue) {
        if *name == HOST {
            self.host = Some(value.clone());
        } else {
            self.bits |= self.learn_other(name.as_str().as_bytes(), value.as_bytes());
        }
    }

    /// The bits of a field other than `Host`.
    #[inline]
    fn learn_other(&mut self, name: &[u8], value: &[u8]) -> u16 {
        match name.len() {
            6 if is_name(name, b"accept") => accepts_html(value),
            12 if is_name(name, b"content-type") => calls_by_grpc(value),
            14 if is_name(name, b"content-length") => {
                self.content_length = number(value);
                padded(value)
            }
            _ => match bit_of(name) {
                0 if is_read_as_claim(name) => Self::FORWARDING,
                bit => bit,
            },
        }
    }

    /// Drops the facts about the fields of a name, which the caller edits in `map`.
    pub(super) fn forget(&mut self, name: &HeaderName, map: &HeaderMap) {
        let name = name.as_str().as_bytes();
        let is_forwarding = |name: &HeaderName| is_read_as_claim(name.as_str().as_bytes());
        self.bits &= !match name.len() {
            4 if is_name(name, b"host") => {
                self.host = None;
                0
            }
            6 if is_name(name, b"accept") => Self::ACCEPTS_HTML,
            12 if is_name(name, b"content-type") => Self::GRPC,
            14 if is_name(name, b"content-length") => {
                self.content_length = None;
                Self::PADDED_LENGTH
            }
            _ if is_read_as_claim(name) && !map.keys().any(is_forwarding) => Self::FORWARDING,
            _ => bit_of(name),
        };
    }

    /// Returns true if any of `bits` is set.
    #[inline]
    pub(crate) const fn has(&self, bits: u16) -> bool {
        self.bits & bits != 0
    }
}

/// The bit of a name in any case, for the names that count with any value.
#[inline]
fn bit_of(name: &[u8]) -> u16 {
    match name.len() {
        2 if is_name(name, b"te") => KnownHeaders::TE,
        6 if is_name(name, b"expect") => KnownHeaders::EXPECT,
        7 if is_name(name, b"upgrade") => KnownHeaders::UPGRADE,
        7 if is_name(name, b"trailer") => KnownHeaders::TRAILER,
        10 if is_name(name, b"connection") => KnownHeaders::CONNECTION,
        10 if is_name(name, b"keep-alive") => KnownHeaders::KEEP_ALIVE,
        11 if is_name(name, b"traceparent") => KnownHeaders::TRACE_PARENT,
        14 if is_name(name, b"http2-settings") => KnownHeaders::HTTP2_SETTINGS,
        16 if is_name(name, b"proxy-connection") => KnownHeaders::PROXY_CONNECTION,
        16 if is_name(name, b"x-correlation-id") => KnownHeaders::CORRELATION_ID,
        17 if is_name(name, b"transfer-encoding") => KnownHeaders::TRANSFER_ENCODING,
        _ => 0,
    }
}

fn accepts_html(text: &[u8]) -> u16 {
    let begins = |word: &[u8]| {
        let mut parts = text.windows(word.len());
        parts.any(|part| part.eq_ignore_ascii_case(word))
    };
    if begins(b"text/html") || begins(b"text/*") {
        KnownHeaders::ACCEPTS_HTML
    } else {
        0
    }
}

fn calls_by_grpc(content_type: &[u8]) -> u16 {
    if is_grpc(content_type) {
        KnownHeaders::GRPC
    } else {
        0
    }
}

fn padded(length: &[u8]) -> u16 {
    match length {
        [b'0', _, ..] => KnownHeaders::PADDED_LENGTH,
        _ => 0,
    }
}

fn number(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{REFERER, USER_AGENT};

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

        let (known, logged) = KnownHeaders::read(&headers);

        assert_eq!(known, KnownHeaders::default());
        assert_eq!(logged.user_agent.unwrap(), b"one");
        assert_eq!(logged.referer.unwrap(), b"three");
        let nothing = HeaderMap::new();
        let (_, silent) = KnownHeaders::read(&nothing);
        assert!(silent.user_agent.is_none() && silent.referer.is_none());
    }
}
