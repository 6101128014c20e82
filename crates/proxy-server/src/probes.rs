//! What targets are asked, as the plan in force has it.

use crate::tls::{LoadedTls, LoadedUpstreamTls};
use proxy_health::{CheckTiming, Thresholds};
use proxy_model::{HealthCheck, HealthCheckKind, StatusRange};
use proxy_plan::{Plan, TargetPlan, UpstreamPlan};
use proxy_probe::{Check, Probe, ProbeSettings};
use std::sync::Arc;

/// One probe for each target of an upstream with a health check.
pub(crate) fn for_plan(plan: &Plan, loaded: &LoadedTls) -> Vec<Probe> {
    let model = plan.model();
    let upstreams = plan.upstreams().iter().zip(&model.upstreams);
    let upstreams = upstreams.zip(&loaded.upstreams);
    let probes = upstreams.filter_map(|((upstream, model), tls)| {
        let check = model.health_check.as_ref()?;
        Some(of_upstream(upstream, check, tls.as_ref()))
    });
    probes.flatten().collect()
}

fn of_upstream(
    upstream: &UpstreamPlan,
    check: &HealthCheck,
    tls: Option<&LoadedUpstreamTls>,
) -> Vec<Probe> {
    // A name without an address has nothing to ask.
    let targets = upstream.targets.iter();
    let targets = targets.filter(|target| target.state.address().is_some());
    let probes = targets.map(|target| Probe {
        target: target.id,
        state: Arc::clone(&target.state),
        upstream: Arc::clone(&upstream.name),
        settings: settings(check, target, upstream.http2, tls),
    });
    probes.collect()
}

fn settings(
    check: &HealthCheck,
    target: &TargetPlan,
    http2: bool,
    tls: Option<&LoadedUpstreamTls>,
) -> ProbeSettings {
    let HealthCheck {
        place: _,
        kind,
        profile: _,
        interval,
        timeout,
        healthy_threshold,
        unhealthy_threshold,
    } = check;
    let tls = tls.and_then(|LoadedUpstreamTls { tls, names }| {
        Some((Arc::clone(tls), names.get(target.position)?.clone()))
    });
    ProbeSettings {
        check: asked(kind),
        timing: CheckTiming {
            interval: **interval,
            timeout: **timeout,
            thresholds: Thresholds {
                healthy: **healthy_threshold,
                unhealthy: **unhealthy_threshold,
            },
        },
        authority: Arc::clone(&target.authority),
        tls,
        http2,
    }
}

fn asked(kind: &HealthCheckKind) -> Check {
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
