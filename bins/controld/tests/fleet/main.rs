//! Load on the real program: heartbeats of a fleet, long polls, browsers on a rollout, and one
//! hostile organization among ten.
#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may stop, and prints what it measured"
)]

mod browsers;
mod connection;
mod heartbeats;
mod long_polls;
mod nodes;
mod tenants;

const CONTROLD: &str = env!("CARGO_BIN_EXE_controld");
