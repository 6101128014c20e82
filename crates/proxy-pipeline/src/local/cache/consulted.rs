//! The effect of the cache on a request.

use super::invalidation::ChangedTarget;
use super::outcome::CachedRoute;
use super::served::mark;
use crate::response::body::Body;
use http::Response;
use proxy_cache::{CacheStatus, CacheStore};

/// The effect of the cache on a request.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "matched at once, and never stored"
)]
pub(crate) enum Consulted<'p> {
    /// The response, stored or fetched for the store.
    Answered(Response<Body>),
    /// The request is forwarded without the store.
    Forward(Box<Uncached<'p>>),
}

/// A request that is forwarded without the store.
#[derive(Debug)]
pub(crate) struct Uncached<'p> {
    pub(super) store: &'p CacheStore,
    /// The target, if the method is unsafe.
    pub(super) changed: Option<ChangedTarget>,
    /// `Cache-Status`, on a route that caches.
    pub(super) mark: Option<(CachedRoute<'p>, CacheStatus)>,
}

/// The effect of a route's cache on a request.
pub(super) enum Answer {
    Response(Response<Body>),
    /// The request is forwarded without the store, for this reason.
    Bypassed(CacheStatus),
}

impl Uncached<'_> {
    /// Removes what `response` makes obsolete, and adds `Cache-Status` to it.
    pub(crate) fn finish(self, response: &mut Response<Body>) {
        let Self {
            store,
            changed,
            mark: marked,
        } = self;
        if let Some(changed) = changed {
            changed.invalidate(store, response);
        }
        if let Some((cached, status)) = marked {
            mark(cached, response, &status);
        }
    }
}
