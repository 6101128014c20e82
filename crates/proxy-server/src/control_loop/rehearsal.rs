//! The rehearsal of a bundle, before any client meets it: its live tests, sent to a server beside the one that
//! serves, and
//! connections to its new targets.
//!
//! The second server has a worker, certificates, pools and limits of its own, and no sockets: the connections of the
//! tests
//! are handed over to it, so that no other program of the machine reaches a bundle that may be refused. It connects
//! to the
//! same agents and targets, and of an upstream with new targets to those alone: an answer of a target that serves
//! already
//! says nothing of the bundle.

use super::dead_upstreams::dead_upstreams;
use super::registry::new_registry;
use crate::config::delivery::PrivateKeys;
use crate::config::live_tests::LiveTests;
use crate::error::start_error::StartError;
use crate::reload::server::{Purpose, Server, ServerParts};
use crate::runtime::disk_thread::DiskThread;
use crate::runtime::system_clock;
use crate::sockets::handover::HealthSnapshot;
use crate::sockets::inherited_sockets::InheritedSockets;
use crate::sockets::listener_set::ListenerSet;
use crate::worker::heartbeat;
use proxy_model::{LoadBalancing, Model, Target};
use proxy_telemetry::Lifecycle;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::mpsc::unbounded_channel;

/// Sends the live tests of `model`, if there are any, and connects to its new targets.
///
/// # Errors
/// [`StartError::Rehearsal`] if a live test fails, or if the bundle breaks an upstream. A second
/// server that cannot start is no failure: a lack of sockets or threads is not the bundle's fault.
pub(super) async fn rehearse(
    disk: &DiskThread,
    (before, model): (&Model, &Model),
    keys: &PrivateKeys,
) -> Result<(), StartError> {
    let mut failures = Vec::new();
    if model.tests.iter().any(|test| test.live.is_some()) {
        failures = failed_tests(disk, (before, model), keys).await;
    }
    failures.extend(dead_upstreams(before, model).await);
    if failures.is_empty() {
        return Ok(());
    }
    Err(StartError::Rehearsal(failures))
}

/// Sends the live tests to a second server.
async fn failed_tests(
    disk: &DiskThread,
    (before, model): (&Model, &Model),
    keys: &PrivateKeys,
) -> Vec<String> {
    let registry = new_registry();
    let lifecycle = Lifecycle::new(("", ""), Arc::clone(&registry), system_clock::now());
    let started = Server::start(
        ServerParts {
            model: Arc::new(rehearsal_model(before, model)),
            keys,
            purpose: Purpose::Rehearsal,
            registry,
            lifecycle: Arc::new(lifecycle),
            disk: disk.clone(),
            inherited: InheritedSockets::default(),
            listeners: ListenerSet::without_sockets(),
            snapshot: HealthSnapshot::default(),
        },
        async || {},
    );
    let mut server = match started.await {
        Ok(server) => server,
        Err(error) => {
            tracing::warn!(%error, "the bundle is not rehearsed");
            return Vec::new();
        }
    };
    let (handover, mut handed) = unbounded_channel();
    let tests = LiveTests::new(server.plan(), server.bound()).handed_to(&handover);
    let tests = tests.repeated(|upstream| new_targets(before, model, upstream).len());
    let mut sending = pin!(tests.failures(heartbeat::now));
    let failures = loop {
        tokio::select! {
            failures = &mut sending => break failures,
            Some(connection) = handed.recv() => server.accept(connection),
        }
    };
    server.stop().await;
    failures
}

/// The model with one worker, and with new targets in turn in place of all targets.
fn rehearsal_model(before: &Model, after: &Model) -> Model {
    let mut model = after.clone();
    for upstream in &mut model.upstreams {
        let new = new_targets(before, after, &upstream.name);
        if !new.is_empty() {
            upstream.targets = new;
            upstream.load_balancing.value = LoadBalancing::RoundRobin;
        }
    }
    model.system.worker_threads.value = 1;
    model
}

/// New targets of an upstream that receive requests. Empty for an upstream with a health check,
/// which excludes a target that is still starting, and for a new upstream.
fn new_targets(before: &Model, after: &Model, upstream: &str) -> Vec<Target> {
    let named = |model: &Model| {
        let mut upstreams = model.upstreams.iter();
        upstreams.find(|one| one.name == upstream).cloned()
    };
    let (Some(old), Some(new)) = (named(before), named(after)) else {
        return Vec::new();
    };
    if new.health_check.is_some() {
        return Vec::new();
    }
    let is_new = |target: &Target| {
        let mut targets = old.targets.iter();
        *target.weight > 0 && targets.all(|old| old.address.value != target.address.value)
    };
    new.targets.into_iter().filter(is_new).collect()
}
