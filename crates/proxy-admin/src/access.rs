//! Authorization of requests: bearer tokens, Basic authentication for the page at `/`, and
//! protection from requests of foreign web pages.

pub(crate) mod token;

use crate::access::token::Token;
use arc_swap::ArcSwapOption;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderValue, Method};
use proxy_errors::{Detail, Problem, Reason};
use proxy_routing::normal_host;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Paths of probes, for liveness and readiness. They need no token; all other paths do.
const PUBLIC_PATHS: [&str; 2] = ["/health", "/ready"];

/// Path of the page for browsers, which also accepts the token as a password of Basic
/// authentication. Browsers repeat that password in requests from any site, so no path that changes
/// state may accept it.
const PAGE_PATH: &str = "/";

/// Authorization rules of one listening socket.
#[derive(Debug)]
pub struct Access {
    token: ArcSwapOption<Token>,
    /// True for TCP sockets, to which the web pages in a local browser can send requests.
    reachable_by_browsers: bool,
}

impl Access {
    /// Rules for a TCP socket. With a `token`, requests must carry it. Without one, the `Host` of a
    /// request must be an IP address or `localhost`.
    ///
    /// The rule for `Host` prevents DNS rebinding: the name of a foreign web page may resolve to
    /// 127.0.0.1, so that its scripts read responses as if from its own site, but `Host` still
    /// contains that name. Requests from pages of another site that may change state, such as a
    /// purge by POST, are refused by `Sec-Fetch-Site` or `Origin`.
    #[must_use]
    pub fn tcp(token: Option<Token>) -> Self {
        Self {
            token: ArcSwapOption::new(token.map(Arc::new)),
            reachable_by_browsers: true,
        }
    }

    /// Rules for a Unix socket, which needs no token: the file's permissions are the authorization.
    #[must_use]
    pub fn unix() -> Self {
        Self {
            token: ArcSwapOption::empty(),
            reachable_by_browsers: false,
        }
    }

    /// Replaces the token, for the next request on.
    pub fn change_token(&self, token: Option<Token>) {
        self.token.store(token.map(Arc::new));
    }

    /// Checks that the request is authorized.
    pub(crate) fn admit(&self, head: &Parts) -> Result<(), Problem> {
        if PUBLIC_PATHS.contains(&head.uri.path()) {
            return Ok(());
        }
        if self.reachable_by_browsers && is_cross_site(head) {
            return Err(Problem::new(Reason::CrossSiteRequest, Detail::None));
        }
        if let Some(token) = &*self.token.load() {
            return check_token(token, head);
        }
        if self.reachable_by_browsers && !is_local(head) {
            return Err(Problem::new(Reason::MisdirectedRequest, Detail::None));
        }
        Ok(())
    }
}

/// Returns true for reads of the page for browsers.
pub(crate) fn is_page(head: &Parts) -> bool {
    head.uri.path() == PAGE_PATH && (head.method == Method::GET || head.method == Method::HEAD)
}

fn check_token(token: &Token, head: &Parts) -> Result<(), Problem> {
    let mut all = head.headers.get_all(AUTHORIZATION).iter();
    let reason = match (all.next(), all.next()) {
        (None, _) => Reason::CredentialsMissing,
        (Some(one), None) if bearer(one).is_some_and(|shown| token.is(shown)) => return Ok(()),
        (Some(one), None)
            if is_page(head) && password(one).is_some_and(|shown| token.is(&shown)) =>
        {
            return Ok(());
        }
        (Some(_), _) => Reason::CredentialsInvalid,
    };
    Err(Problem::new(reason, Detail::None))
}

/// Returns the token after the scheme `Bearer`, which is case-insensitive. [RFC 9110 §11.1]
fn bearer(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, rest) = value.as_bytes().split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| rest.trim_ascii())
}

