//! Removal of stored responses after a request that changed their resource. [RFC 9111 §4.4]

use super::lookup::target;
use crate::exchange::Exchange;
use crate::response::body::Body;
use http::header::{CONTENT_LOCATION, LOCATION};
use http::{HeaderValue, Response};
use proxy_cache::{CacheStore, KeyTarget};

/// The target of an unsafe request.
#[derive(Debug)]
pub(super) struct ChangedTarget {
    /// Scheme and host.
    origin: String,
    /// The URL in the form of the key of each route with a cache: routes differ in `ignore-query`.
    urls: Vec<String>,
}

/// The target of the request, if its method is unsafe.
pub(super) fn changed_target(exchange: &Exchange) -> Option<ChangedTarget> {
    if exchange.head.method.is_safe() {
        return None;
    }
    let target = target(exchange).filter(KeyTarget::is_usable)?;
    let mut urls = vec![target.url(&[])];
    for route in exchange.active().plan.routes() {
        let ignored = route
            .cache
            .as_ref()
            .map(|cache| &cache.settings.ignore_query);
        if let Some(ignored) = ignored.filter(|ignored| !ignored.is_empty()) {
            urls.push(target.url(ignored));
        }
    }
    urls.sort_unstable();
    urls.dedup();
    let origin = format!("{}://{}", target.scheme, target.host.to_ascii_lowercase());
    Some(ChangedTarget { origin, urls })
}

impl ChangedTarget {
    /// Removes the stored responses of the target, and of the URLs of the same origin in `Location`
    /// and `Content-Location`. A response with an error removes none.
    pub(super) fn invalidate(&self, store: &CacheStore, response: &Response<Body>) {
        let status = response.status();
        if !status.is_success() && !status.is_redirection() {
            return;
        }
        for url in &self.urls {
            store.invalidate(url);
        }
        for name in [LOCATION, CONTENT_LOCATION] {
            let named = response.headers().get(name);
            if let Some(url) = named.and_then(|value| self.same_origin_url(value)) {
                store.invalidate(&url);
            }
        }
    }

    /// The URL in `value`, without its fragment; `None` for another origin or a relative path.
    fn same_origin_url(&self, value: &HeaderValue) -> Option<String> {
        let text = value.to_str().ok()?;
        let text = text.split('#').next().unwrap_or_default();
        if text.starts_with('/') && !text.starts_with("//") {
            return Some(format!("{}{text}", self.origin));
        }
        let (origin, path) = text.split_at_checked(self.origin.len())?;
        let is_same = origin.eq_ignore_ascii_case(&self.origin) && path.starts_with('/');
        is_same.then(|| format!("{}{path}", self.origin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_of_the_same_origin_are_removed() {
        let changed = ChangedTarget {
            origin: "https://a.example".to_owned(),
            urls: Vec::new(),
        };
        let named = |value| changed.same_origin_url(&HeaderValue::from_static(value));
        assert_eq!(
            named("/new?x#y").as_deref(),
            Some("https://a.example/new?x")
        );
        assert_eq!(
            named("https://a.example/b").as_deref(),
            Some("https://a.example/b")
        );
        assert_eq!(
            named("HTTPS://A.Example/b").as_deref(),
            Some("https://a.example/b")
        );
        for other in [
            "//b.example/",
            "https://a.example.b/",
            "http://a.example/",
            "b",
            "",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
