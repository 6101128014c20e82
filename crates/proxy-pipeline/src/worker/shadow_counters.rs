//! How copies of requests go.

use proxy_plan::RoutePlan;
use proxy_telemetry::{Registry, SharedCounter, names};
use std::sync::Arc;

/// Most copies of one worker that are under way.
pub const MAX_COPIES: u32 = 64;

/// How the copies of one route went.
#[derive(Clone, Debug)]
pub(crate) struct ShadowCounters {
    pub(crate) answered: Arc<SharedCounter>,
    pub(crate) failed: Arc<SharedCounter>,
    pub(crate) dropped: Arc<SharedCounter>,
}

impl ShadowCounters {
    pub(crate) fn new(route: &RoutePlan, registry: &Registry) -> Option<Self> {
        route.shadow?;
        let counter =
            |result| registry.counter(&names::SHADOW_REQUESTS_TOTAL, [&*route.id, result]);
        Some(Self {
            answered: counter("answered"),
            failed: counter("failed"),
            dropped: counter("dropped"),
        })
    }
}
