//! Connectors to the targets of an upstream.

use crate::pools::ConnectionLimits;
use crate::tls::LoadedUpstreamTls;
use proxy_pipeline::UpstreamConnectors;
use proxy_plan::{TargetPlan, UpstreamPlan};
use proxy_pool::ConnectSettings;
use std::sync::Arc;
use std::time::Duration;

/// Connectors to the targets of `upstream`; the connect timeout is the route's and is set for each
/// request.
pub(crate) fn of(
    upstream: &UpstreamPlan,
    tls: Option<&LoadedUpstreamTls>,
    limits: &ConnectionLimits,
) -> UpstreamConnectors {
    let link = |target: &TargetPlan, tls| ConnectSettings {
        timeout: Duration::ZERO,
        tls,
        limit: limits.get(target.id),
    };
    let targets = upstream.targets.iter();
    let targets = match tls {
        // A target without a name would get no connector, rather than one in plaintext.
        Some(LoadedUpstreamTls { tls, names }) => targets
            .zip(names.iter().cloned())
            .map(|(target, name)| link(target, Some((Arc::clone(tls), name))))
            .collect(),
        None => targets.map(|target| link(target, None)).collect(),
    };
    UpstreamConnectors { targets }
}
