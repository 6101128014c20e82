//! The rehearsal of a bundle before it serves clients: its live tests, sent to a second server, and
//! probes of targets that the bundle adds or probes by other rules.
//!
//! The second server has its own worker, certificates, pools and limits, and no listening sockets:
//! test connections are handed to it directly, so that no other program of the machine reaches a
//! bundle that may be refused. It connects to the same agents and targets. In an upstream with new
//! targets it uses only those, because an answer of a target already in service proves nothing
//! about the bundle. A failed test is also sent to a server of the active configuration.

mod endpoints;
mod failing_targets;

use super::registry::{new_lifecycle, new_registry};
use crate::config::delivery::PrivateKeys;
use crate::config::live_tests::{LiveFailure, LiveTests};
use crate::error::start_error::StartError;
use crate::reload::server::Server;
use crate::reload::server::start::{Purpose, ServerParts};
use crate::runtime::disk_thread::DiskThread;
use crate::sockets::handover::HealthSnapshot;
use crate::sockets::inherited_sockets::InheritedSockets;
use crate::sockets::listener_set::ListenerSet;
use crate::worker::heartbeat;
use endpoints::{dns_settings, endpoints, upstreams_differ};
use failing_targets::{failing_targets, healthy_new_targets};
use proxy_model::{ConfigTest, LoadBalancing, Model, Target, TestRequest};
use proxy_pipeline::ChallengeTokens;
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::mpsc::unbounded_channel;

/// A configuration, with its private keys that are held only in memory.
#[derive(Clone, Debug)]
pub(super) struct KeyedModel {
    pub(super) model: Arc<Model>,
    pub(super) keys: PrivateKeys,
}

/// Sends the live tests of `after`, if there are any, and probes targets that are new or have
/// other probe settings. Returns the test failures that `before` has as well.
///
/// # Errors
/// [`StartError::Rehearsal`] if another live test fails, or if the bundle breaks an upstream. A
/// second server that cannot start is not a failure: a lack of sockets or threads is not the
/// bundle's fault.
pub(super) async fn rehearse(
    disk: &DiskThread,
    before: &KeyedModel,
    after: &KeyedModel,
) -> Result<Vec<LiveFailure>, StartError> {
    let mut failures = Vec::new();
    let mut known = Vec::new();
    let mut sides = None;
    if upstreams_differ(&before.model, &after.model)
        && let Some(old) = endpoints(&before.model, &before.keys).await
        && let Some(new) = endpoints(&after.model, &after.keys).await
    {
        sides = Some((old, new));
    }
    if after.model.tests.iter().any(|test| test.live.is_some()) {
        let healthy = match &sides {
            Some((old, new)) => healthy_new_targets(old, new).await,
            None => BTreeSet::new(),
        };
        let new = NewTargets {
            before: &before.model,
            after: &after.model,
            healthy,
        };
        let failed = failed_tests(disk, &new, &after.keys).await;
        known = known_failures(disk, &new, &before.keys, &failed).await;
        let is_known = |one: &LiveFailure| known.iter().any(|known| known.is_like(one));
        let caused = failed.iter().filter(|one| !is_known(one));
        failures.extend(caused.map(LiveFailure::message));
    }
    if let Some((old, new)) = &sides {
        let has_other_dns = dns_settings(&before.model) != dns_settings(&after.model);
        failures.extend(failing_targets(old, new, has_other_dns).await);
    }
    if failures.is_empty() {
        return Ok(known);
    }
    Err(StartError::Rehearsal(failures))
}

/// Failed live tests of the new configuration, with each upstream reduced to its new targets.
async fn failed_tests(
    disk: &DiskThread,
    new: &NewTargets<'_>,
    keys: &PrivateKeys,
) -> Vec<LiveFailure> {
    let times = |upstream: &str| new.in_upstream(upstream).len();
    // Boxed: the start of a server is large.
    Box::pin(sent(disk, new.rehearsal_model(), keys, times)).await
}

/// Tests in `failed` that fail under the active configuration, too. Left out are tests that only
/// the new configuration has, and tests of upstreams with new targets: those fail at a new target.
async fn known_failures(
    disk: &DiskThread,
    new: &NewTargets<'_>,
    keys: &PrivateKeys,
    failed: &[LiveFailure],
) -> Vec<LiveFailure> {
    let NewTargets { before, after, .. } = new;
    let has_new_targets = |failure: &LiveFailure| {
        let upstream = failure.upstream();
        upstream.is_some_and(|name| !new.in_upstream(name).is_empty())
    };
    let failed = failed.iter().filter(|one| !has_new_targets(one));
    let failed: Vec<&str> = failed.map(LiveFailure::name).collect();
    let mut model = Model::clone(before);
    model.system.worker_threads.value = 1;
    model.tests.retain(|test| {
        let mut tests = after.tests.iter();
        failed.contains(&test.name.as_str()) && tests.any(|one| is_same_test(one, test))
    });
    if model.tests.is_empty() {
        return Vec::new();
    }
    Box::pin(sent(disk, model, keys, |_| 1)).await
}

