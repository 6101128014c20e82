//! Makes the head of an HTTP/2 request one that means the same everywhere. [RFC 9113 §8]
//!
//! What no HTTP/2 head may hold, such as fields of the connection, has ended its stream before.

use crate::exchange::Exchange;
use crate::policy::header_limits;
use http::header::{CONTENT_LENGTH, COOKIE, HOST};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderValue, Method, Version};
use proxy_errors::{Detail, Problem, Reason};

/// Refuses heads that are too large or say two things; joins what was split for compression.
pub(crate) fn apply(exchange: &mut Exchange) -> Result<(), Problem> {
    if exchange.head.version != Version::HTTP_2 {
        return Ok(());
    }
    header_limits::check(&exchange.head, &exchange.active().plan.model().limits)?;
    let headers = &exchange.head.headers;
    if headers.values().any(is_padded) {
        return Err(Problem::new(Reason::BadHeaderValue, Detail::None));
    }
    agree_on_host(exchange.head.uri.authority(), headers)?;
    check_target(&exchange.head)?;
    check_length(headers)?;
    let headers = &mut exchange.head.headers;
    // Only then some name stands twice.
    if headers.len() != headers.keys_len() {
        join_cookies(headers);
    }
    Ok(())
}

/// A value may not begin or end with white space. [RFC 9113 §8.2.1]
fn is_padded(value: &HeaderValue) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let bytes = value.as_bytes();
    is_space(bytes.first()) || is_space(bytes.last())
}

/// `:authority` and `Host` must not differ. [RFC 9113 §8.3.1]
fn agree_on_host(authority: Option<&Authority>, headers: &HeaderMap) -> Result<(), Problem> {
    let mut hosts = headers.get_all(HOST).iter();
    let (host, another) = (hosts.next(), hosts.next());
    if another.is_some() {
        return Err(Problem::new(Reason::RepeatedHost, Detail::None));
    }
    match (authority, host) {
        (None, None) => Err(Problem::new(Reason::MissingHost, Detail::None)),
        (Some(authority), _) if authority.as_str().contains('@') => {
            Err(Problem::new(Reason::InvalidHost, Detail::None))
        }
        (Some(authority), Some(host))
            if !host
                .as_bytes()
                .eq_ignore_ascii_case(authority.as_str().as_bytes()) =>
        {
            Err(Problem::new(Reason::RepeatedHost, Detail::None))
        }
        (Some(_), _) | (None, Some(_)) => Ok(()),
    }
}

/// A path that begins with a slash, or `*` for OPTIONS. [RFC 9113 §8.3.1]
fn check_target(head: &Parts) -> Result<(), Problem> {
    let target = head.uri.path_and_query().map(PathAndQuery::as_str);
    let is_star = target == Some("*") && head.method == Method::OPTIONS;
    if is_star || target.is_none_or(|target| target.starts_with('/')) {
        return Ok(());
    }
    Err(Problem::new(Reason::BadRequestLine, Detail::None))
}

/// One length, told in digits: who reads it next may be less forgiving than `h2`, or more.
fn check_length(headers: &HeaderMap) -> Result<(), Problem> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let Some(length) = lengths.next() else {
        return Ok(());
    };
    if lengths.next().is_some() {
        return Err(Problem::new(Reason::ConflictingContentLength, Detail::None));
    }
    if length.is_empty() || !length.as_bytes().iter().all(u8::is_ascii_digit) {
        return Err(Problem::new(Reason::BadContentLength, Detail::None));
    }
    Ok(())
}

/// Cookies may come in fields of their own; nobody else knows that. [RFC 9113 §8.2.3]
#[cold]
fn join_cookies(headers: &mut HeaderMap) {
    let mut crumbs = headers.get_all(COOKIE).iter();
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
        let mut headers = fields(&[
            ("cookie", "a=1"),
            ("x", "y"),
            ("cookie", "b=2"),
            ("cookie", "c=3"),
        ]);
        join_cookies(&mut headers);

        assert_eq!(headers[COOKIE], "a=1; b=2; c=3");
        assert_eq!(headers.get_all(COOKIE).iter().count(), 1);
    }

    #[test]
    fn a_request_names_one_host() {
        let agreed = |authority: &str, hosts: &[(&'static str, &'static str)]| {
            let authority = (!authority.is_empty()).then(|| authority.parse().unwrap());
            agree_on_host(authority.as_ref(), &fields(hosts)).map_err(|problem| problem.reason())
        };
        let host = ("host", "a.test");

        assert_eq!(agreed("a.test", &[]), Ok(()));
        assert_eq!(agreed("A.test", &[host]), Ok(()));
        assert_eq!(agreed("", &[host]), Ok(()));
        assert_eq!(agreed("", &[]), Err(Reason::MissingHost));
        assert_eq!(agreed("b.test", &[host]), Err(Reason::RepeatedHost));
        assert_eq!(agreed("a.test", &[host, host]), Err(Reason::RepeatedHost));
        assert_eq!(agreed("me@a.test", &[]), Err(Reason::InvalidHost));
    }

    #[test]
    fn padding_is_seen_at_both_ends() {
        for (value, padded) in [(" a", true), ("a\t", true), ("a b", false), ("", false)] {
            assert_eq!(
                is_padded(&HeaderValue::from_static(value)),
                padded,
                "{value:?}"
            );
        }
    }
}
