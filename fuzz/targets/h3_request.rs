//! Any bytes, read as a request stream of HTTP/3.
#![no_main]

#[path = "../../crates/proxy-http3/fuzz/checks.rs"]
#[expect(dead_code, reason = "each target runs one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::request(data));
