//! Nodes and their control plane, both the real programs.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

mod relay;
mod world;

mod certificates;
mod hostile;
mod orders;
mod outages;
