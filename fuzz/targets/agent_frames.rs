//! Any bytes, read as frames of either side of the agent protocol.
#![no_main]

#[path = "../../crates/agent-protocol/fuzz/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::agent_frames(input));
