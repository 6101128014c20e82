//! Any bytes, read as a `ClientHello`.
#![no_main]

#[path = "../../crates/proxy-tls/fuzz/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::client_hello(data));
