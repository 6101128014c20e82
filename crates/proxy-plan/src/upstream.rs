//! What a plan knows of an upstream.

use crate::targets::{TargetIdentity, TargetTransaction};
use proxy_errors::{Detail, Problem, Reason};
use proxy_model::{Limits, LoadBalancing, TargetAddress, Upstream, UpstreamProtocol};
use proxy_upstream::{LoadBalancer, TargetId, TargetState};
use std::sync::Arc;
use std::time::Duration;

/// Most targets whose troubles one record tells.
const MOST_TOLD: usize = 8;

/// The targets behind a name, compiled.
#[derive(Debug)]
pub struct UpstreamPlan {
    /// Position among the plan's upstreams.
    pub index: usize,
    /// The upstream's name.
    pub name: Arc<str>,
    /// The targets, in the order of the configuration.
    pub targets: Vec<TargetPlan>,
    /// How the next one is chosen.
    pub balancing: LoadBalancer,
    /// Idle connections kept to one target, over all workers.
    pub max_idle: u32,
    /// Connections to one target at once, over all workers.
    pub max_connections: Option<u32>,
    /// How long an idle connection is kept.
    pub idle_for: Duration,
    /// Whether the targets speak HTTP/2.
    pub http2: bool,
    /// Whether they are spoken to over TLS.
    pub tls: bool,
}

/// One target, compiled.
#[derive(Debug)]
pub struct TargetPlan {
    /// The id that stays with the target over plans.
    pub id: TargetId,
    /// What makes it the same target in other plans.
    pub identity: Arc<TargetIdentity>,
    /// Where it is, as it was written.
    pub address: TargetAddress,
    /// The same as text.
    pub label: Arc<str>,
    /// What all workers know of it.
    pub state: Arc<TargetState>,
}

impl UpstreamPlan {
    /// Why none of the targets may be called: for want of addresses, if that is all.
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
