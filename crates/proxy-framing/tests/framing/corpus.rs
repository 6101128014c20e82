//! Replays the fuzzers' corpora: what was worth keeping once must hold for ever.

use std::fs;
use std::path::Path;

#[path = "../../fuzz/checks.rs"]
mod checks;

/// Runs `check` on every file of a corpus.
fn replay(corpus: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/corpus")
        .join(corpus);
    let mut files = 0;
    for file in fs::read_dir(&folder).unwrap() {
        check(&fs::read(file.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(20 <= files, "{files} files in {}", folder.display());
}

#[test]
fn the_corpus_of_requests_holds() {
    replay("framing_request", checks::request);
}

#[test]
fn the_corpus_of_responses_holds() {
    replay("framing_response", checks::response);
}

#[test]
fn the_corpus_of_cut_streams_holds() {
    replay("framing_split", checks::split);
}

#[test]
fn the_corpus_of_chunked_bodies_holds() {
    replay("framing_chunks", checks::chunks);
}

#[test]
fn the_corpus_of_http2_frames_holds() {
    replay("h2_floods", checks::h2_floods);
}

#[test]
fn the_corpus_of_proxy_protocol_headers_holds() {
    replay("proxy_protocol", checks::proxy_protocol);
}

#[test]
fn the_corpus_of_grpc_timeouts_holds() {
    replay("grpc_timeout", checks::grpc_timeout);
}

#[test]
fn the_corpus_of_forwarded_for_holds() {
    replay("forwarded_for", checks::forwarded_for);
}
