//! The pages without a network, on both databases, and all of them in a browser.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop"
)]

mod access;
mod accounts;
mod actors;
mod browser;
mod definitions;
mod differences;
mod first_steps;
mod fleet;
mod form_fields;
mod forms;
mod headers;
mod held_forms;
mod large;
mod live_parts;
mod oversight;
mod paged_lists;
mod reports;
mod rollouts;
mod settings;
mod sign_in;
mod traffic;
mod tutorial;
mod versions;
mod webhooks;
mod world;
