//! Active health checks of the targets of the active plan.

use crate::runtime::system_clock::now;
use crate::runtime::task_scope::TaskScope;
use crate::tls::{LoadedTls, LoadedUpstreamTls};
use proxy_health::{CheckTiming, HealthCause, Thresholds};
use proxy_model::{HealthCheck, HealthCheckKind, StatusRange, Upstream};
use proxy_plan::{Plan, TargetPlan, UpstreamPlan};
use proxy_probe::{Check, Peers, Probe, ProbeSettings};
use proxy_upstream::TargetId;
use std::sync::Arc;
use tokio::sync::Notify;

/// One task for each probed target.
#[derive(Debug)]
pub(crate) struct Prober {
    tasks: TaskScope<TargetId, Probe>,
    changes: Arc<Notify>,
}

impl Prober {
    /// A prober without targets; notifies `changes` when a target's health changes.
    pub(crate) fn new(changes: Arc<Notify>) -> Self {
        Self {
            tasks: TaskScope::new(now),
            changes,
        }
    }

    /// Probes exactly the targets of `plan` from now on. A target that was probed before keeps its
    /// results; one that is no longer probed counts as healthy.
    pub(crate) fn apply(&mut self, plan: &Plan, loaded: &LoadedTls) {
        let mut tasks = self.tasks.begin();
        for probe in for_plan(plan, loaded) {
            let Probe {
                upstream, settings, ..
            } = &probe;
            let name = format!("health check of {} in {upstream}", settings.authority);
            let changes = Arc::clone(&self.changes);
            tasks.add(probe.target, name, probe, |context| {
                proxy_probe::run(context.settings, changes, context.now)
            });
        }
        for ended in self.tasks.commit(tasks) {
            ended.state.clear(HealthCause::ActiveCheck);
        }
    }
}

/// The probes of a plan, one for each target of an upstream with a health check.
fn for_plan(plan: &Plan, loaded: &LoadedTls) -> Vec<Probe> {
    let model = plan.model();
    let upstreams = plan.upstreams().iter().zip(&model.upstreams);
    let upstreams = upstreams.zip(&loaded.upstreams);
    let probes = upstreams.filter_map(|((upstream, model), tls)| {
        model.health_check.as_ref()?;
        Some(upstream_probes(upstream, model, tls.as_ref()))
    });
    probes.flatten().collect()
}

fn upstream_probes(
    upstream: &UpstreamPlan,
    model: &Upstream,
    tls: Option<&LoadedUpstreamTls>,
) -> Vec<Probe> {
    // A name without an address cannot be probed.
    let states = upstream.targets.iter().map(|one| Arc::clone(&one.state));
    let peers = Arc::new(Peers::new(states.collect()));
    let targets = upstream.targets.iter();
    let targets = targets.filter(|target| target.state.address().is_some());
    let probes = targets.map(|target| Probe {
        target: target.id,
        state: Arc::clone(&target.state),
        peers: Arc::clone(&peers),
        upstream: Arc::clone(&upstream.name),
        settings: probe_settings(model, target, upstream, tls),
    });
    probes.collect()
}

/// The probe of a target: the upstream's health check, or a connection for an upstream without one.
pub(crate) fn probe_settings(
    model: &Upstream,
    target: &TargetPlan,
    upstream: &UpstreamPlan,
    tls: Option<&LoadedUpstreamTls>,
) -> ProbeSettings {
    let connecting = || {
        let timing = CheckTiming {
            interval: *model.timeouts.connect,
            timeout: *model.timeouts.connect,
            thresholds: Thresholds {
                healthy: 1,
                unhealthy: 1,
            },
        };
        (Check::Tcp, timing)
    };
    let own = model.health_check.as_ref().map(check_and_timing);
    let (check, timing) = own.unwrap_or_else(connecting);
    let tls = tls.and_then(|LoadedUpstreamTls { tls, names }| {
        Some((Arc::clone(tls), names.get(target.position)?.clone()))
    });
    ProbeSettings {
        check,
        timing,
        authority: Arc::clone(&target.authority),
        tls,
        http2: upstream.http2,
        proxy_header: upstream.local_header(),
    }
}

fn check_and_timing(check: &HealthCheck) -> (Check, CheckTiming) {
    let HealthCheck {
        place: _,
        kind,
        profile: _,
        interval,
        timeout,
        healthy_threshold,
        unhealthy_threshold,
    } = check;
    let timing = CheckTiming {
        interval: **interval,
        timeout: **timeout,
        thresholds: Thresholds {
            healthy: **healthy_threshold,
            unhealthy: **unhealthy_threshold,
        },
    };
    (probe_check(kind), timing)
}

fn probe_check(kind: &HealthCheckKind) -> Check {
    match kind {
        HealthCheckKind::Tcp => Check::Tcp,
        HealthCheckKind::Http {
            path,
            expected_status,
            host,
        } => {
            let StatusRange { first, last } = **expected_status;
            Check::Http {
                path: path.value.clone(),
                expected: first..=last,
                host: host.as_ref().map(|host| host.value.clone()),
            }
        }
        HealthCheckKind::Grpc { service } => Check::Grpc {
            service: service
                .as_ref()
                .map(|service| service.value.clone())
                .unwrap_or_default(),
        },
        HealthCheckKind::Inference {
            endpoint,
            expected_models,
        } => Check::Inference {
            endpoint: endpoint.value.clone(),
            expected_models: expected_models
                .iter()
                .map(|model| model.value.clone())
                .collect(),
        },
    }
}
