//! Any bytes, read as a unidirectional stream of an HTTP/3 client.
#![no_main]

#[path = "../../crates/proxy-http3/fuzz/checks.rs"]
#[expect(dead_code, reason = "each target runs one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::peer_stream(data));
