//! The rehearsal of a bundle: its live tests, sent to a server beside the one that serves, before any client meets it.
//!
//! The second server has a worker, certificates, pools and limits of its own, and sockets with other ports at the same
//! addresses. It connects to the same agents and targets.

use super::registry::new_registry;
use crate::config::delivery::PrivateKeys;
use crate::config::live_tests::LiveTests;
use crate::error::start_error::StartError;
use crate::reload::server::{Purpose, Server};
use crate::runtime::disk_thread::DiskThread;
use crate::runtime::system_clock;
use crate::sockets::handover::Knowledge;
use crate::sockets::inherited_sockets::InheritedSockets;
use crate::sockets::listener_set::ListenerSet;
use crate::worker::heartbeat;
use proxy_model::{BindAddress, Model};
use proxy_telemetry::Lifecycle;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Sends the live tests of `model`, if there are any.
///
/// # Errors
/// [`StartError::Rehearsal`] if a live test fails. A second server that cannot start is no failure: a lack of sockets
/// or threads says nothing of the bundle.
pub(super) async fn rehearse(
    disk: &DiskThread,
    model: &Model,
    keys: &PrivateKeys,
) -> Result<(), StartError> {
    if model.tests.iter().all(|test| test.live.is_none()) {
        return Ok(());
    }
    let registry = new_registry();
    let lifecycle = Lifecycle::new(("", ""), Arc::clone(&registry), system_clock::now());
    let started = Server::start(
        (Arc::new(beside(model)), keys),
        Purpose::Rehearsal,
        (registry, Arc::new(lifecycle)),
        (
            disk.clone(),
            InheritedSockets::default(),
            ListenerSet::default(),
        ),
        Knowledge::default(),
        async || {},
    );
    let server = match started.await {
        Ok(server) => server,
        Err(error) => {
            tracing::warn!(%error, "the bundle is not rehearsed");
            return Ok(());
        }
    };
    let tests = LiveTests::new(server.plan(), server.bound());
    let failures = tests.failures(heartbeat::now).await;
    server.stop().await;
    if failures.is_empty() {
        return Ok(());
    }
    Err(StartError::Rehearsal(failures))
}

/// The model with one worker, and with listeners at free ports: limits by address see the same client.
fn beside(model: &Model) -> Model {
    let mut model = model.clone();
    model.system.worker_threads.value = 1;
    for listener in &mut model.listeners {
        let ip = match &listener.address.value {
            BindAddress::Tcp(address) => address.ip(),
            BindAddress::Unix(_) => Ipv4Addr::LOCALHOST.into(),
        };
        listener.address.value = BindAddress::Tcp(SocketAddr::new(ip, 0));
    }
    model
}
