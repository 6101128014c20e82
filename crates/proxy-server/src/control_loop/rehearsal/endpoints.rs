//! Targets of a configuration with the addresses and probes that its server would have.

use crate::config::delivery::PrivateKeys;
use crate::control_loop::registry::new_registry;
use crate::runtime::system_clock::now;
use crate::targets::dns::NameTable;
use crate::targets::probes::probe_settings;
use crate::tls::CertificateManager;
use proxy_model::{Model, effective};
use proxy_pipeline::random_key;
use proxy_plan::{Plan, TargetRegistry};
use proxy_probe::ProbeSettings;
use proxy_upstream::StickyKey;
use std::net::SocketAddr;
use std::sync::Arc;

/// Begin of the paths of settings of upstreams.
const UPSTREAMS: &str = "upstreams.upstream[";

/// The targets of one upstream that receive requests.
pub(super) struct UpstreamEndpoints {
    pub(super) name: String,
    pub(super) has_check: bool,
    pub(super) targets: Vec<Endpoint>,
}

/// A target, or one address of a name.
pub(super) struct Endpoint {
    /// The address as text; the DNS name while unresolved.
    pub(super) label: Arc<str>,
    pub(super) address: Option<SocketAddr>,
    /// The upstream's health check; a connection for an upstream without one.
    pub(super) probe: ProbeSettings,
}

/// Returns true if two models have other upstreams, or other settings of one.
pub(super) fn upstreams_differ(before: &Model, after: &Model) -> bool {
    let settings = |model: &Model| -> Vec<(String, String)> {
        let all = effective(model).into_iter();
        let own = all.filter(|one| one.path.starts_with(UPSTREAMS));
        own.map(|one| (one.path, one.value.to_string())).collect()
    };
    settings(before) != settings(after)
}

/// The endpoints of all upstreams of `model`, with names looked up and certificates read; `None` if that fails, which
/// applying the configuration reports.
pub(super) async fn endpoints(
    model: &Arc<Model>,
    keys: &PrivateKeys,
) -> Option<Vec<UpstreamEndpoints>> {
    let loading = CertificateManager::new().begin_load();
    let loaded = loading.run(model, keys, now()).await.ok()?;
    let names = NameTable::new(model, new_registry());
    let found = names.first_look_ups().run(model).await;
    let names = names.prepare(model, found, now());
    let registry = TargetRegistry::new(StickyKey(random_key().ok()?));
    let mut targets = registry.begin().with_resolution(names.resolution.clone());
    let plan = Plan::compile(1, Arc::clone(model), &mut targets);
    let upstreams = plan.upstreams().iter().zip(&model.upstreams);
    let upstreams = upstreams.zip(&loaded.upstreams);
    let endpoints = upstreams.map(|((upstream, model), tls)| {
        let used = upstream.targets.iter().filter(|target| target.weight > 0);
        let targets = used.map(|target| Endpoint {
            label: Arc::clone(&target.label),
            address: target.state.address(),
            probe: probe_settings(model, target, upstream, tls.as_ref()),
        });
        UpstreamEndpoints {
            name: model.name.clone(),
            has_check: model.health_check.is_some(),
            targets: targets.collect(),
        }
    });
    Some(endpoints.collect())
}

impl Endpoint {
    /// Returns true if both are one target, by its name or address as written.
    pub(super) fn is_same_target(&self, other: &Self) -> bool {
        self.probe.authority == other.probe.authority
    }

    /// Returns true if `other` is probed by the same rules. With TLS it never is: certificates and authorities are read
    /// anew.
    pub(super) fn is_probed_like(&self, other: &Self) -> bool {
        let ProbeSettings {
            check,
            timing,
            authority: _, // The target's name.
            tls,
            http2,
            proxy_header,
        } = &self.probe;
        tls.is_none()
            && other.probe.tls.is_none()
            && *check == other.probe.check
            && timing.timeout == other.probe.timing.timeout
            && *http2 == other.probe.http2
            && *proxy_header == other.probe.proxy_header
    }
}
