//! How the targets of an upstream are reached.

use proxy_pipeline::UpstreamLinks;
use proxy_plan::UpstreamPlan;
use proxy_pool::ConnectSettings;
use std::time::Duration;

/// Ways to the targets of `upstream`; the time to connect is the route's and set for each request.
pub(crate) fn of(upstream: &UpstreamPlan) -> UpstreamLinks {
    let plain = ConnectSettings {
        timeout: Duration::ZERO,
        tls: None,
    };
    UpstreamLinks {
        targets: vec![plain; upstream.targets.len()],
    }
}
