//! The example agents as processes, called over their sockets.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "tests may fail loudly"
)]

mod asking;
mod conformance;
mod jwt;
mod lists;
mod process;
mod waf;
