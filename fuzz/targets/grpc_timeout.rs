//! Any bytes, read as `grpc-timeout`.
#![no_main]

#[path = "../../crates/proxy-framing/fuzz/checks.rs"]
#[expect(dead_code, reason = "each target runs one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::grpc_timeout(data));
