//! Any bytes, read as frames of either side of the agent protocol.
#![no_main]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is a finding"
)]

#[path = "../../crates/agent-protocol/fuzz/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::agent_frames(input));
