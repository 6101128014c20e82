//! Any lines, read as the conditions and ranges of a request for a file.
#![no_main]

#[path = "../../crates/proxy-files/fuzz/checks.rs"]
#[expect(dead_code, reason = "each target runs one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::request(data));
