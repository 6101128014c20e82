//! Any bytes, read as a JSON Web Token and as a key set.
#![no_main]
#![expect(clippy::unwrap_used, reason = "a panic is a finding")]

#[path = "../../crates/proxy-auth/fuzz/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::jwt_token(data));
