//! The compiled form of an upstream.

use crate::targets::{TargetIdentity, TargetTransaction};
use proxy_errors::{Detail, Problem, Reason};
use proxy_model::{Limits, LoadBalancing, TargetAddress, Upstream, UpstreamProtocol};
use proxy_upstream::{LoadBalancer, TargetId, TargetState};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of targets with a reason in one record.
const MOST_TOLD: usize = 8;

/// A compiled upstream.
#[derive(Debug)]
pub struct UpstreamPlan {
    /// Index among the plan's upstreams.
    pub index: usize,
    /// The upstream's name.
    pub name: Arc<str>,
    /// The targets, in the order of the configuration.
    pub targets: Vec<TargetPlan>,
    /// The load balancer.
    pub balancing: LoadBalancer,
    /// Maximum number of idle connections to one target, over all workers.
    pub max_idle: u32,
    /// Maximum number of connections to one target, over all workers; `None` is unlimited.
    pub max_connections: Option<u32>,
    /// Maximum idle time of a connection.
    pub idle_for: Duration,
    /// The targets' protocol is HTTP/2.
    pub http2: bool,
    /// Connections to the targets use TLS.
    pub tls: bool,
}

/// A compiled target.
#[derive(Debug)]
pub struct TargetPlan {
    /// The id, which the target keeps across plans.
    pub id: TargetId,
    /// The identity by which other plans have the same target.
    pub identity: Arc<TargetIdentity>,
    /// The address as written.
    pub address: TargetAddress,
    /// The address as text.
    pub label: Arc<str>,
    /// State shared by all workers.
    pub state: Arc<TargetState>,
}

impl UpstreamPlan {
    /// The problem if no target is usable: a lack of addresses, if that is the only reason.
    #[cold]
    pub(crate) fn unreachable(&self) -> Problem {
        let has_no_address = |target: &TargetPlan| target.state.addresses().is_empty();
        let reason = if self.targets.iter().all(has_no_address) {
            Reason::DnsFailed
        } else {
            Reason::AllTargetsUnhealthy
        };
        let troubles = self.targets.iter().filter_map(|target| {
            let unhealthy_reason = target.state.unhealthy_reason()?;
            Some(format!("{}: {}", target.label, unhealthy_reason.last_error))
        });
        let troubles: Vec<_> = troubles.take(MOST_TOLD).collect();
        Problem::new(
            reason,
            Detail::named(self.name.as_ref(), troubles.join("; ")),
        )
    }

    pub(crate) fn compile(
        index: usize,
        upstream: &Upstream,
        limits: &Limits,
        transaction: &mut TargetTransaction,
    ) -> Self {
        let targets = upstream.targets.iter().map(|target| {
            let known = transaction.enter(upstream, target);
            TargetPlan {
                id: known.id,
                identity: Arc::clone(&known.identity),
                address: target.address.value.clone(),
                label: target.address.to_string().into(),
                state: Arc::clone(&known.state),
            }
        });
        let pool = &upstream.connection_pool;
        Self {
            index,
            name: upstream.name.as_str().into(),
            targets: targets.collect(),
            balancing: balancing(*upstream.load_balancing),
            max_idle: pool
                .max_idle
                .map_or(*limits.max_idle_connections_per_upstream, |max| *max),
            max_connections: pool.max_connections.map(|max| *max),
            idle_for: *pool.idle_timeout,
            http2: *upstream.protocol == UpstreamProtocol::H2,
            tls: upstream.tls.is_some(),
        }
    }
}

fn balancing(wanted: LoadBalancing) -> LoadBalancer {
    match wanted {
        LoadBalancing::RoundRobin => LoadBalancer::RoundRobin,
    }
}
