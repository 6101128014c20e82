//! Output of `explain`, and of the list of settings, for a configuration.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may fail loudly")]

mod claims;
mod config_tests;
mod effective;
mod explain;
mod live_tests;
mod support;
