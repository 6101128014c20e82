//! Any bytes, read as a configuration.
#![no_main]

#[path = "../../crates/proxy-config/fuzz/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::config(data));
