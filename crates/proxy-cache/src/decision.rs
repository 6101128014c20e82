//! The decision whether a request is answered from the store.

use crate::cache_control::RequestDirectives;
use crate::clock_reading::ClockReading;
use crate::settings::CacheSettings;
use crate::store::results::Found;
use http::header::{CONNECTION, IF_MATCH, IF_UNMODIFIED_SINCE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, Method};

/// Fields by which some upstreams override method, host or path. They are not part of the key, so
/// the response to a request with one is never stored. `X-Forwarded-*` is not listed: from an
/// untrusted peer the proxy removes it, from a trusted one it is part of the key.
const OVERRIDE_FIELDS: &[&str] = &[
    "x-host",
    "x-http-host-override",
    "x-http-method",
    "x-http-method-override",
    "x-http-path-override",
    "x-method-override",
    "x-original-host",
    "x-original-method",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-uri",
    "x-rewrite-url",
];

/// The parts of a request that the cache depends on.
#[derive(Clone, Copy, Debug)]
pub struct CacheRequest<'r> {
    /// Method of the request.
    pub method: &'r Method,
    /// The fields as the client sent them.
    pub headers: &'r HeaderMap,
    /// True if a body follows.
    pub has_body: bool,
    /// True if every server reads its target the same.
    pub is_plain_target: bool,
}

/// The reason why the store is not used for a request, neither to answer it nor to keep its
/// response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BypassReason {
    /// The method is neither GET nor HEAD.
    Method,
    /// The request has a body.
    Body,
    /// Servers may read the target differently.
    Target,
    /// The request has an upgrade.
    Upgrade,
    /// `Connection` has the proxy remove fields that the response may depend on.
    Connection,
    /// A field makes some upstreams use another target or method.
    OverrideField,
    /// A condition on the current state of the resource: `If-Match` or `If-Unmodified-Since`.
    Precondition,
    /// The client sent `no-store`.
    NoStore,
}

/// The decision on a request that may use the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The stored response is sent.
    Hit,
    /// The stored response is sent although it is stale, while a new one is fetched.
    StaleWhileRevalidate,
    /// The stored response must be validated first.
    Revalidate,
    /// No stored response can be used.
    Miss(MissReason),
    /// The client accepts only a stored response, and none can be used: 504.
    OnlyIfCached,
}

/// The reason of a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissReason {
    /// Nothing is stored under the key.
    Uri,
    /// Stored responses were selected by other request fields.
    Vary,
    /// The stored response is stale, and has no validator.
    Stale,
    /// The stored response is fresh, but not fresh enough for the directives of the client.
    Request,
}

impl BypassReason {
    /// The word in `Cache-Status`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Body => "body",
            Self::Target => "target",
            Self::Upgrade => "upgrade",
            Self::Connection => "connection",
            Self::OverrideField => "override-field",
            Self::Precondition => "precondition",
            Self::NoStore => "no-store",
        }
    }
}

impl MissReason {
    /// The word in `Cache-Status`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uri => "uri-miss",
            Self::Vary => "vary-miss",
            Self::Stale => "stale",
            Self::Request => "request",
        }
    }
}

/// The reason why the store is not used for `request`; `None` if it is used.
#[must_use]
pub fn bypass(request: CacheRequest<'_>, directives: &RequestDirectives) -> Option<BypassReason> {
    let CacheRequest {
        method,
        headers,
        has_body,
        is_plain_target,
    } = request;
    if *method != Method::GET && *method != Method::HEAD {
        return Some(BypassReason::Method);
    }
    if has_body || headers.contains_key(TRANSFER_ENCODING) {
        return Some(BypassReason::Body);
    }
    if !is_plain_target {
        return Some(BypassReason::Target);
    }
    if headers.contains_key(UPGRADE) {
        return Some(BypassReason::Upgrade);
    }
    if removes_fields(headers) {
        return Some(BypassReason::Connection);
    }
    if headers.keys().any(|name| is_override(name.as_str())) {
        return Some(BypassReason::OverrideField);
    }
    if headers.contains_key(IF_MATCH) || headers.contains_key(IF_UNMODIFIED_SINCE) {
        return Some(BypassReason::Precondition);
    }
    directives.no_store.then_some(BypassReason::NoStore)
}

