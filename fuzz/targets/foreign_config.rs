//! Any bytes, read as a configuration of another server.
#![no_main]

#[path = "../../crates/proxy-migrate/fuzz/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::configuration(data));
