//! The fuzz target's corpus, replayed.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests may fail loudly"
)]

#[path = "../fuzz/checks.rs"]
mod checks;

use proxy_testkit::replay;

#[test]
fn the_corpus_of_frames_holds() {
    replay("agent_frames", checks::agent_frames);
}
