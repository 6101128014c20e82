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

/// Connectors to the targets of `upstream`. A target without a name for TLS would get no connector,
/// rather than one in plaintext.
fn for_upstream(
    upstream: &UpstreamPlan,
    tls: Option<&LoadedUpstreamTls>,
    limits: &ConnectionLimits,
) -> UpstreamConnectors {
    let targets = upstream.targets.iter();
    let targets = targets.map_while(|target| for_target(upstream, target, tls, limits));
    UpstreamConnectors {
        targets: targets.collect(),
    }
}

/// The connector to one target of an upstream, as for connections of the proxy itself: the connect
/// timeout is the route's, the PROXY protocol header the client's, and requests set both. `None` if
/// there is no name to verify.
pub(crate) fn for_target(
    upstream: &UpstreamPlan,
    target: &TargetPlan,
    tls: Option<&LoadedUpstreamTls>,
    limits: &ConnectionLimits,
) -> Option<ConnectSettings> {
    let tls = match tls {
        Some(LoadedUpstreamTls { tls, names }) => {
            Some((Arc::clone(tls), names.get(target.position)?.clone()))
        }
        None => None,
    };
    Some(ConnectSettings {
        timeout: Duration::ZERO,
        tls,
        limit: limits.get(target.id),
        proxy_header: upstream.local_header(),
    })
}
