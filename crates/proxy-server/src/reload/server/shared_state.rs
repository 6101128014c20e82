//! The state that all workers share, and its limits.

use crate::runtime::descriptors;
use proxy_limits::{ConcurrencyLimit, ConnectionsByClient, KeySeed};
use proxy_pipeline::{ChallengeTokens, InFlightLimit, Shared, Time};
use proxy_plan::Plan;
use proxy_telemetry::Lifecycle;
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
