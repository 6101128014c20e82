//! Replays the corpora of the fuzz targets.

use proxy_testkit::replay;

#[path = "../fuzz/checks.rs"]
mod checks;

#[test]
fn the_corpus_of_accept_holds() {
    replay("accept", checks::accept);
}
