//! Replays the corpora of the fuzz targets.

use proxy_testkit::replay;

#[path = "../../fuzz/checks.rs"]
mod checks;

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
