//! The key of a stored response.

use crate::key_target::KeyTarget;
use crate::settings::CacheSettings;
use http::HeaderMap;

/// The key of stored responses: a URL, and all else that the response depends on by configuration.
///
/// The URL is the client's in normal form: purges and unsafe requests remove the responses of
/// equivalent URLs. Every server reads its path the same: other requests are not looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey {
    pub(crate) url: Box<str>,
    pub(crate) selector: Box<[u8]>,
    /// False for another spelling of the URL than the normal one: clients can make many of one URL.
    pub(crate) is_normal: bool,
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
        // The upstream gets the URL as sent, and may answer by its form.
        let sent = target.variant(&settings.ignore_query);
        if let Some(sent) = &sent {
            push_part(&mut selector, sent.as_bytes());
        }
        selector.push(0);
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
            is_normal: sent.is_none(),
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

    #[test]
    fn equivalent_targets_have_separate_responses_under_their_url() {
        let settings = CacheSettings {
            default_ttl: None,
            heuristic_percent: None,
            statuses: Vec::new(),
            key_headers: vec![http::header::ACCEPT],
            ignore_query: vec!["utm".to_owned()],
            stale_while_revalidate: 0,
            stale_if_error: 0,
            collapse: std::time::Duration::ZERO,
            client_directives: false,
            cache_status: false,
        };
        let key = |host, query, accept: Option<&'static str>| {
            let target = KeyTarget {
                scheme: "https",
                host,
                path: "/~x",
                query,
            };
            let mut request = HeaderMap::new();
            if let Some(accept) = accept {
                let accept = http::HeaderValue::from_static(accept);
                request.insert(http::header::ACCEPT, accept);
            }
            CacheKey::new(target, &settings, b"r", &request, b"")
        };
        let plain = key("a.example", None, None);
        assert_eq!(plain, key("A.Example", None, None));
        assert_eq!(plain, key("a.example", Some("utm=%7E"), None));
        for host in ["a.example:443", "a.example."] {
            let other = key(host, None, None);
            assert_eq!(other.url, plain.url);
            assert_ne!(other.selector, plain.selector);
            assert!(plain.is_normal && !other.is_normal);
            let sent = if host.ends_with('.') {
                "https://a.example./~x"
            } else {
                "https://a.example:443/~x"
            };
            assert_ne!(other, key("a.example", None, Some(sent)));
        }
        let [one, other] = ["a=~", "a=%7e"].map(|query| key("a.example", Some(query), None));
        assert_eq!(one.url, other.url);
        assert_ne!(one, other);
    }
}
