//! Any bytes, read as `Accept`.
#![no_main]

#[path = "../../crates/proxy-errors/fuzz/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::accept(data));
