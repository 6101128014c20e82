//! The settings of the pool of one target.

use crate::idle_limit::IdleLimit;
use crate::limit::ConnectionLimit;
use proxy_clock::Tick;
use proxy_upstream::TargetId;
use std::sync::Arc;
use std::time::Duration;

/// Settings of the pool of one target.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// The target. Connections to other targets are neither accepted nor returned.
    pub target: TargetId,
    /// Maximum number of idle connections, over all workers; other targets may share it.
    pub idle_limit: IdleLimit,
    /// Maximum idle time of a connection.
    pub idle_for: Duration,
    /// Maximum age of a connection; `None` is unlimited.
    pub max_lifetime: Option<Duration>,
    /// Limit of connections over all workers, idle ones included; `None` is unlimited.
    pub limit: Option<Arc<ConnectionLimit>>,
}

impl PoolSettings {
    /// Returns true if a connection that has been idle since `since` should be closed.
    pub(crate) fn is_idle_too_long(&self, since: Tick, now: Tick) -> bool {
        is_over(since, self.idle_for, now)
    }

    /// Returns true if a connection made at `since` may not serve another request.
    #[inline]
    pub(crate) fn is_too_old(&self, since: Tick, now: Tick) -> bool {
        let over = |lifetime| is_over(since, lifetime, now);
        self.max_lifetime.is_some_and(over)
    }
}

fn is_over(since: Tick, limit: Duration, now: Tick) -> bool {
    let ticks = limit.as_millis() / proxy_clock::TICK.as_millis();
    u128::from(now.0.saturating_sub(since.0)) > ticks
}
