//! Normalization of the head of a request over HTTP/2 or HTTP/3. [RFC 9113 §8, RFC 9114 §4]
//!
//! Heads that these sections forbid, such as those with hop-by-hop fields, have ended their stream
//! before.

use crate::exchange::Exchange;
use crate::failure::unfit_request;
use crate::headers::inbound_head::InboundHead;
use crate::headers::indexed_headers::IndexedHeaders;
use crate::headers::{header_limits, http2_fields};
use crate::policy::tunnel_connections;
use http::header::{CONTENT_LENGTH, COOKIE, HOST};
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderValue, Method, Version};
use proxy_errors::{Detail, Problem, Reason};
use proxy_framing::is_host;

/// Refuses heads that are too large, contradictory, or not representable in HTTP/1.1; joins fields
/// that were split for compression.
pub(crate) fn apply(exchange: &mut Exchange) -> Result<(), Problem> {
    if !matches!(exchange.head.version, Version::HTTP_2 | Version::HTTP_3) {
        return Ok(());
    }
    let head = &exchange.head;
    header_limits::check(head, &exchange.active().plan.model().limits)?;
    let fields = head.headers.as_map();
    http2_fields::check(fields).map_err(|unfit| unfit_request(unfit, fields))?;
    check_tunnel(head)?;
    check_target(head)?;
    let has_host = head.headers.host().is_some();
    agree_on_host(head.uri.authority(), has_host.then_some(fields))?;
    // Otherwise no name occurs twice.
    if fields.len() != fields.keys_len() {
        let headers = &mut exchange.head.headers;
        headers.bound();
        join_cookies(headers);
        let limits = &exchange.active().plan.model().limits;
        let cookie = exchange.head.headers.as_map().get(COOKIE);
        return cookie.map_or(Ok(()), |cookie| {
            header_limits::check_value(&COOKIE, cookie, limits)
        });
    }
    Ok(())
}

/// A request for a tunnel must not have a body, because a proxy that waits for the upstream would
/// take the next bytes for it.
fn check_tunnel(head: &InboundHead) -> Result<(), Problem> {
    if tunnel_connections::is_wanted(head) && head.headers.as_map().contains_key(CONTENT_LENGTH) {
        let detail = Detail::text("a tunnel has no length");
        return Err(Problem::new(Reason::BadContentLength, detail));
    }
    Ok(())
}

/// The path must begin with `/`, or be `*` for OPTIONS, as in HTTP/1.1; the `http` crate accepts
/// more. [RFC 9113 §8.3.1, RFC 9112 §3.2]
fn check_target(head: &InboundHead) -> Result<(), Problem> {
    let Some(target) = head.uri.path_and_query().map(PathAndQuery::as_str) else {
        return Ok(());
    };
    let is_path = target.starts_with('/') && target.is_ascii();
    if is_path || target == "*" && head.method == Method::OPTIONS {
        return Ok(());
    }
    Err(Problem::new(Reason::BadRequestTarget, Detail::None))
}

/// `:authority` and `Host` must be the same valid host. [RFC 9113 §8.3.1]
///
/// `fields` are those with `Host`, if any.
fn agree_on_host(authority: Option<&Authority>, fields: Option<&HeaderMap>) -> Result<(), Problem> {
    let hosts = fields.into_iter().flat_map(|fields| fields.get_all(HOST));
    let mut hosts = hosts.map(HeaderValue::as_bytes);
    let (host, another) = (hosts.next(), hosts.next());
    if another.is_some() {
        return Err(Problem::new(Reason::RepeatedHost, Detail::None));
    }
    let authority = authority.map(|authority| authority.as_str().as_bytes());
    let named = match (authority, host) {
        (None, None) => return Err(Problem::new(Reason::MissingHost, Detail::None)),
        (Some(authority), Some(host)) if !host.eq_ignore_ascii_case(authority) => {
            return Err(Problem::new(Reason::RepeatedHost, Detail::None));
        }
        (Some(named), _) | (None, Some(named)) => named,
    };
    if !is_host(named) {
        return Err(Problem::new(Reason::InvalidHost, Detail::None));
    }
    Ok(())
}

/// Joins cookies, which may be sent in several fields. [RFC 9113 §8.2.3, RFC 9114 §4.2.1]
#[cold]
fn join_cookies(headers: &mut IndexedHeaders) {
    let mut crumbs = headers.as_map().get_all(COOKIE).iter();
    let (Some(first), Some(second)) = (crumbs.next(), crumbs.next()) else {
        return;
    };
    let mut whole = [first.as_bytes(), second.as_bytes()].join(&b"; "[..]);
    for crumb in crumbs {
        whole.extend_from_slice(b"; ");
        whole.extend_from_slice(crumb.as_bytes());
    }
    if let Ok(whole) = HeaderValue::try_from(whole) {
        headers.insert(COOKIE, whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn crumbs_become_one_cookie() {
        let mut headers = IndexedHeaders::from(fields(&[
            ("cookie", "a=1"),
            ("x", "y"),
            ("cookie", "b=2"),
            ("cookie", "c=3"),
        ]));
        join_cookies(&mut headers);

        let headers = headers.as_map();
        assert_eq!(headers[COOKIE], "a=1; b=2; c=3");
        assert_eq!(headers.get_all(COOKIE).iter().count(), 1);
    }

    #[test]
    fn a_request_names_one_host() {
        let agreed = |authority: &str, hosts: &[(&'static str, &'static str)]| {
            let authority = (!authority.is_empty()).then(|| authority.parse().unwrap());
            agree_on_host(authority.as_ref(), Some(&fields(hosts)))
                .map_err(|problem| problem.reason())
        };
        let host = ("host", "a.test");

        assert_eq!(agreed("a.test", &[]), Ok(()));
        assert_eq!(agreed("A.test", &[host]), Ok(()));
        assert_eq!(agreed("", &[host]), Ok(()));
        assert_eq!(agreed("", &[]), Err(Reason::MissingHost));
        assert_eq!(agreed("b.test", &[host]), Err(Reason::RepeatedHost));
        assert_eq!(agreed("a.test", &[host, host]), Err(Reason::RepeatedHost));
        for authority in ["me@a.test", "a,b"] {
            assert_eq!(agreed(authority, &[]), Err(Reason::InvalidHost));
        }
        assert_eq!(agreed("", &[("host", "a b")]), Err(Reason::InvalidHost));
    }
}
