//! Redirects of a route's requests.

use http::{HeaderValue, StatusCode};
use proxy_errors::{Detail, Problem, Reason};
use proxy_model::{self as model, PrefixReplacement, RedirectTarget, TrailingSlash, UrlScheme};
use proxy_routing::{forgiving_path, is_plain_path, normal_host};
use std::borrow::Cow;
use std::sync::Arc;

/// A compiled redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectPlan {
    target: RedirectTarget,
    replace_prefix: Option<PrefixReplacement>,
    trailing_slash: Option<TrailingSlash>,
    status: StatusCode,
    /// The redirect in words, for comparisons.
    label: Arc<str>,
}

/// The response to one request of a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// Status.
    pub status: StatusCode,
    /// The absolute URL of `Location`.
    pub location: HeaderValue,
}

/// The URL of a request as its client wrote it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestUrl<'a> {
    pub(crate) scheme: UrlScheme,
    /// The host as sent, with its port.
    pub(crate) authority: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
}

impl RedirectPlan {
    pub(crate) fn compile(redirect: &model::Redirect) -> Self {
        let model::Redirect {
            place: _,
            to,
            replace_prefix,
            trailing_slash,
            status,
        } = redirect;
        let target = to.as_deref().cloned().unwrap_or_default();
        let mut label = vec![status.code().to_string(), target.to_string()];
        label.extend(
            replace_prefix
                .as_deref()
                .map(|one| format!("replace-prefix {one}")),
        );
        label.extend(
            trailing_slash
                .as_deref()
                .map(|one| format!("trailing-slash {one}")),
        );
        label.retain(|part| !part.is_empty());
        Self {
            target,
            replace_prefix: replace_prefix.as_deref().cloned(),
            trailing_slash: trailing_slash.as_deref().copied(),
            status: StatusCode::from_u16(status.code()).unwrap_or(StatusCode::FOUND),
            label: label.join(" ").into(),
        }
    }

    /// Description of the redirect: its status and the replaced parts.
    #[must_use]
    pub fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// The redirection of a request with a valid host.
    pub(crate) fn redirection(&self, url: RequestUrl<'_>) -> Result<Redirection, Problem> {
        let RedirectTarget {
            scheme,
            authority,
            path,
            query,
            fragment,
        } = &self.target;
        let scheme = scheme.unwrap_or(url.scheme);
        let authority = match authority {
            Some(authority) => authority,
            // A port applies to its scheme only.
            None if scheme != url.scheme => without_port(url.authority),
            None => url.authority,
        };
        if authority.is_empty() {
            let detail = Detail::text("the redirect needs the host of the request");
            return Err(Problem::new(Reason::MissingHost, detail));
        }
        let path = match path {
            Some(path) => Cow::Borrowed(path.as_str()),
            None => self.path(url.path),
        };
        let query = match query {
            Some(query) => Some(query.as_str()).filter(|query| !query.is_empty()),
            None => url.query,
        };
        let to = RequestUrl {
            scheme,
            authority,
            path: &path,
            query,
        };
        if to.is_same(&url) && fragment.is_none() {
            let detail = Detail::text(format!("the redirect leads to {} itself", to.text()));
            return Err(Problem::new(Reason::RedirectLoop, detail));
        }
        let mut location = to.text();
        if let Some(fragment) = fragment {
            location.push('#');
            location.push_str(fragment);
        }
        match HeaderValue::try_from(location) {
            Ok(location) => Ok(Redirection {
                status: self.status,
                location,
            }),
            Err(_) => Err(Problem::new(Reason::InvalidHost, Detail::None)),
        }
    }

    /// The path of the URL for a request of `path`.
    fn path<'a>(&self, path: &'a str) -> Cow<'a, str> {
        let mut path = Cow::Borrowed(path);
        if let Some(replacement) = &self.replace_prefix
            && let Some(replaced) = replacement.apply(&routed_form(&path))
        {
            path = replaced.into();
        }
        if let Some(slash) = self.trailing_slash {
            let mut changed = slash.apply(&path);
            if changed == path {
                // The slash in the route's form of `/a/.` may be missing in the path as sent.
                changed = slash.apply(&routed_form(&path));
            }
            path = changed.into();
        }
        path
    }
}

/// The form of `path` that the router compares.
fn routed_form(path: &str) -> Cow<'_, str> {
    if is_plain_path(path) {
        return Cow::Borrowed(path);
    }
    Cow::Owned(forgiving_path(path).0.into_owned())
}

impl RequestUrl<'_> {
    fn text(&self) -> String {
        let Self {
            scheme,
            authority,
            path,
            query,
        } = self;
        let query = query.map_or(String::new(), |query| format!("?{query}"));
        format!("{}://{authority}{path}{query}", scheme.name())
    }

    fn is_same(&self, other: &RequestUrl<'_>) -> bool {
        let is_same_host = || {
            let hosts = (normal_host(self.authority), normal_host(other.authority));
            let (Ok(own), Ok(other_host)) = hosts else {
                return false;
            };
            let own_port = own.port.unwrap_or(self.scheme.default_port());
            let other_port = other_host.port.unwrap_or(other.scheme.default_port());
            own.name == other_host.name && own_port == other_port
        };
        self.scheme == other.scheme
            && self.path == other.path
            && self.query == other.query
            && is_same_host()
    }
}

/// `host [":" port]` without its port.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        Some(_) | None => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_removed_and_no_part_of_an_address() {
        for (authority, host) in [
            ("a.example", "a.example"),
            ("a.example:8080", "a.example"),
            ("a.example:", "a.example"),
            ("[2001:db8::1]", "[2001:db8::1]"),
            ("[2001:db8::1]:80", "[2001:db8::1]"),
        ] {
            assert_eq!(without_port(authority), host);
        }
    }
}
