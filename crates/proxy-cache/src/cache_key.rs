//! The key of a stored response.

use crate::settings::CacheSettings;
use http::HeaderMap;

/// The key of stored responses: a URL, and all else that the response depends on by configuration.
///
/// The URL is the client's, with the host in lower case. Every server reads its path the same:
/// other requests are not looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey {
    pub(crate) url: Box<str>,
    pub(crate) selector: Box<[u8]>,
}

/// The target of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTarget<'r> {
    /// `http` or `https`, as the client used it.
    pub scheme: &'r str,
    /// The host with its port, as sent.
    pub host: &'r str,
    /// The path, from its first `/`.
    pub path: &'r str,
    /// The query without its `?`.
    pub query: Option<&'r str>,
}

impl KeyTarget<'_> {
    /// Returns true if the target makes an unambiguous URL.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        let is_of_host = |byte: u8| byte.is_ascii_graphic() && !b"/?#@\\\"<>".contains(&byte);
        !self.host.is_empty() && self.host.bytes().all(is_of_host) && self.path.starts_with('/')
    }

    /// The URL without the query parameters called `ignored`. A parameter that contains `;` or `?`
    /// stays: some upstreams read several parameters there, and a client could hide a further one
    /// behind an ignored name.
    #[must_use]
    pub fn url(&self, ignored: &[String]) -> String {
        let Self {
            scheme,
            host,
            path,
            query,
        } = *self;
        let mut url = String::with_capacity(
            scheme.len() + host.len() + path.len() + query.map_or(0, str::len) + 4,
        );
        url.push_str(scheme);
        url.push_str("://");
        url.push_str(&host.to_ascii_lowercase());
        url.push_str(path);
        let Some(query) = query else {
            return url;
        };
        if ignored.is_empty() {
            url.push('?');
            url.push_str(query);
            return url;
        }
        let mut sign = '?';
        for pair in query.split('&').filter(|pair| !is_ignored(pair, ignored)) {
            url.push(sign);
            url.push_str(pair);
            sign = '&';
        }
        url
    }
}

fn is_ignored(pair: &str, ignored: &[String]) -> bool {
    let name = pair.split('=').next().unwrap_or_default();
    !pair.contains([';', '?']) && ignored.iter().any(|one| one == name)
}

impl CacheKey {
    /// The key of a request for `target` with the fields `request`. `route` identifies the route
    /// and the settings that responses depend on; `claims` are values of trusted proxies that the
    /// upstream gets.
    #[must_use]
    pub fn new(
        target: KeyTarget<'_>,
        settings: &CacheSettings,
        route: &[u8],
        request: &HeaderMap,
        claims: &[u8],
    ) -> Self {
        let mut selector = route.to_vec();
        push_part(&mut selector, claims);
        for name in &settings.key_headers {
            for value in request.get_all(name) {
                push_part(&mut selector, value.as_bytes());
            }
            // Ends the values of this name.
            selector.push(0);
        }
        Self {
            url: target.url(&settings.ignore_query).into(),
            selector: selector.into(),
        }
    }

    /// The URL of the key.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn bytes(&self) -> usize {
        self.url.len() + self.selector.len()
    }
}

fn push_part(selector: &mut Vec<u8>, part: &[u8]) {
    selector.push(1);
    selector.extend_from_slice(&part.len().to_be_bytes());
    selector.extend_from_slice(part);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(query: Option<&str>, ignored: &[&str]) -> String {
        let target = KeyTarget {
            scheme: "https",
            host: "A.example:8443",
            path: "/x",
            query,
        };
        let ignored: Vec<String> = ignored.iter().map(|&name| name.to_owned()).collect();
        target.url(&ignored)
    }

    #[test]
    fn only_the_host_and_the_ignored_parameters_are_changed() {
        assert_eq!(url(None, &[]), "https://a.example:8443/x");
        assert_eq!(url(Some(""), &[]), "https://a.example:8443/x?");
        assert_eq!(url(Some("B=1&a"), &[]), "https://a.example:8443/x?B=1&a");
        let ignored = &["utm_source", "f"];
        assert_eq!(
            url(Some("utm_source=m&a=1&f&b=2"), ignored),
            "https://a.example:8443/x?a=1&b=2"
        );
        assert_eq!(url(Some("f=1"), ignored), "https://a.example:8443/x");
    }

    #[test]
    fn a_parameter_cannot_hide_behind_an_ignored_one() {
        for query in ["f=1;lang=x", "f;lang=x", "f=1?lang=x", "%66=1", "f[]=1"] {
            let kept = format!("https://a.example:8443/x?{query}");
            assert_eq!(url(Some(query), &["f"]), kept);
        }
    }

    #[test]
    fn a_host_that_could_be_a_path_makes_no_key() {
        for host in ["", "a/b", "a?b", "a#b", "u@a", "a b", "a\\b"] {
            let target = KeyTarget {
                scheme: "http",
                host,
                path: "/",
                query: None,
            };
            assert!(!target.is_usable(), "{host}");
        }
    }
}
