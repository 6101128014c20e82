//! Claims of trusted proxies about a request (`X-Forwarded-*`, `Forwarded`) as a part of its cache
//! key.

use crate::exchange::Exchange;
use crate::headers::forwarding_claims::{is_claim, plain_name};
use crate::headers::indexed_headers::KnownHeaders;
use http::header::FORWARDED;
use http::{HeaderMap, HeaderValue};

/// The claims of a trusted peer, as bytes of the key, since the response may depend on them. Claims
/// about addresses are left out: each client would have a separate key. Empty for other peers;
/// their claims are removed before the request is forwarded.
pub(super) fn key_part(exchange: &Exchange) -> Vec<u8> {
    let headers = &exchange.head.headers;
    if !exchange.client().peer.trusted.get() || !headers.has(KnownHeaders::FORWARDING) {
        return Vec::new();
    }
    claims_in(headers.as_map())
}

fn claims_in(headers: &HeaderMap) -> Vec<u8> {
    let mut claims = Vec::new();
    for (name, value) in headers {
        let plain = plain_name(name.as_str());
        if !is_claim(&plain) || carries_address(&plain) {
            continue;
        }
        let value = if *name == FORWARDED {
            host_and_scheme(value)
        } else {
            value.as_bytes().to_vec()
        };
        if !value.is_empty() {
            claims.extend_from_slice(name.as_str().as_bytes());
            claims.push(b':');
            claims.extend_from_slice(&value);
            claims.push(b'\n');
        }
    }
    claims
}

/// Returns true if the field describes addresses or ports of clients and proxies.
fn carries_address(name: &str) -> bool {
    let suffixes = [
        "-for",
        "-ip",
        "-ipv6",
        "-clientip",
        "-addr",
        "-address",
        "-port",
    ];
    let is_host_port = name == "x-forwarded-port";
    name == "via" || (!is_host_port && suffixes.iter().any(|suffix| name.ends_with(suffix)))
}

/// The parameters `host` and `proto` of a `Forwarded` field. [RFC 7239 §4]
fn host_and_scheme(value: &HeaderValue) -> Vec<u8> {
    let mut kept = Vec::new();
    for pair in value.as_bytes().split(|byte| matches!(byte, b',' | b';')) {
        let pair = pair.trim_ascii().to_ascii_lowercase();
        if pair.starts_with(b"host=") || pair.starts_with(b"proto=") {
            kept.extend_from_slice(&pair);
            kept.push(b';');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    #[test]
    fn claims_of_hosts_are_part_of_the_key_and_addresses_are_not() {
        let claims = |fields: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.append(
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                );
            }
            String::from_utf8(claims_in(&headers)).unwrap()
        };
        assert_eq!(
            claims(&[
                ("x-forwarded-for", "10.1.1.1"),
                ("x-real-ip", "1.1.1.1"),
                ("via", "1.1 a")
            ]),
            ""
        );
        assert_eq!(
            claims(&[("x-forwarded-host", "b.test"), ("x-forwarded-port", "81")]),
            "x-forwarded-host:b.test\nx-forwarded-port:81\n"
        );
        assert_eq!(
            claims(&[("forwarded", "for=1.1.1.1;Host=b.test, for=2.2.2.2")]),
            "forwarded:host=b.test;\n"
        );
    }
}
