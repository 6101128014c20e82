//! Replays the corpora of the fuzz targets.
#![expect(clippy::expect_used, reason = "tests may fail loudly")]

use proxy_testkit::replay;

#[path = "../fuzz/checks.rs"]
mod checks;

#[test]
fn requests_are_read_as_httparse_reads_them() {
    replay("framing_request", checks::request);
}

#[test]
fn responses_are_read_as_httparse_reads_them() {
    replay("framing_response", checks::response);
}