/// Returns the password of Basic authentication, and ignores the user. [RFC 7617 §2]
fn password(value: &HeaderValue) -> Option<Vec<u8>> {
    let (scheme, rest) = value.as_bytes().split_at_checked("Basic ".len())?;
    let is_basic = scheme.eq_ignore_ascii_case(b"Basic ");
    let pair = STANDARD
        .decode(rest.trim_ascii())
        .ok()
        .filter(|_| is_basic)?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair.get(colon + 1..)?.to_vec())
}

/// Returns true for a request that may change state and that a browser sent from a page of another
/// site. Browsers set `Sec-Fetch-Site`, and older ones `Origin`; pages cannot change either.
fn is_cross_site(head: &Parts) -> bool {
    if head.method == Method::GET || head.method == Method::HEAD {
        return false;
    }
    let headers = &head.headers;
    if let Some(site) = headers.get("sec-fetch-site") {
        // `none`: entered by the user, not sent by a page.
        return site != "same-origin" && site != "none";
    }
    let Some(origin) = headers.get(ORIGIN) else {
        return false;
    };
    let host = host_of(head).unwrap_or_default();
    let origin = origin.as_bytes();
    let own = [&b"http://"[..], b"https://"].into_iter();
    let mut own = own.filter_map(|scheme| origin.strip_prefix(scheme));
    !own.any(|authority| authority.eq_ignore_ascii_case(host))
}

/// Returns the requested host, including its port.
fn host_of(head: &Parts) -> Option<&[u8]> {
    match head.uri.authority() {
        Some(authority) => Some(authority.as_str().as_bytes()),
        None => head.headers.get(HOST).map(HeaderValue::as_bytes),
    }
}

