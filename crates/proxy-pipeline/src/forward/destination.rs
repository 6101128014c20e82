//! The destination of a request: route, upstream and chosen target.

use proxy_plan::{Choice, RoutePlan, UpstreamPlan};
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination<'p> {
    pub(crate) route: &'p RoutePlan,
    pub(crate) upstream: &'p UpstreamPlan,
    pub(crate) choice: Choice,
    pub(crate) total: Option<Duration>,
}

/// `wait`, limited to the time of one attempt under the route's retry policy.
pub(crate) fn within_try(route: &RoutePlan, wait: Duration) -> Duration {
    let longest = route.retry.per_try_timeout;
    longest.map_or(wait, |longest| wait.min(longest))
}
