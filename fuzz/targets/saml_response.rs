//! Any bytes, read as a SAML response and as metadata.
#![no_main]
#![expect(clippy::unwrap_used, reason = "a panic is a finding")]

#[path = "../../crates/control-sso/fuzz/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::saml_response(data));
