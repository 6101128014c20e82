//! Tests of the HTTP interface without a network, on both databases.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may stop"
)]

mod access;
mod approvals;
mod archives;
mod audit;
mod bounds;
mod bundles;
mod crashes;
mod creators;
mod description;
mod drift;
mod fleet;
mod forger;
mod hostile_walk;
mod large_rollouts;
mod late_bodies;
mod lifecycle;
mod lists;
mod live_changes;
mod locations;
mod managed_certificates;
mod members;
mod metric_conditions;
mod missing_certificates;
mod month;
mod node_certificates;
mod nodes;
mod orders;
mod outsiders;
mod people;
mod people_control;
mod policies;
mod private_keys;
mod quotas;
mod rates;
mod recalls;
mod renamed_routes;
mod renewal_windows;
mod repetitions;
mod reports;
mod requests;
mod retention;
mod rollout_failures;
mod rollout_races;
mod rollouts;
mod second_factors;
mod second_persons;
mod sent_headers;
mod services;
mod sign_in;
mod sign_in_floods;
mod sso;
mod sso_proofs;
mod sso_races;
mod sso_removals;
mod sso_sessions;
mod tokens;
mod traffic;
mod uploads;
mod webhooks;
mod world;
mod wrong_clocks;
