//! Absolute web URLs, such as endpoints of identity providers.

use std::net::IpAddr;
use url::{Host, Url};

/// Maximum length in bytes: browsers and proxies refuse longer request targets.
const MAX_BYTES: usize = 2_000;

/// An absolute `https` or `http` URL with a host, without credentials, fragment, white space or
/// control characters. URL parsers drop line breaks silently, but the text is stored and shown as
/// entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebUrl(Url);

impl WebUrl {
    /// Parses a URL; `None` for every other kind of URL.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = |letter: char| !letter.is_whitespace() && !letter.is_control();
        if MAX_BYTES < text.len() || !text.chars().all(is_plain) {
            return None;
        }
        let url = Url::parse(text).ok()?;
        let is_web = matches!(url.scheme(), "https" | "http") && url.has_host();
        let is_bare =
            url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        (is_web && is_bare).then_some(Self(url))
    }

    /// Returns true for `https`.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The host, if it is an IP address.
    pub fn ip(&self) -> Option<IpAddr> {
        match self.0.host()? {
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
            Host::Domain(_) => None,
        }
    }

    /// The normalized URL.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// URL of `path` below this one, with the parameters as its query.
    pub fn below(&self, path: &str, parameters: &[(&str, &str)]) -> Option<Self> {
        let mut url = self.0.clone();
        url.path_segments_mut()
            .ok()?
            .pop_if_empty()
            .extend(path.split('/'));
        url.query_pairs_mut().extend_pairs(parameters);
        Some(Self(url))
    }

    /// The URL with `query` appended to its own query.
    pub(crate) fn with_query(&self, query: &str) -> String {
        let mut url = self.0.clone();
        let joined = match url.query() {
            Some(own) if !own.is_empty() => format!("{own}&{query}"),
            _ => query.to_owned(),
        };
        url.set_query(Some(&joined));
        url.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_web_addresses_are_accepted() {
        for good in ["https://idp.test/sso?tenant=1", "http://127.0.0.1:8080"] {
            assert!(WebUrl::parse(good).is_some(), "{good}");
        }
        let bad = [
            "",
            "idp.test/sso",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://user@idp.test/",
            "https://:secret@idp.test/",
            "https://idp.test/#fragment",
            " https://idp.test/",
            "https://idp.test/\r\nx-injected: 1",
            "https://idp.test/a b",
            "https://idp.test/\t",
            "https://idp.test/\u{85}",
            "https://",
        ];
        for bad in bad {
            assert_eq!(WebUrl::parse(bad), None, "{bad}");
        }
        let long = format!("https://idp.test/{}", "a".repeat(MAX_BYTES));
        assert_eq!(WebUrl::parse(&long), None);
    }

    #[test]
    fn parameters_are_added_to_those_that_are_there() {
        let with = |text| WebUrl::parse(text).unwrap().with_query("a=1");
        assert_eq!(with("https://idp.test/sso"), "https://idp.test/sso?a=1");
        assert_eq!(with("https://idp.test/sso?"), "https://idp.test/sso?a=1");
        assert_eq!(with("https://idp.test/?t=2"), "https://idp.test/?t=2&a=1");
    }
}
