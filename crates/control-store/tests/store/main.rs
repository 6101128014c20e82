//! Tests of every statement, on both databases.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may stop"
)]

mod fleet;
mod nouns;
mod objects;
mod services;
mod shared_state;
mod stores;
mod traffic;
