//! The effect of the cache on a request.

use super::cached_route::CachedRoute;
use super::invalidation::ChangedTarget;
use super::stored_reply::add_cache_status;
use crate::response::body::Body;
use http::Response;
use proxy_cache::{CacheStatus, CacheStore};

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "matched at once, and never stored"
)]
pub(crate) enum CacheResult<'p> {
    /// The response, stored or fetched for the store.
    Response(Response<Body>),
    /// The request is forwarded without the store.
    Forward(Box<UncachedRequest<'p>>),
}

/// A request that is forwarded without the store.
#[derive(Debug)]
pub(crate) struct UncachedRequest<'p> {
    pub(super) store: &'p CacheStore,
    /// Target of an unsafe request.
    pub(super) changed: Option<ChangedTarget>,
    /// Values of `Cache-Status`; `None` on a route without a cache.
    pub(super) cache_status: Option<(CachedRoute<'p>, CacheStatus)>,
}

impl UncachedRequest<'_> {
    /// Removes the stored responses that `response` makes obsolete, and adds `Cache-Status` to it.
    pub(crate) fn finish(self, response: &mut Response<Body>) {
        let Self {
            store,
            changed,
            cache_status,
        } = self;
        if let Some(changed) = changed {
            changed.invalidate(store, response);
        }
        if let Some((cached, status)) = cache_status {
            add_cache_status(cached, response, &status);
        }
    }
}
