//! The state that all workers share, and its limits.

use crate::runtime::descriptors;
use crate::tls::{AcmeTasks, CertificateManager};
use proxy_limits::{ConcurrencyLimit, ConnectionsByClient, KeySeed};
use proxy_model::Model;
use proxy_pipeline::{ChallengeTokens, InFlightLimit, Shared, Time};
use proxy_plan::Plan;
use proxy_telemetry::{Lifecycle, Registry};
use std::sync::Arc;
use tokio::sync::Notify;

/// The state that all workers share, for the limits of `plan`.
pub(super) fn new(
    plan: &Plan,
    seed: KeySeed,
    health_changes: Arc<Notify>,
    lifecycle: Arc<Lifecycle>,
) -> Shared {
    let limits = &plan.model().limits;
    let (max, max_waiting) = (*limits.max_in_flight_requests, *limits.max_queued_requests);
    let connections = descriptors::max_connections(*limits.max_total_connections);
    Shared {
        in_flight: Arc::new(InFlightLimit::new(max, max_waiting, seed)),
        connections: ConcurrencyLimit::new(connections),
        clients: Arc::new(ConnectionsByClient::new(
            *limits.max_connections_per_client,
            seed,
        )),
        memory: Arc::default(),
        clock: Time::process_clock(),
        health_changes,
        target_changes: Arc::default(),
        hashes: Arc::default(),
        challenges: ChallengeTokens::default(),
        lifecycle,
        spans: Arc::default(),
    }
}

/// Applies the limits of `plan`.
pub(super) fn set_limits(shared: &Shared, plan: &Plan) {
    let limits = &plan.model().limits;
    let Shared {
        in_flight,
        connections,
        health_changes: _,
        target_changes: _,
        clients,
        hashes: _,
        challenges: _,
        lifecycle: _,
        memory: _,
        spans: _,
        clock: _,
    } = shared;
    in_flight.set_max(*limits.max_in_flight_requests, *limits.max_queued_requests);
    connections.set_max(descriptors::max_connections(*limits.max_total_connections));
    clients.set_max(*limits.max_connections_per_client);
}

/// Memory for recorded heads; 0 if none are recorded.
pub(super) fn recorded_bytes(model: &Model) -> usize {
    let recording = model.observability.recording.as_ref();
    let kept = recording.map_or(0, |recording| *recording.keep_bytes);
    usize::try_from(kept).unwrap_or(usize::MAX)
}

/// The tasks that obtain certificates.
pub(super) fn acme_tasks(
    shared: &Shared,
    certificates: &CertificateManager,
    registry: &Arc<Registry>,
) -> AcmeTasks {
    AcmeTasks::new(
        shared.challenges.clone(),
        certificates.challenges().clone(),
        Arc::clone(registry),
        Arc::clone(&shared.lifecycle),
    )
}
