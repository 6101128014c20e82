//! Replays the corpora of the fuzz targets.

use proxy_testkit::replay;

#[path = "../fuzz/checks.rs"]
mod checks;

#[test]
fn the_corpus_of_file_paths_holds() {
    replay("file_path", checks::path);
}

#[test]
fn the_corpus_of_file_requests_holds() {
    replay("file_request", checks::request);
}
