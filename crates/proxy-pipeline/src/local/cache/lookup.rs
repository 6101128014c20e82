//! The key of a request, or the reason why the store is not used for it.

use super::outcome::CachedRoute;
use crate::exchange::Exchange;
use crate::headers::forwarding_claims::{is_claim, plain_name};
use crate::headers::indexed_headers::KnownHeaders;
use http::header::{FORWARDED, RANGE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue};
use http_body::Body as _;
use proxy_cache::{
    BypassReason, CacheKey, CacheRequest, ClockReading, KeyTarget, RequestDirectives, bypass,
};
use proxy_http1::RawTarget;
use proxy_routing::{Readings, is_plain_path};
use std::sync::Arc;

/// A request that the store is used for.
#[derive(Debug)]
pub(super) struct Lookup {
    pub(super) key: Arc<CacheKey>,
    pub(super) directives: RequestDirectives,
    /// It has `Range`.
    pub(super) is_partial: bool,
}

impl Lookup {
    pub(super) fn read(exchange: &Exchange, cached: CachedRoute<'_>) -> Result<Self, BypassReason> {
        let headers = exchange.head.headers.as_map();
        let target = target(exchange);
        let directives = RequestDirectives::read(headers);
        let request = CacheRequest {
            method: &exchange.head.method,
            headers,
            has_body: exchange
                .body
                .as_ref()
                .is_some_and(|body| !body.is_end_stream()),
            // A path that servers read differently would have one key here and another meaning there.
            is_plain_target: target
                .is_some_and(|target| target.is_usable() && is_read_alike(target.path)),
        };
        match (bypass(request, &directives), target) {
            (None, Some(target)) => {
                let claims = claims(exchange);
                let settings = cached.settings;
                let request = (headers, &*claims);
                let key = CacheKey::new(target, &settings.settings, &settings.selector, request);
                Ok(Self {
                    key: Arc::new(key),
                    directives,
                    is_partial: headers.contains_key(RANGE),
                })
            }
            (Some(reason), _) => Err(reason),
            (None, None) => Err(BypassReason::Target),
        }
    }
}

/// The target as the client sent it; `None` for one that is no path.
pub(super) fn target(exchange: &Exchange) -> Option<KeyTarget<'_>> {
    if exchange.head.extensions.get::<RawTarget>().is_some() {
        return None;
    }
    let head = exchange.request_head();
    Some(KeyTarget {
        scheme: head.scheme().name(),
        host: head.host,
        path: head.target.map(PathAndQuery::path)?,
        query: head.target.and_then(PathAndQuery::query),
    })
}

/// Whether every server reads the path the same.
fn is_read_alike(path: &str) -> bool {
    if is_plain_path(path) {
        return true;
    }
    let Readings { paths, fault } = Readings::from_path(path);
    fault.is_none() && paths.len() <= 1
}

/// The clocks for ages and times of stored responses.
pub(super) fn now(exchange: &Exchange) -> ClockReading {
    exchange.worker().time.clock_reading()
}

/// Claims of a trusted peer that the upstream gets and may answer by: all but those of addresses. Claims of other
/// peers are removed before the request is forwarded.
fn claims(exchange: &Exchange) -> Vec<u8> {
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
            without_addresses(value)
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

fn carries_address(name: &str) -> bool {
    let ends = [
        "-for",
        "-ip",
        "-ipv6",
        "-clientip",
        "-addr",
        "-address",
        "-port",
    ];
    let is_port_of_host = name == "x-forwarded-port";
    name == "via" || (!is_port_of_host && ends.iter().any(|end| name.ends_with(end)))
}

/// The parameters `host` and `proto` of a `Forwarded` field. [RFC 7239 §4]
fn without_addresses(value: &HeaderValue) -> Vec<u8> {
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
    fn a_path_is_a_key_if_every_server_reads_it_alike() {
        for path in ["/", "/a.b/c", "/caf%C3%A9", "/a%20b"] {
            assert!(is_read_alike(path), "{path}");
        }
        for path in [
            "//a",
            "/a/../b",
            "/a%2Fb",
            "/a/%2e%2e/b",
            "/a;x/b",
            "/a%",
            "/a\\b",
        ] {
            assert!(!is_read_alike(path), "{path}");
        }
    }

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
