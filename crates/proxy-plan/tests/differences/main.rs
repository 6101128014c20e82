//! The difference between two configurations.
#![expect(
    clippy::format_collect,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

mod against_brute_force;
mod further_risks;
mod hidden_risks;
mod limit_risks;
mod parts;
mod regions;
mod replays;
mod risks;
mod silent_risks;
mod successors;
mod support;
