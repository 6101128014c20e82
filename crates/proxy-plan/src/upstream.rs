//! The compiled form of an upstream.

use crate::balancing::BalancingPlan;
use crate::expansion::expand;
use crate::targets::{TargetIdentity, TargetTransaction};
use proxy_errors::{Detail, Problem, Reason};
use proxy_framing::ProxyVersion;
use proxy_health::{HealthCause, OutlierSettings};
use proxy_limits::RetryBudget;
use proxy_model::{Limits, OutlierDetection, Upstream, UpstreamProtocol};
use proxy_upstream::{CandidateTarget, StickyToken, TargetId, TargetState, target_hash};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of targets with a reason in one record.
const MAX_LISTED_TARGETS: usize = 8;

/// A compiled upstream.
#[derive(Debug)]
pub struct UpstreamPlan {
    /// Index among the plan's upstreams.
    pub index: usize,
    /// The upstream's name.
    pub name: Arc<str>,
    /// The targets, in the order of the configuration, with one target per address of a name.
    pub targets: Vec<TargetPlan>,
    /// Policy, compiled for these targets.
    pub balancing: BalancingPlan,
    /// Outlier detection: ejection by failed requests; `None` if disabled.
    pub outlier_detection: Option<OutlierSettings>,
    /// Budget of the retries sent to it.
    pub retry_budget: Arc<RetryBudget>,
    /// Maximum number of idle connections to one target, over all workers.
    pub max_idle: u32,
    /// Maximum number of connections to one target, over all workers; `None` is unlimited.
    pub max_connections: Option<u32>,
    /// Maximum idle time of a connection.
    pub idle_for: Duration,
    /// Maximum age of a connection; `None` is unlimited.
    pub max_lifetime: Option<Duration>,
    /// The targets' protocol is HTTP/2.
    pub http2: bool,
    /// True if connections to the targets use TLS.
    pub tls: bool,
    /// Version of the PROXY protocol header at the beginning of connections; `None` sends none.
    pub send_proxy: Option<ProxyVersion>,
}

/// A compiled target.
#[derive(Debug)]
pub struct TargetPlan {
    /// The id, which the target keeps across plans.
    pub id: TargetId,
    /// The identity that other plans find the same target by; shared by all addresses of a name.
    pub identity: Arc<TargetIdentity>,
    /// Index of the configured target; shared by all addresses of a DNS name.
    pub position: usize,
    /// The name as written, if the address is resolved from one.
    pub name: Option<Arc<str>>,
    /// The address as text; the DNS name while unresolved.
    pub label: Arc<str>,
    /// The `Host` of requests without one: the name or address as written.
    pub authority: Arc<str>,
    /// The configured share, or the weight in an SRV record; 0 gets no new requests.
    pub weight: u32,
    /// True if it takes requests only while no other target can.
    pub is_backup: bool,
    /// The hash of the target's address.
    pub hash: u64,
    /// State shared by all workers.
    pub state: Arc<TargetState>,
}

impl TargetPlan {
    /// The target as a candidate of load balancing.
    #[must_use]
    pub fn candidate(&self) -> CandidateTarget<'_> {
        CandidateTarget {
            state: &self.state,
            weight: self.weight,
            is_backup: self.is_backup,
        }
    }

    /// Returns true if the target is healthy and has a weight.
    #[must_use]
    pub fn takes_requests(&self) -> bool {
        let weight = self.state.overridden_weight().unwrap_or(self.weight);
        0 < weight && self.state.causes().takes_requests()
    }

    /// Returns true if the target is healthy but gets no new requests, because it is draining or
    /// its weight is 0.
    pub(crate) fn is_kept_idle(&self) -> bool {
        let causes = self.state.causes();
        let weight = self.state.overridden_weight().unwrap_or(self.weight);
        causes.is_healthy() && (causes.contains(HealthCause::Draining) || weight == 0)
    }
}

impl UpstreamPlan {
    /// The targets that get new requests, with their positions.
    pub fn ready_targets(&self) -> impl Iterator<Item = (usize, &TargetPlan)> {
        let targets = self.targets.iter().enumerate();
        targets.filter(|(_, target)| target.state.causes().is_healthy() && !target.is_kept_idle())
    }

    /// The PROXY protocol header of connections for the proxy itself, such as health checks; `None`
    /// if targets get none.
    #[must_use]
    pub fn local_header(&self) -> Option<Arc<[u8]>> {
        Some(self.send_proxy?.local_header().into())
    }

    /// The problem if no target is usable. `dns_failed` or `no_targets` only if that is the reason
    /// of all targets.
    #[cold]
    pub(crate) fn unreachable(&self) -> Problem {
        let has_no_address = |target: &TargetPlan| target.state.causes().contains(HealthCause::Dns);
        let reason = if self.targets.iter().all(has_no_address) {
            Reason::DnsFailed
        } else if self.targets.iter().all(TargetPlan::is_kept_idle) {
            Reason::NoTargets
        } else {
            Reason::AllTargetsUnhealthy
        };
        let problems = self.targets.iter().filter_map(|target| {
            let problem = match target.state.unhealthy_reason() {
                Some(unhealthy_reason) => unhealthy_reason.last_error,
                None if target.is_kept_idle() => "draining, or of weight 0".to_owned(),
                None => return None,
            };
            Some(format!("{}: {problem}", target.label))
        });
        let problems: Vec<_> = problems.take(MAX_LISTED_TARGETS).collect();
        Problem::new(
            reason,
            Detail::named(self.name.as_ref(), problems.join("; ")),
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
        let expanded = expand(upstream, transaction.resolution());
        let targets = expanded.iter().map(|target| {
            let (identity, known) = transaction.enter(upstream, target);
            let label = target.label();
            TargetPlan {
                id: known.id,
                identity,
                position: target.position,
                name: target.name().map(Into::into),
                weight: target.weight,
                is_backup: *target.target.backup,
                hash: target_hash(&label),
                label: label.into(),
                authority: target.authority().into(),
                state: Arc::clone(&known.state),
            }
        });
        let targets: Vec<_> = targets.collect();
        let labels = targets.iter().map(|target| &*target.label);
        let balancing = BalancingPlan::compile(upstream, labels, transaction.sticky_key());
        let pool = &upstream.connection_pool;
        Self {
            index,
            name: upstream.name.as_str().into(),
            targets,
            balancing,
            outlier_detection: upstream.outlier_detection.as_ref().map(outlier_settings),
            retry_budget: transaction.retry_budget(&upstream.name),
            max_idle: pool
                .max_idle
                .map_or(*limits.max_idle_connections_per_upstream, |max| *max),
            max_connections: pool.max_connections.map(|max| *max),
            idle_for: *pool.idle_timeout,
            max_lifetime: pool.max_lifetime.map(|time| *time),
            http2: *upstream.protocol == UpstreamProtocol::H2,
            tls: upstream.tls.is_some(),
            send_proxy: upstream.send_proxy.map(|version| version.value),
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
