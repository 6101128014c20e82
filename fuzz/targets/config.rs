//! Any bytes, read as a configuration.
#![no_main]
#![expect(clippy::panic, reason = "a panic is a finding")]

#[path = "../../crates/proxy-config/fuzz/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::config(data));
