//! Any text, read as a path.
#![no_main]

#[path = "../../crates/proxy-routing/fuzz/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|text: &str| checks::canonical_path(text));
