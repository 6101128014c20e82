//! Replays the corpora of the fuzz targets.

use proxy_testkit::replay;

#[path = "../fuzz/checks.rs"]
mod checks;

#[test]
fn requests_of_the_corpus_are_read() {
    replay("h3_request", checks::request);
}

#[test]
fn peer_streams_of_the_corpus_are_read() {
    replay("h3_peer_stream", checks::peer_stream);
}
