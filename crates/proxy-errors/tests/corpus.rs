//! Replays the fuzzers' corpora: what was worth keeping once must hold for ever.

use proxy_testkit::replay;

#[path = "../fuzz/checks.rs"]
mod checks;

#[test]
fn the_corpus_of_accept_holds() {
    replay("accept", checks::accept);
}
