//! Nodes and their control plane, both the real programs.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

mod fleet;
mod refusing_authority;
mod relay;
mod traffic;
mod world;

mod battery;
mod certificates;
mod crashes;
mod hostile;
mod identities;
mod managed_certificates;
mod mishaps;
mod node_acme;
mod orders;
mod outages;
mod reach;
mod rollouts;
mod trials;
