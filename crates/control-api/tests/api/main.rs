//! The interface without a network, on both databases.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may stop"
)]

mod access;
mod audit;
mod bundles;
mod description;
mod forger;
mod lifecycle;
mod members;
mod nodes;
mod orders;
mod rates;
mod requests;
mod services;
mod tokens;
mod world;