/// Returns true if the requested host is an IP address or `localhost`, or if there is none:
/// browsers always send one.
fn is_local(head: &Parts) -> bool {
    let Some(named) = host_of(head) else {
        return true;
    };
    let Ok(text) = std::str::from_utf8(named) else {
        return false;
    };
    normal_host(text).is_ok_and(|host| {
        let name = &*host.name;
        let is_v6 = name.starts_with('[');
        // Checks `text`, because `normal_host` removes a trailing dot: `localhost.` is not
        // accepted.
        let written = text.split(':').next().unwrap_or_default();
        is_v6 || name.parse::<Ipv4Addr>().is_ok() || written.eq_ignore_ascii_case("localhost")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn request(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn reason(access: &Access, uri: &str, headers: &[(&str, &str)]) -> Option<Reason> {
        let admitted = access.admit(&request(uri, headers));
        admitted.err().map(|problem| problem.reason())
    }

    #[test]
    fn without_a_token_only_local_names_are_admitted() {
        let access = Access::tcp(None);
        for host in [
            "127.0.0.1:9090",
            "[::1]:9090",
            "LOCALHOST",
            "localhost:1",
            "10.0.0.1",
        ] {
            assert_eq!(
                reason(&access, "/status", &[("host", host)]),
                None,
                "{host}"
            );
        }
        let misdirected = Some(Reason::MisdirectedRequest);
        for host in [
            "evil.example",
            "localhost.evil.example",
            "a.localhost:1",
            "localhost.",
            "127.0.0.1.evil.example",
            "127.1",
        ] {
            assert_eq!(
                reason(&access, "/status", &[("host", host)]),
                misdirected,
                "{host}"
            );
        }
        let absolute = "http://evil.example/status";
        assert_eq!(
            reason(&access, absolute, &[("host", "127.0.0.1")]),
            misdirected
        );
        assert_eq!(reason(&access, "/status", &[]), None);
        assert_eq!(
            reason(&Access::unix(), "/status", &[("host", "x.example")]),
            None
        );
    }

    #[test]
    fn a_token_must_be_sent_once_and_be_right() {
        let access = Access::tcp(Some(Token::new("0123456789abcdef").unwrap()));
        let auth = |value| ("authorization", value);
        let good = auth("bEARER  0123456789abcdef ");
        let invalid = Some(Reason::CredentialsInvalid);
        let missing = Some(Reason::CredentialsMissing);

        assert_eq!(reason(&access, "/status", &[good]), None);
        assert_eq!(
            reason(&access, "/status", &[good, ("host", "x.example")]),
            None
        );
        assert_eq!(reason(&access, "/status", &[]), missing);
        assert_eq!(reason(&access, "/status", &[good, good]), invalid);
        for bad in [
            "Bearer 0123456789abcdeX",
            "Basic 0123456789abcdef",
            "Bearer",
            "",
        ] {
            assert_eq!(reason(&access, "/status", &[auth(bad)]), invalid, "{bad}");
        }
        access.change_token(None);
        assert_eq!(reason(&access, "/status", &[]), None);
    }

    #[test]
    fn a_browser_sends_the_token_as_a_password_for_the_page_alone() {
        let access = Access::tcp(Some(Token::new("0123456789abcdef").unwrap()));
        let basic = |pair: &str| format!("bAsIc {}", STANDARD.encode(pair));
        let invalid = Some(Reason::CredentialsInvalid);
        for (pair, path, expected) in [
            (":0123456789abcdef", "/", None),
            ("ann:0123456789abcdef", "/?all", None),
            ("0123456789abcdef", "/", invalid),
            (":0123456789abcdeX", "/", invalid),
            (":0123456789abcdef", "/status", invalid),
            (":0123456789abcdef", "/admin/explain", invalid),
        ] {
            let value = basic(pair);
            let found = reason(&access, path, &[("authorization", &value)]);
            assert_eq!(found, expected, "{pair} at {path}");
        }
        let mut head = request("/", &[("authorization", &basic(":0123456789abcdef"))]);
        head.method = Method::POST;
        assert!(access.admit(&head).is_err(), "the page only reads");
    }

    type Fields = &'static [(&'static str, &'static str)];

    #[test]
    fn pages_of_other_sites_change_nothing() {
        let token = Token::new("0123456789abcdef").unwrap();
        let refused = Some(Reason::CrossSiteRequest);
        let cases: &[(Fields, Option<Reason>)] = &[
            (&[], None),
            (&[("sec-fetch-site", "same-origin")], None),
            (&[("sec-fetch-site", "none")], None),
            (&[("sec-fetch-site", "same-site")], refused),
            (&[("sec-fetch-site", "cross-site")], refused),
            (&[("origin", "http://LOCALHOST:9090")], None),
            (&[("origin", "http://localhost")], refused),
            (&[("origin", "http://evil.example")], refused),
            (&[("origin", "null")], refused),
            (&[("origin", "")], refused),
            (
                &[("origin", "null"), ("sec-fetch-site", "same-origin")],
                None,
            ),
        ];
        for (headers, expected) in cases {
            let mut fields = vec![("host", "localhost:9090")];
            fields.extend(*headers);
            let mut head = request("/admin/upstreams/u/targets/a", &fields);
            let found = |access: &Access, head: &Parts| {
                access.admit(head).err().map(|problem| problem.reason())
            };
            for method in [Method::PATCH, Method::POST] {
                head.method = method;
                assert_eq!(found(&Access::tcp(None), &head), *expected, "{headers:?}");
                assert_eq!(found(&Access::unix(), &head), None);
            }
            let with_token = Access::tcp(Some(token.clone()));
            let expected = expected.or(Some(Reason::CredentialsMissing));
            assert_eq!(found(&with_token, &head), expected, "{headers:?}");
            head.method = Method::GET;
            assert_eq!(found(&Access::tcp(None), &head), None);
        }
    }

    #[test]
    fn probes_need_neither_a_token_nor_a_local_name() {
        let access = Access::tcp(Some(Token::new("0123456789abcdef").unwrap()));
        for path in ["/health", "/ready"] {
            assert_eq!(reason(&access, path, &[("host", "x.example")]), None);
        }
        let missing = Some(Reason::CredentialsMissing);
        for path in ["/health/", "/ready/../status", "/metrics", "/"] {
            assert_eq!(reason(&access, path, &[]), missing, "{path}");
        }
    }
}
