//! Cross-origin requests. [Fetch standard, CORS protocol]

use crate::place::{Place, Setting};
use http::{HeaderName, Method};
use proxy_framing::is_host;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The origins of pages that may use a route, and how.
#[derive(Clone, Debug)]
pub struct Cors {
    /// Place of the block.
    pub place: Place,
    /// Origins that are allowed; at least one.
    pub allow_origins: Vec<Setting<OriginPattern>>,
    /// Methods that preflight requests may announce; empty for GET, HEAD and POST.
    pub allow_methods: Vec<Setting<Method>>,
    /// Header fields that preflight requests may announce.
    pub allow_headers: Vec<Setting<HeaderName>>,
    /// Fields of responses that pages may read.
    pub expose_headers: Vec<Setting<HeaderName>>,
    /// True if pages may send credentials.
    pub allow_credentials: Setting<bool>,
    /// Time for which browsers keep the answer to a preflight request.
    pub max_age: Setting<Duration>,
}

/// An origin, or several.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OriginPattern {
    /// Every origin: `*`.
    Any,
    /// One origin, in lower case: `https://app.example.com`, or `null`.
    Exact(String),
    /// The origins of all names below one: `https://*.example.com`.
    Below {
        /// `https://`
        scheme: String,
        /// `.example.com`, with the port if there is one.
        suffix: String,
    },
}

impl OriginPattern {
    /// Returns true if `origin`, as a browser sends it, is one of these.
    #[must_use]
    pub fn matches(&self, origin: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(own) => own.eq_ignore_ascii_case(origin),
            Self::Below { scheme, suffix } => {
                let origin = origin.to_ascii_lowercase();
                let name = origin.strip_prefix(scheme.as_str());
                let below = name.and_then(|name| name.strip_suffix(suffix.as_str()));
                let is_label = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
                below.is_some_and(|below| !below.is_empty() && below.chars().all(is_label))
            }
        }
    }
}

impl FromStr for OriginPattern {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let form = "write `https://app.example.com`, `https://*.example.com` or `*`";
        if text == "*" {
            return Ok(Self::Any);
        }
        let text = text.to_ascii_lowercase();
        if text == "null" {
            return Ok(Self::Exact(text));
        }
        let (scheme, host) = text.split_once("://").ok_or(form)?;
        if !["http", "https"].contains(&scheme) {
            return Err(form);
        }
        let own_port = if scheme == "https" { ":443" } else { ":80" };
        if host.ends_with(own_port) {
            return Err("leave the scheme's own port out, as browsers do in `Origin`");
        }
        let is_origin = |host: &str| is_host(host.as_bytes()) && !host.ends_with(':');
        if let Some(suffix) = host.strip_prefix('*') {
            return suffix
                .strip_prefix('.')
                .is_some_and(is_origin)
                .then(|| Self::Below {
                    scheme: format!("{scheme}://"),
                    suffix: suffix.to_owned(),
                })
                .ok_or(form);
        }
        if !is_origin(host) {
            return Err("an origin is a scheme, a host and perhaps a port, without a path");
        }
        Ok(Self::Exact(text))
    }
}

impl fmt::Display for OriginPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Exact(origin) => f.write_str(origin),
            Self::Below { scheme, suffix } => write!(f, "{scheme}*{suffix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_compared_as_a_whole() {
        for (pattern, origin, matches) in [
            ("*", "https://anything.test", true),
            ("https://a.test", "https://a.test", true),
            ("https://A.test", "https://a.TEST", true),
            ("https://a.test", "http://a.test", false),
            ("https://a.test", "https://a.test:8443", false),
            ("https://a.test", "https://a.test.evil.test", false),
            ("https://*.a.test", "https://b.a.test", true),
            ("https://*.a.test", "https://c.b.a.test", true),
            ("https://*.a.test", "https://a.test", false),
            ("https://*.a.test", "https://.a.test", false),
            ("https://*.a.test", "https://evil.test/.a.test", false),
            ("https://*.a.test", "https://user@b.a.test", false),
            ("https://*.a.test", "https://b.a.test:8443", false),
            ("https://*.a.test:8443", "https://b.a.test:8443", true),
            ("null", "null", true),
            ("https://a.test", "null", false),
        ] {
            let parsed: OriginPattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches(origin), matches, "{pattern} {origin}");
        }
    }

    #[test]
    fn other_text_is_not_an_origin() {
        for text in [
            "",
            "a.test",
            "https://",
            "https://a.test/",
            "ftp://a.test",
            "https://*",
            "https://*a.test",
            "https://a.test:x",
            "https://a.test:99999",
            "https://*.a.test:",
            "https://a.test:443",
            "http://*.a.test:80",
            "https://a..[b",
        ] {
            assert!(text.parse::<OriginPattern>().is_err(), "{text}");
        }
    }
}
