//! Any stream, split at any positions, within any limits.
#![no_main]

#[path = "../../crates/proxy-framing/fuzz/checks.rs"]
#[expect(dead_code, reason = "each target runs one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::split(data));
