//! Any bytes that the guard accepts, read as a response.
#![no_main]
#![expect(clippy::expect_used, reason = "a panic is a finding")]

#[path = "../../crates/proxy-http1/fuzz/checks.rs"]
#[expect(dead_code, reason = "each target runs one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::response(data));