/// Decides on a request, given the responses stored for it, at `now`.
#[must_use]
pub fn decide(
    directives: &RequestDirectives,
    found: &Found,
    settings: &CacheSettings,
    now: ClockReading,
) -> Decision {
    let missing = |decision| {
        if settings.client_directives && directives.only_if_cached {
            Decision::OnlyIfCached
        } else {
            decision
        }
    };
    let Some(stored) = &found.response else {
        let reason = if found.has_other_variants {
            MissReason::Vary
        } else {
            MissReason::Uri
        };
        return missing(Decision::Miss(reason));
    };
    let freshness = &stored.freshness;
    if is_young_enough(
        directives,
        settings,
        freshness.age(now),
        freshness.rest(now),
    ) && !(settings.client_directives && directives.no_cache)
    {
        let stale = directives.max_stale.filter(|_| settings.client_directives);
        let stale = i64::from(stale.unwrap_or(0));
        let is_wanted_stale =
            freshness.may_be_stale && stale > 0 && freshness.rest(now).saturating_add(stale) > 0;
        if freshness.is_fresh(now) || is_wanted_stale {
            return Decision::Hit;
        }
        if freshness.is_usable_while_revalidating(now) {
            return Decision::StaleWhileRevalidate;
        }
    }
    if stored.has_validator() {
        return missing(Decision::Revalidate);
    }
    missing(Decision::Miss(stored_miss(freshness.is_fresh(now))))
}

/// The reason why a stored response is not used.
#[must_use]
pub const fn stored_miss(is_fresh: bool) -> MissReason {
    if is_fresh {
        MissReason::Request
    } else {
        MissReason::Stale
    }
}

/// Returns true if the client's `max-age` and `min-fresh` permit a response of `age` with `rest`
/// seconds left.
fn is_young_enough(
    directives: &RequestDirectives,
    settings: &CacheSettings,
    age: u32,
    rest: i64,
) -> bool {
    if !settings.client_directives {
        return true;
    }
    let is_young = directives.max_age.is_none_or(|most| age <= most);
    let stays_fresh = directives
        .min_fresh
        .is_none_or(|least| i64::from(least) <= rest);
    is_young && stays_fresh
}

/// Returns true if `Connection` names fields of the request itself. The proxy would remove them, so
/// the upstream would answer a different request.
fn removes_fields(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(CONNECTION).iter();
    lines.any(|line| {
        let Ok(line) = line.to_str() else {
            return true;
        };
        let mut names = line
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        names.any(|name| {
            let usual = ["close", "keep-alive", "te", "http2-settings"];
            !usual.iter().any(|usual| name.eq_ignore_ascii_case(usual))
        })
    })
}

/// Returns true if the field is an override, with any character in place of `-`.
fn is_override(name: &str) -> bool {
    if !name.starts_with('x') {
        return false;
    }
    let is_same = |known: &&str| -> bool {
        let sign = |byte: u8| {
            if byte.is_ascii_alphanumeric() {
                byte
            } else {
                b'-'
            }
        };
        known.len() == name.len() && known.bytes().eq(name.bytes().map(sign))
    };
    OVERRIDE_FIELDS.iter().any(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn reason(method: &Method, fields: &[(&'static str, &'static str)]) -> Option<BypassReason> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let name = HeaderName::from_static(name);
            headers.append(name, HeaderValue::from_static(value));
        }
        let request = CacheRequest {
            method,
            headers: &headers,
            has_body: false,
            is_plain_target: true,
        };
        bypass(request, &RequestDirectives::read(&headers))
    }

    #[test]
    fn requests_that_the_key_does_not_describe_bypass_the_store() {
        for (fields, expected) in [
            (&[("connection", "keep-alive, TE")][..], None),
            (
                &[("connection", "accept-language")],
                Some(BypassReason::Connection),
            ),
            (
                &[("connection", "close"), ("connection", "cookie")],
                Some(BypassReason::Connection),
            ),
            (
                &[("x-original-url", "/admin")],
                Some(BypassReason::OverrideField),
            ),
            (
                &[("x_http_method_override", "DELETE")],
                Some(BypassReason::OverrideField),
            ),
            (&[("x-http", "1")], None),
            (&[("x-forwarded-server", "front")], None),
            (&[("upgrade", "websocket")], Some(BypassReason::Upgrade)),
            (
                &[("transfer-encoding", "chunked")],
                Some(BypassReason::Body),
            ),
            (&[("if-match", "\"1\"")], Some(BypassReason::Precondition)),
            (
                &[("cache-control", "no-store")],
                Some(BypassReason::NoStore),
            ),
            (
                &[("cache-control", "no-cache"), ("range", "bytes=0-1")],
                None,
            ),
        ] {
            assert_eq!(reason(&Method::GET, fields), expected, "{fields:?}");
        }
        assert_eq!(reason(&Method::POST, &[]), Some(BypassReason::Method));
        assert_eq!(reason(&Method::OPTIONS, &[]), Some(BypassReason::Method));
        assert_eq!(reason(&Method::HEAD, &[]), None);
    }
}
