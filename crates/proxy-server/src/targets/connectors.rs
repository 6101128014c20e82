//! Connectors to the targets of an upstream.

use crate::targets::pools::ConnectionLimits;
use crate::tls::{LoadedTls, LoadedUpstreamTls};
use proxy_pipeline::UpstreamConnectors;
use proxy_plan::{Plan, TargetPlan, UpstreamPlan};
use proxy_pool::ConnectSettings;
use std::sync::Arc;
use std::time::Duration;

/// Connectors to the targets of every upstream of `plan`.
pub(crate) fn for_plan(
    plan: &Plan,
    loaded_tls: &LoadedTls,
    limits: &ConnectionLimits,
) -> Vec<UpstreamConnectors> {
    let upstreams = plan.upstreams().iter().zip(&loaded_tls.upstreams);
    upstreams
        .map(|(upstream, tls)| for_upstream(upstream, tls.as_ref(), limits))
        .collect()
}

/// Connectors to the targets of `upstream`; the connect timeout is the route's and is set for each
/// request.
fn for_upstream(
    upstream: &UpstreamPlan,
    tls: Option<&LoadedUpstreamTls>,
    limits: &ConnectionLimits,
) -> UpstreamConnectors {
    let link = |target: &TargetPlan, tls| ConnectSettings {
        timeout: Duration::ZERO,
        tls,
        limit: limits.get(target.id),
        // That of requests is their client's.
        proxy_header: upstream.local_header(),
    };
    let targets = upstream.targets.iter();
    let targets = targets.map_while(|target| match tls {
        // A target without a name would get no connector, rather than one in plaintext.
        Some(LoadedUpstreamTls { tls, names }) => {
            let name = names.get(target.position)?.clone();
            Some(link(target, Some((Arc::clone(tls), name))))
        }
        None => Some(link(target, None)),
    });
    UpstreamConnectors {
        targets: targets.collect(),
    }
}
