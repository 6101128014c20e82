//! Removal of stored responses after a request that changed their resource. [RFC 9111 §4.4]

use super::lookup::target;
use crate::exchange::Exchange;
use crate::response::body::Body;
use http::header::{CONTENT_LOCATION, LOCATION};
use http::{HeaderValue, Response};
use proxy_cache::{CacheStore, KeyTarget};
use proxy_plan::Plan;
use std::sync::Arc;

/// The target of an unsafe request.
#[derive(Debug)]
pub(super) struct ChangedTarget {
    plan: Arc<Plan>,
    /// Scheme and host in normal form.
    origin: String,
    /// The URL in the form of the key of each route with a cache.
    urls: Vec<String>,
}

/// The target of the request, if its method is unsafe.
pub(super) fn changed_target(exchange: &Exchange) -> Option<ChangedTarget> {
    if exchange.head.method.is_safe() {
        return None;
    }
    let target = target(exchange).filter(KeyTarget::is_usable)?;
    let plan = &exchange.active().plan;
    Some(ChangedTarget {
        plan: Arc::clone(plan),
        origin: target.origin(),
        urls: plan.cache_urls(target),
    })
}

impl ChangedTarget {
    /// Removes the stored responses of the target, and of the URLs of the same origin in `Location`
    /// and `Content-Location`. A response with an error removes none.
    pub(super) fn invalidate(&self, store: &CacheStore, response: &Response<Body>) {
        let status = response.status();
        if !status.is_success() && !status.is_redirection() {
            return;
        }
        let Self { plan, origin, urls } = self;
        for url in urls {
            store.invalidate(url);
        }
        for name in [LOCATION, CONTENT_LOCATION] {
            let named = response.headers().get(name);
            let Some(url) = named.and_then(|value| same_origin_url(origin, value)) else {
                continue;
            };
            let target = KeyTarget::from_url(&url);
            for url in target.map_or_else(Vec::new, |target| plan.cache_urls(target)) {
                store.invalidate(&url);
            }
        }
    }
}

/// The URL in `value`; `None` for another origin or a relative path.
fn same_origin_url(origin: &str, value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?;
    if text.starts_with('/') && !text.starts_with("//") {
        return Some(format!("{origin}{text}"));
    }
    let target = KeyTarget::from_url(text)?;
    (target.origin() == origin).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_of_the_same_origin_are_removed() {
        let named = |value| {
            let url = same_origin_url("https://a.example", &HeaderValue::from_static(value))?;
            KeyTarget::from_url(&url).map(|target| target.url(&[]))
        };
        for (value, url) in [
            ("/new?x#y", "https://a.example/new?x"),
            ("https://a.example/b", "https://a.example/b"),
            ("HTTPS://A.Example/b", "https://a.example/b"),
            ("https://a.example:443/b", "https://a.example/b"),
            ("https://a.example", "https://a.example/"),
        ] {
            assert_eq!(named(value).as_deref(), Some(url), "{value}");
        }
        for other in [
            "//b.example/",
            "https://a.example.b/",
            "https://a.example:444/",
            "https://a.example:80/",
            "http://a.example/",
            "http://a.example:443/",
            "https://u@a.example/",
            "b",
            "",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
