//! The cache key of a request, and the lookup of stored responses by it.

use super::cached_route::CachedRoute;
use super::forwarded_claims;
use crate::exchange::Exchange;
use crate::policy::tunnel_connections;
use http::header::RANGE;
use http::uri::PathAndQuery;
use http_body::Body as _;
use proxy_cache::{
    BypassReason, CacheKey, CacheRequest, Found, Joined, KeyTarget, RequestDirectives,
    StoredResponse, bypass,
};
use proxy_http1::RawTarget;
use proxy_routing::{Readings, is_plain_path};
use std::sync::Arc;

/// A request that the store may answer.
#[derive(Debug)]
pub(super) struct Lookup<'p> {
    pub(super) cached: CachedRoute<'p>,
    pub(super) directives: RequestDirectives,
    /// The request has `Range`.
    pub(super) is_partial: bool,
    key: Arc<CacheKey>,
}

impl<'p> Lookup<'p> {
    /// The lookup of a request.
    ///
    /// # Errors
    /// The reason why the store is not used for the request.
    pub(super) fn new(exchange: &Exchange, cached: CachedRoute<'p>) -> Result<Self, BypassReason> {
        if tunnel_connections::is_wanted(&exchange.head) {
            return Err(BypassReason::Upgrade);
        }
        let headers = exchange.head.headers.as_map();
        let directives = RequestDirectives::read(headers);
        let body = exchange.body.as_ref();
        // A path that servers read differently has one key and several meanings.
        let target = target(exchange);
        let plain_target =
            target.filter(|target| target.is_usable() && has_one_reading(target.path));
        let request = CacheRequest {
            method: &exchange.head.method,
            headers,
            has_body: body.is_some_and(|body| !body.is_end_stream()),
            is_plain_target: plain_target.is_some(),
        };
        if let Some(reason) = bypass(request, &directives) {
            return Err(reason);
        }
        let target = plain_target.ok_or(BypassReason::Target)?;
        let claims = forwarded_claims::key_part(exchange);
        let (route, settings) = (&cached.settings.selector, &cached.settings.settings);
        let key = CacheKey::new(target, settings, route, headers, &claims);
        Ok(Self {
            cached,
            directives,
            is_partial: headers.contains_key(RANGE),
            key: Arc::new(key),
        })
    }

    /// The stored responses for the request.
    pub(super) fn find(&self, exchange: &Exchange) -> Found {
        let headers = exchange.head.headers.as_map();
        self.cached.store.find(&self.key, headers)
    }

    /// Looks up after a wait for `fetched`, which is used even if the store had no room for it.
    pub(super) fn find_after_wait(
        &self,
        exchange: &Exchange,
        fetched: Option<Arc<StoredResponse>>,
    ) -> Found {
        let found = self.find(exchange);
        let headers = exchange.head.headers.as_map();
        let fetched = fetched.filter(|response| response.variant.matches(headers));
        Found {
            response: fetched.or(found.response),
            has_other_variants: found.has_other_variants,
        }
    }

    /// Joins the requests that wait for the same response, or begins its fetch.
    pub(super) fn join(&self, exchange: &Exchange) -> Joined {
        let headers = exchange.head.headers.as_map();
        let now = exchange.worker().time.clock_reading();
        self.cached.store.join(&self.key, headers, now)
    }
}

/// The target as the client sent it; `None` unless it is a path.
pub(super) fn target(exchange: &Exchange) -> Option<KeyTarget<'_>> {
    if exchange.head.extensions.get::<RawTarget>().is_some() {
        return None;
    }
    let head = exchange.request_head();
    Some(KeyTarget {
        scheme: head.scheme().name(),
        host: head.host,
        path: head.target.map(PathAndQuery::path)?,
        query: head.target.and_then(PathAndQuery::query),
    })
}

/// Returns true if all servers read the path in the same way.
fn has_one_reading(path: &str) -> bool {
    if is_plain_path(path) {
        return true;
    }
    let Readings { paths, fault } = Readings::from_path(path);
    fault.is_none() && paths.len() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_key_if_all_its_readings_agree() {
        for path in ["/", "/a.b/c", "/caf%C3%A9", "/a%20b"] {
            assert!(has_one_reading(path), "{path}");
        }
        for path in [
            "//a",
            "/a/../b",
            "/a%2Fb",
            "/a/%2e%2e/b",
            "/a;x/b",
            "/a%",
            "/a\\b",
        ] {
            assert!(!has_one_reading(path), "{path}");
        }
    }
}
