//! Redirects to another URL.

use crate::address;
use crate::place::{Place, Setting};
use crate::policies::{PrefixReplacement, UrlScheme, check_characters};
use std::fmt;
use std::str::FromStr;

/// The redirect of every request of a route.
#[derive(Clone, Debug)]
pub struct Redirect {
    /// Place of the block.
    pub place: Place,
    /// Replaced parts of the URL; `None` to replace a part of the path only.
    pub to: Option<Setting<RedirectTarget>>,
    /// The beginning of the path that is replaced.
    pub replace_prefix: Option<Setting<PrefixReplacement>>,
    /// Change of the slash at the end of the path.
    pub trailing_slash: Option<Setting<TrailingSlash>>,
    /// Status of the response.
    pub status: Setting<RedirectStatus>,
}

/// The parts of a URL that a redirect replaces; an absent one is the request's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RedirectTarget {
    /// Scheme.
    pub scheme: Option<UrlScheme>,
    /// Host with an optional port. Without it the request's host is used, and its port unless the
    /// scheme is replaced.
    pub authority: Option<String>,
    /// Path.
    pub path: Option<String>,
    /// Query without its `?`; empty removes the request's.
    pub query: Option<String>,
    /// Fragment without its `#`.
    pub fragment: Option<String>,
}

/// A change of the slash at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrailingSlash {
    /// Appends the missing slash.
    Add,
    /// Removes the slash, except from `/`.
    Remove,
}

/// The status of a redirect. [RFC 9110 §15.4]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedirectStatus {
    /// Permanent; clients may change POST to GET.
    MovedPermanently,
    /// Temporary; clients may change POST to GET.
    Found,
    /// Temporary; clients send GET.
    SeeOther,
    /// Temporary; clients keep method and body.
    TemporaryRedirect,
    /// Permanent; clients keep method and body.
    PermanentRedirect,
}

impl TrailingSlash {
    /// `path` with the slash added or removed.
    #[must_use]
    pub fn apply(self, path: &str) -> String {
        match self {
            Self::Add if path.ends_with('/') => path.to_owned(),
            Self::Add => format!("{path}/"),
            Self::Remove => match path.trim_end_matches('/') {
                "" => "/".to_owned(),
                path => path.to_owned(),
            },
        }
    }
}

impl RedirectStatus {
    /// Status code: 301, 302, 303, 307 or 308.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::MovedPermanently => 301,
            Self::Found => 302,
            Self::SeeOther => 303,
            Self::TemporaryRedirect => 307,
            Self::PermanentRedirect => 308,
        }
    }
}

impl FromStr for RedirectTarget {
    type Err = String;

    /// Parses `https`, `https://host/path?query#fragment`, `//host/path`, or `/path`.
    fn from_str(text: &str) -> Result<Self, String> {
        let scheme = match text.split_once("://").map_or(text, |(scheme, _)| scheme) {
            "http" => Some(UrlScheme::Http),
            "https" => Some(UrlScheme::Https),
            _ => None,
        };
        let rest = match scheme {
            Some(scheme) => text.strip_prefix(scheme.name()).unwrap_or_default(),
            None => text,
        };
        // `https` alone.
        if scheme.is_some() && rest.is_empty() {
            return Ok(Self {
                scheme,
                ..Self::default()
            });
        }
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        let is_form = rest.starts_with("//") || scheme.is_none() && rest.starts_with('/');
        if !is_form {
            return Err("write `https`, a URL with http or https, or a path".to_owned());
        }
        check_characters(rest)?;
        let (rest, fragment) = split(rest, '#');
        let (rest, query) = split(rest, '?');
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let end = rest.find('/').unwrap_or(rest.len());
                let (authority, path) = rest.split_at(end);
                check_authority(authority)?;
                (Some(authority.to_owned()), path)
            }
            None => (None, rest),
        };
        Ok(Self {
            scheme,
            authority,
            path: (!path.is_empty()).then(|| path.to_owned()),
            query,
            fragment,
        })
    }
}

/// The text before `separator`, and the text after it if there is one.
fn split(text: &str, separator: char) -> (&str, Option<String>) {
    match text.split_once(separator) {
        Some((before, after)) => (before, Some(after.to_owned())),
        None => (text, None),
    }
}

fn check_authority(text: &str) -> Result<(), String> {
    address::check_authority(text)
        .map_err(|_| format!("`{text}` is not a host, with or without a port"))
}

impl fmt::Display for RedirectTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scheme,
            authority,
            path,
            query,
            fragment,
        } = self;
        if let Some(scheme) = scheme {
            f.write_str(scheme.name())?;
        }
        if let Some(authority) = authority {
            let colon = if scheme.is_some() { ":" } else { "" };
            write!(f, "{colon}//{authority}")?;
        }
        f.write_str(path.as_deref().unwrap_or_default())?;
        if let Some(query) = query {
            write!(f, "?{query}")?;
        }
        if let Some(fragment) = fragment {
            write!(f, "#{fragment}")?;
        }
        Ok(())
    }
}

impl fmt::Display for TrailingSlash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "add",
            Self::Remove => "remove",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_shown_alike() {
        for text in [
            "https",
            "http",
            "https://www.example.com",
            "https://www.example.com:8443/a/b?c=d#e",
            "https://[2001:db8::1]:8443/",
            "https://www.example.com?",
            "//www.example.com",
            "/new",
            "/new?",
            "/#/login",
        ] {
            let target: RedirectTarget = text.parse().unwrap();
            assert_eq!(target.to_string(), text);
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "ftp://a",
            "example.com",
            "https:",
            "https:/a",
            "https://",
            "https://user@host",
            "https://host:99999",
            "https://host:x",
            "https://host:0",
            "https://a b",
            "https://a/\u{e9}",
            "https://a/{uri}",
            "javascript:alert(1)",
        ] {
            assert!(text.parse::<RedirectTarget>().is_err(), "{text}");
        }
    }
}
