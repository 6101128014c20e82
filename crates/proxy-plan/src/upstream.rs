//! The compiled form of an upstream.

use crate::balancing::BalancingPlan;
use crate::targets::{TargetIdentity, TargetTransaction};
use proxy_errors::{Detail, Problem, Reason};
use proxy_health::{HealthCause, OutlierSettings};
use proxy_limits::RetryBudget;
use proxy_model::{Limits, OutlierDetection, TargetAddress, Upstream, UpstreamProtocol};
use proxy_upstream::{StickyToken, TargetId, TargetState, target_hash};
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
    pub balancing: BalancingPlan,
    /// When requests that fail eject a target, if they do.
    pub outlier_detection: Option<OutlierSettings>,
    /// The retries that it has to bear.
    pub retry_budget: Arc<RetryBudget>,
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
    /// Its configured share; 0 gets no new requests.
    pub weight: u32,
    /// The hash of its address.
    pub hash: u64,
    /// State shared by all workers.
    pub state: Arc<TargetState>,
}

impl UpstreamPlan {
    /// The problem if no target is usable: a lack of addresses, if that is the only reason.
    #[cold]
    pub(crate) fn unreachable(&self) -> Problem {
        let has_no_address = |target: &TargetPlan| target.state.causes().contains(HealthCause::Dns);
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

    /// The position of the target that a sticky cookie names.
    #[must_use]
    pub fn target_of(&self, token: StickyToken) -> Option<u16> {
        let tokens = &self.balancing.sticky.as_ref()?.tokens;
        let position = tokens.iter().position(|known| *known == token)?;
        u16::try_from(position).ok()
    }

    pub(crate) fn compile(
        index: usize,
        upstream: &Upstream,
        limits: &Limits,
        transaction: &mut TargetTransaction,
    ) -> Self {
        let targets = upstream.targets.iter().map(|target| {
            let known = transaction.enter(upstream, target);
            let label = target.address.to_string();
            TargetPlan {
                id: known.id,
                identity: Arc::clone(&known.identity),
                address: target.address.value.clone(),
                weight: *target.weight,
                hash: target_hash(&label),
                label: label.into(),
                state: Arc::clone(&known.state),
            }
        });
        let pool = &upstream.connection_pool;
        Self {
            index,
            name: upstream.name.as_str().into(),
            targets: targets.collect(),
            balancing: BalancingPlan::compile(upstream, transaction.sticky_key()),
            outlier_detection: upstream.outlier_detection.as_ref().map(outlier_settings),
            retry_budget: transaction.retry_budget(&upstream.name),
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

fn outlier_settings(detection: &OutlierDetection) -> OutlierSettings {
    let OutlierDetection {
        place: _,
        consecutive_failures,
        failure_percent,
        min_requests,
        interval,
        base_ejection,
        max_ejection,
        max_ejected_percent,
    } = detection;
    OutlierSettings {
        consecutive_failures: Some(**consecutive_failures).filter(|failures| 0 < *failures),
        failure_percent: failure_percent.map(|percent| *percent),
        min_requests: **min_requests,
        interval: **interval,
        base_ejection: **base_ejection,
        max_ejection: **max_ejection,
        max_ejected_percent: **max_ejected_percent,
    }
}
