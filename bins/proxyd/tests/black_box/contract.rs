//! Defects that a review against the contract has found.

use crate::support::{Config, refusal};
use proxy_testkit::{Gate, Upstream, get};

const GZIP: (&str, &str) = ("Accept-Encoding", "gzip");

/// A page of 2 000 bytes with this status line and these fields.
fn page(status: &str, fields: &str) -> Upstream {
    let body = "page ".repeat(400);
    Upstream::answering(format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: 2000\r\n{fields}\r\n{body}"
    ))
}

#[test]
fn a_number_that_exceeds_a_limit_is_more_than_it() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "done");
    for (limits, limit_type) in [
        ("max-connections-per-route 1", "connection_count"),
        (
            "max-in-flight-requests 1; max-queued-requests 0",
            "in_flight_requests",
        ),
    ] {
        let proxyd = Config::to(&upstream)
            .top(&format!("limits {{ {limits} }}"))
            .start();
        let mut first = proxyd.connect();
        first.send(get("/", &[]));
        upstream.wait_for_requests(1);

        let response = proxyd.connect().ask(get("/", &[]));

        let message = refusal(&response, 503, "LIMIT_EXCEEDED");
        let told = format!("Limit exceeded: {limit_type} - Current value 2 exceeds limit 1");
        assert_eq!(message, told);
        let record = proxyd.limit_record(&response.correlation_id());
        assert_eq!(
            (record.number("limit"), record.number("actual")),
            (Some(1.0), Some(2.0))
        );
    }
    gate.open();
}

#[test]
fn a_compressed_response_has_no_digest_of_other_bytes() {
    let digests = ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5"];
    let fields: String = digests
        .map(|name| format!("{name}: of-the-page\r\n"))
        .concat();
    let upstream = page("200 OK", &fields);
    let proxyd = Config::through(&upstream, "compression").start();
    let mut client = proxyd.connect();

    let compressed = client.ask(get("/", &[GZIP]));
    let whole = client.ask(get("/", &[]));

    assert_eq!(compressed.fields.get("content-encoding"), Some("gzip"));
    for digest in digests {
        assert_eq!(compressed.fields.get(digest), None);
        assert_eq!(whole.fields.get(digest), Some("of-the-page"));
    }
}

#[test]
fn a_part_of_a_compressible_page_varies_as_the_whole_does() {
    let upstream = page(
        "206 Partial Content",
        "Content-Range: bytes 0-1999/5000\r\n",
    );
    let proxyd = Config::through(&upstream, "compression").start();

    let response = proxyd.connect().ask(get("/", &[GZIP]));

    assert_eq!(response.fields.get("vary"), Some("Accept-Encoding"));
    assert_eq!(response.fields.get("content-encoding"), None);
    assert_eq!(response.body.len(), 2_000);
}

#[test]
fn a_304_has_the_fields_of_the_page_that_the_client_holds() {
    let upstream = Upstream::answering("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n");
    let proxyd = Config::through(&upstream, "compression").start();
    let mut client = proxyd.connect();
    for (held, told) in [
        ("\"a\", W/\"x\"", "W/\"x\""),
        ("\"x\"", "\"x\""),
        ("\"W/\"", "\"x\""),
    ] {
        let response = client.ask(get("/", &[GZIP, ("If-None-Match", held)]));

        assert_eq!(response.status, 304);
        assert_eq!(response.fields.get("etag"), Some(told), "{held}");
        assert_eq!(response.fields.get("vary"), Some("Accept-Encoding"));
        assert_eq!(response.fields.get("content-encoding"), None);
    }
}