/// Sends the live tests of `model` to a server started for them, each as often as `times` requires
/// for its upstream, and returns the failed tests.
async fn sent(
    disk: &DiskThread,
    model: Model,
    keys: &PrivateKeys,
    times: impl Fn(&str) -> usize,
) -> Vec<LiveFailure> {
    let registry = new_registry();
    let lifecycle = new_lifecycle("", "", &registry);
    let started = Server::start(
        ServerParts {
            model: Arc::new(model),
            keys,
            purpose: Purpose::Rehearsal,
            registry,
            lifecycle,
            disk: disk.clone(),
            inherited: InheritedSockets::default(),
            listeners: ListenerSet::without_sockets(),
            snapshot: HealthSnapshot::default(),
            challenges: ChallengeTokens::default(),
        },
        async || {},
    );
    let mut server = match started.await {
        Ok(server) => server,
        Err(error) => {
            tracing::warn!(%error, "live tests are not sent");
            return Vec::new();
        }
    };
    let (handover, mut handed) = unbounded_channel();
    let tests = LiveTests::new(server.plan(), server.bound()).with_handover(&handover);
    let tests = tests.repeated(times);
    let mut sending = pin!(tests.failed(heartbeat::now));
    let failures = loop {
        tokio::select! {
            failures = &mut sending => break failures,
            Some(connection) = handed.recv() => server.accept(connection),
        }
    };
    server.stop().await;
    failures
}

/// Returns true if two tests have the same name, request and expectations.
fn is_same_test(one: &ConfigTest, other: &ConfigTest) -> bool {
    let ConfigTest {
        name,
        place: _,
        request,
        live,
        expectations,
    } = one;
    let TestRequest {
        place: _,
        method,
        url,
        headers,
        listener,
        client_ip,
        claims,
    } = request;
    let sent = &other.request;
    let expected = |test: &'_ ConfigTest| -> Vec<_> {
        let expectations = test.expectations.iter();
        expectations.map(|one| one.value.clone()).collect()
    };
    *name == other.name
        && *live == other.live
        && *method == sent.method
        && *url == sent.url
        && *headers == sent.headers
        && *listener == sent.listener
        && *client_ip == sent.client_ip
        && *claims == sent.claims
        && expectations.len() == other.expectations.len()
        && expected(one) == expected(other)
}

/// The targets that only the new configuration has.
struct NewTargets<'a> {
    before: &'a Model,
    after: &'a Model,
    /// Upstreams with a health check, and addresses of their new targets that pass it.
    healthy: BTreeSet<(String, String)>,
}

impl NewTargets<'_> {
    /// The new model with one worker; an upstream with new targets has only those, used in turn.
    fn rehearsal_model(&self) -> Model {
        let mut model = self.after.clone();
        for upstream in &mut model.upstreams {
            let new = self.in_upstream(&upstream.name);
            if !new.is_empty() {
                upstream.targets = new;
                upstream.load_balancing.value = LoadBalancing::RoundRobin;
            }
        }
        model.system.worker_threads.value = 1;
        model
    }

    /// New targets of an upstream that receive requests. With a health check, only those that pass
    /// it: a target that is still starting gets no test. Empty for a new upstream.
    fn in_upstream(&self, upstream: &str) -> Vec<Target> {
        let named = |model: &Model| {
            let mut upstreams = model.upstreams.iter();
            upstreams.find(|one| one.name == upstream).cloned()
        };
        let (Some(old), Some(new)) = (named(self.before), named(self.after)) else {
            return Vec::new();
        };
        let is_checked = new.health_check.is_some();
        let is_healthy = |target: &Target| {
            let address = target.address.value.to_string();
            self.healthy.contains(&(upstream.to_owned(), address))
        };
        let is_new = |target: &Target| {
            let mut targets = old.targets.iter();
            *target.weight > 0
                && targets.all(|old| old.address.value != target.address.value)
                && (!is_checked || is_healthy(target))
        };
        new.targets.into_iter().filter(is_new).collect()
    }
}
