//! What explain and the list of settings say of a configuration.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may fail loudly")]

mod config_tests;
mod effective;
mod explain;
mod support;
