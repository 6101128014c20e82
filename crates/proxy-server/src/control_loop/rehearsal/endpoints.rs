//! Targets of a configuration, with the addresses and probes that its server would use.

use crate::config::delivery::PrivateKeys;
use crate::control_loop::registry::new_registry;
use crate::runtime::system_clock::now;
use crate::targets::dns::NameTable;
use crate::targets::probes::probe_settings;
use crate::tls::CertificateManager;
use proxy_health::CheckTiming;
use proxy_model::{Listener, Model, Service, effective};
use proxy_pipeline::random_key;
use proxy_plan::{Plan, TargetRegistry, live_tests};
use proxy_probe::{Check, ProbeSettings};
use proxy_upstream::StickyKey;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time for the answer to `OPTIONS *`, which names no resource.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Prefix of the paths of upstream settings.
const UPSTREAMS: &str = "upstreams.upstream[";
/// Prefix of the paths of DNS settings.
const DNS: &str = "system.dns.";

/// The targets of one upstream that receive requests.
pub(super) struct UpstreamEndpoints {
    pub(super) name: String,
    pub(super) has_check: bool,
    /// Routes send HTTP/1.1 requests to the upstream, and neither a health check nor a live test
    /// covers it.
    pub(super) is_untested: bool,
    pub(super) targets: Vec<Endpoint>,
}

/// A target with an address, or one of the addresses of its DNS name.
pub(super) struct Endpoint {
    /// The address as text; the DNS name while unresolved.
    pub(super) label: Arc<str>,
    pub(super) address: Option<SocketAddr>,
    /// A name server has answered that the name has no address.
    pub(super) is_missing: bool,
    /// The upstream's health check; without one, the probe only connects.
    pub(super) probe: ProbeSettings,
}

/// Returns true if the upstreams or the DNS settings of two models differ.
pub(super) fn upstreams_differ(before: &Model, after: &Model) -> bool {
    settings(before, UPSTREAMS) != settings(after, UPSTREAMS)
        || dns_settings(before) != dns_settings(after)
}

/// The DNS settings of a model, by path.
pub(super) fn dns_settings(model: &Model) -> Vec<(String, String)> {
    settings(model, DNS)
}

/// Settings with paths that begin with `begin`, and their values.
fn settings(model: &Model, begin: &str) -> Vec<(String, String)> {
    let all = effective(model).into_iter();
    let own = all.filter(|one| one.path.starts_with(begin));
    own.map(|one| (one.path, one.value.to_string())).collect()
}

/// The endpoints of all upstreams of `model`, with names looked up and certificates read; `None` if
/// that fails: applying the configuration then reports the error.
pub(super) async fn endpoints(
    model: &Arc<Model>,
    keys: &PrivateKeys,
) -> Option<Vec<UpstreamEndpoints>> {
    let loading = CertificateManager::new().begin_load();
    let loaded = loading.run(model, keys, now()).await.ok()?;
    let names = NameTable::new(model, new_registry());
    let found = names.first_look_ups().run(model).await;
    let missing: BTreeSet<String> = found
        .missing()
        .into_iter()
        .map(|name| name.to_string())
        .collect();
    let names = names.prepare(model, found, now());
    let registry = TargetRegistry::new(StickyKey(random_key().ok()?));
    let mut targets = registry.begin().with_resolution(names.resolution.clone());
    let plan = Plan::compile(1, Arc::clone(model), &mut targets);
    let tested: BTreeSet<String> = live_tests(&plan)
        .into_iter()
        .filter_map(|test| test.upstream)
        .collect();
    let requested = requested_upstreams(model);
    let upstreams = plan.upstreams().iter().zip(&model.upstreams);
    let upstreams = upstreams.zip(&loaded.upstreams);
    let endpoints = upstreams.map(|((upstream, model), tls)| {
        let used = upstream.targets.iter().filter(|target| target.weight > 0);
        let targets = used.map(|target| Endpoint {
            label: Arc::clone(&target.label),
            address: target.state.address(),
            is_missing: target
                .name
                .as_deref()
                .is_some_and(|name| missing.contains(name)),
            probe: probe_settings(model, target, upstream, tls.as_ref()),
        });
        let has_check = model.health_check.is_some();
        let is_tested = has_check || tested.contains(&model.name);
        UpstreamEndpoints {
            name: model.name.clone(),
            has_check,
            is_untested: requested.contains(&*model.name) && !is_tested && !upstream.http2,
            targets: targets.collect(),
        }
    });
    Some(endpoints.collect())
}

/// Names of the upstreams that routes send requests to. Upstreams of relayed connections are left
/// out: such a server may take an HTTP request for an attack.
fn requested_upstreams(model: &Model) -> BTreeSet<&str> {
    let is_relayed = |listener: &&Listener| listener.protocol.is_relayed();
    let relayed: BTreeSet<&str> = model
        .listeners
        .iter()
        .filter(is_relayed)
        .map(|listener| listener.name.as_str())
        .collect();
    let (mut requested, mut others) = (BTreeSet::new(), BTreeSet::new());
    for route in &model.routes {
        let Service::Upstream(index) = &route.service else {
            continue;
        };
        let mut listeners = route.listeners.iter();
        let is_relayed = listeners.any(|name| relayed.contains(name.value.as_str()));
        let names = if is_relayed {
            &mut others
        } else {
            &mut requested
        };
        names.extend(model.upstream(index.value).map(|one| one.name.as_str()));
    }
    &requested - &others
}

impl Endpoint {
    /// The same target with a probe that accepts any HTTP response.
    pub(super) fn answering(&self) -> Self {
        Self {
            label: Arc::clone(&self.label),
            probe: ProbeSettings {
                check: Check::Answer,
                timing: CheckTiming {
                    timeout: RESPONSE_TIMEOUT,
                    ..self.probe.timing
                },
                ..self.probe.clone()
            },
            ..*self
        }
    }

    /// Returns true if both have the same name or address, as written.
    pub(super) fn is_same_target(&self, other: &Self) -> bool {
        self.probe.authority == other.probe.authority
    }

    /// Returns true if `other` is probed by the same rules. With TLS it never is: certificates and
    /// authorities are read again for each configuration.
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
