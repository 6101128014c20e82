//! Responses that are compressed for clients that accept it.

use crate::support::{Config, METRICS, reason, request};
use http::HeaderMap;
use proxy_coding::{Decoder, DecodingLimits};
use proxy_testkit::{Gate, Response, Upstream, get};

/// Text of many kinds of words, which every coding makes smaller.
fn text() -> String {
    (0..3_000_u32)
        .map(|number| format!("{:x} ", number.wrapping_mul(2_654_435_761) >> 18))
        .collect()
}

/// A response of this type, with more fields, to every request.
fn page(media_type: &str, fields: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
    )
    .into_bytes()
}

fn decoded(response: &Response) -> String {
    let mut headers = HeaderMap::new();
    let coding = response.fields.get("content-encoding").unwrap_or_default();
    headers.insert("content-encoding", coding.parse().unwrap());
    let limits = DecodingLimits {
        max_ratio: 10_000.0,
        max_bytes: 1 << 30,
    };
    let mut text = Vec::new();
    match Decoder::from_headers(&headers, limits).unwrap() {
        None => text.extend_from_slice(&response.body),
        Some(mut decoder) => {
            decoder
                .push(&response.body, |piece| text.extend_from_slice(piece))
                .unwrap();
            decoder
                .finish(|piece| text.extend_from_slice(piece))
                .unwrap();
        }
    }
    String::from_utf8(text).unwrap()
}

const ALL: (&str, &str) = ("Accept-Encoding", "gzip, deflate, br, zstd");

#[test]
fn a_response_is_compressed_as_the_client_prefers() {
    let body = text();
    let fields = "ETag: \"x\"\r\nAccept-Ranges: bytes\r\n";
    let upstream = Upstream::answering(page("text/html; charset=utf-8", fields, &body));
    let proxyd = Config::through(&upstream, "compression").start();
    let mut client = proxyd.connect();
    for (accepted, coding) in [
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, br", "br"),
        ("gzip;q=1.0, br;q=0.5", "gzip"),
        ("*;q=0.1, zstd;q=0", "br"),
    ] {
        let response = client.ask(get("/", &[("Accept-Encoding", accepted)]));

        assert_eq!(
            response.fields.get("content-encoding"),
            Some(coding),
            "{accepted}"
        );
        assert_eq!(response.fields.get("vary"), Some("Accept-Encoding"));
        assert_eq!(response.fields.get("etag"), Some("W/\"x\""));
        assert_eq!(response.fields.get("accept-ranges"), None);
        assert!(response.body.len() < body.len() * 3 / 4);
        assert_eq!(decoded(&response), body);
        let record = proxyd.access_record(&response.correlation_id());
        let sent = u32::try_from(response.body.len()).unwrap();
        assert_eq!(record.number("bytes_out"), Some(f64::from(sent)));
    }
    for accepted in [&[][..], &[("Accept-Encoding", "identity, gzip;q=0.5")]] {
        let response = client.ask(get("/", accepted));

        assert_eq!(response.fields.get("content-encoding"), None);
        assert_eq!(response.fields.get("vary"), Some("Accept-Encoding"));
        assert_eq!(response.fields.get("etag"), Some("\"x\""));
        assert_eq!(response.text(), body);
    }
}

#[test]
fn a_response_to_head_has_the_fields_of_one_to_get() {
    let body = text();
    let (head, whole) = (body.len(), page("text/css", "ETag: W/\"x\"\r\n", &body));
    let upstream = Upstream::start(move |served| {
        while let Some(asked) = served.request() {
            if asked.method == "HEAD" {
                served.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nETag: W/\"x\"\r\nContent-Length: {head}\r\n\r\n"
                ));
            } else {
                served.send(&whole);
            }
        }
    });
    let proxyd = Config::through(&upstream, "compression").start();
    let mut client = proxyd.connect();
    let got = client.ask(get("/", &[ALL]));
    client.send(request("HEAD /", "Accept-Encoding: zstd\r\n", ""));
    let head = client.response_to_head();

    for name in ["content-encoding", "vary", "etag", "content-type"] {
        assert_eq!(head.fields.get(name), got.fields.get(name), "{name}");
    }
    assert_eq!(head.fields.get("content-encoding"), Some("zstd"));
    assert_eq!(head.fields.get("content-length"), None);
    assert_eq!(client.ask(get("/", &[ALL])).status, 200);
}

#[test]
fn excluded_responses_are_not_compressed() {
    let body = text();
    for (media_type, fields) in [
        ("image/png", ""),
        ("text/event-stream", ""),
        ("application/grpc+json", ""),
        ("text/html", "Content-Encoding: gzip\r\n"),
        ("text/html", "Cache-Control: public, No-Transform\r\n"),
        ("text/html", "Content-Range: bytes 0-1/2\r\n"),
    ] {
        let upstream = Upstream::answering(page(media_type, fields, &body));
        let proxyd = Config::through(
            &upstream,
            "compression { types \"text/*\" \"application/*+json\" }",
        )
        .start();

        let response = proxyd.connect().ask(get("/", &[ALL]));

        assert_eq!(response.text(), body, "{media_type} {fields}");
    }
    let upstream = Upstream::answering(page("text/html", "", &body));
    let proxyd = Config::through(&upstream, "compression").start();
    let response = proxyd
        .connect()
        .ask(get("/", &[ALL, ("Cache-Control", "no-transform")]));
    assert_eq!(response.text(), body);
    let asked = "GET / HTTP/1.0\r\nHost: a.test\r\nAccept-Encoding: gzip\r\n\r\n";
    assert_eq!(proxyd.connect().ask(asked).text(), body);
}

#[test]
fn statuses_without_content_of_their_own_are_left_as_they_are() {
    for status in ["204 No Content", "304 Not Modified", "206 Partial Content"] {
        let upstream = Upstream::answering(format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nETag: \"x\"\r\n{}\r\n",
            if status.starts_with("206") {
                "Content-Length: 0\r\n"
            } else {
                ""
            },
        ));
        let proxyd = Config::through(&upstream, "compression { min-size 0 }").start();

        let response = proxyd.connect().ask(get("/", &[ALL]));

        assert_eq!(response.fields.get("content-encoding"), None, "{status}");
        assert_eq!(response.fields.get("etag"), Some("\"x\""), "{status}");
    }
}

#[test]
fn a_route_orders_its_codings() {
    let upstream = Upstream::answering(page("text/html", "", &text()));
    let proxyd = Config::through(&upstream, r#"compression { codings "gzip" "br" }"#).start();
    let mut client = proxyd.connect();
    let mut coding = |accepted| {
        let response = client.ask(get("/", &[("Accept-Encoding", accepted)]));
        response.fields.get("content-encoding").map(str::to_owned)
    };

    assert_eq!(coding("br, gzip, zstd").as_deref(), Some("gzip"));
    assert_eq!(coding("br, zstd").as_deref(), Some("br"));
    assert_eq!(coding("zstd"), None);
}

#[test]
fn a_route_selects_the_compressed_media_types() {
    let body = text();
    for (media_type, is_compressed) in [
        ("application/x-own", true),
        ("Text/CSS", true),
        ("text/html", false),
    ] {
        let upstream = Upstream::answering(page(media_type, "", &body));
        let types = r#"compression { types "application/x-own" "text/css" }"#;
        let proxyd = Config::through(&upstream, types).start();

        let response = proxyd.connect().ask(get("/", &[ALL]));

        assert_eq!(response.fields.has("content-encoding"), is_compressed);
        assert_eq!(response.fields.has("vary"), is_compressed);
        assert_eq!(decoded(&response), body);
    }
}

#[test]
fn a_body_below_the_minimum_size_is_not_compressed() {
    let body = "a".repeat(3_000);
    let upstream = Upstream::answering(page("text/html", "", &body));
    for (least, is_compressed) in [(3_000, true), (3_001, false)] {
        let route = format!("compression {{ min-size {least} }}");
        let proxyd = Config::through(&upstream, &route).start();

        let response = proxyd.connect().ask(get("/", &[ALL]));

        assert_eq!(response.fields.has("content-encoding"), is_compressed);
        assert_eq!(decoded(&response), body);
    }
}

#[test]
fn a_higher_level_makes_fewer_bytes() {
    let body: String = text()
        .split(' ')
        .enumerate()
        .map(|(id, word)| format!("{{\"id\":{id},\"mail\":\"{word}@a.example\"}}\n"))
        .collect();
    let upstream = Upstream::answering(page("text/html", "", &body));
    for (coding, setting, least, greatest) in [
        ("gzip", "gzip-level", 1, 9),
        ("br", "br-level", 0, 6),
        ("zstd", "zstd-level", 1, 9),
    ] {
        let bytes = |level| {
            let route = format!("compression {{ {setting} {level} }}");
            let proxyd = Config::through(&upstream, &route).start();
            let response = proxyd
                .connect()
                .ask(get("/", &[("Accept-Encoding", coding)]));
            assert_eq!(decoded(&response), body);
            response.body.len()
        };
        assert!(bytes(greatest) < bytes(least), "{coding}");
    }
}

#[test]
fn a_slow_stream_is_passed_on_piece_by_piece() {
    for coding in ["gzip", "br", "zstd"] {
        let seen = Gate::new();
        let gate = seen.clone();
        let upstream = Upstream::start(move |served| {
            served.request();
            served.send("HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n");
            served.send("Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nfirst\r\n");
            gate.wait();
            served.send("6\r\nsecond\r\n0\r\nX-Sum: 7\r\n\r\n");
        });
        let proxyd = Config::through(&upstream, "compression").start();
        let mut client = proxyd.connect();

        let fields = [
            ("Accept-Encoding", coding),
            ("TE", "trailers"),
            ("Connection", "TE"),
        ];
        client.send(get("/", &fields));
        let mut response = client.head();
        let mut headers = HeaderMap::new();
        headers.insert("content-encoding", coding.parse().unwrap());
        let limits = DecodingLimits {
            max_ratio: 10_000.0,
            max_bytes: 1 << 20,
        };
        let mut decoder = Decoder::from_headers(&headers, limits).unwrap().unwrap();
        let mut text = Vec::new();
        while text != b"first" {
            let length = String::from_utf8(client.line().unwrap()).unwrap();
            let length = usize::from_str_radix(length.trim(), 16).unwrap();
            let piece = client.exactly(length + 2).unwrap();
            decoder
                .push(&piece[..length], |piece| text.extend_from_slice(piece))
                .unwrap();
        }
        seen.open();
        client.body(&mut response);
        decoder
            .push(&response.body, |piece| text.extend_from_slice(piece))
            .unwrap();
        decoder
            .finish(|piece| text.extend_from_slice(piece))
            .unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "firstsecond");
        assert_eq!(response.trailers.get("x-sum"), Some("7"));
    }
}

#[test]
fn a_truncated_body_is_truncated_when_compressed() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n");
        served.send("Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    });
    let proxyd = Config::through(&upstream, "compression").start();
    let mut client = proxyd.connect();

    client.send(get("/", &[ALL]));
    let head = client.head();
    let (rest, _) = client.rest().unwrap();

    assert!(!rest.ends_with(b"0\r\n\r\n"));
    assert_eq!(reason(&proxyd, &head), "response_truncated");
}

#[test]
fn files_and_pages_of_the_proxy_are_compressed_too() {
    let folder = tempfile::tempdir().unwrap();
    let body = text();
    std::fs::write(folder.path().join("a.css"), &body).unwrap();
    let root = folder.path().display();
    let proxyd = Config::new()
        .route("metrics", &format!("{METRICS}; compression"))
        .route(
            "files",
            &format!(r#"service-type "static"; static-files {{ root "{root}" }}; compression"#),
        )
        .start();
    let mut client = proxyd.connect();

    let response = client.ask(get("/a.css", &[ALL]));
    assert_eq!(response.fields.get("content-encoding"), Some("zstd"));
    assert_eq!(decoded(&response), body);
    let tag = response.fields.get("etag").unwrap().to_owned();
    assert!(tag.starts_with("W/"));
    let again = client.ask(get("/a.css", &[ALL, ("If-None-Match", &tag)]));
    assert_eq!(again.status, 304);
    let part = client.ask(get("/a.css", &[ALL, ("Range", "bytes=0-9")]));
    assert_eq!((part.status, part.text().as_str()), (206, &body[..10]));
    let metrics = client.ask(get("/metrics", &[ALL]));
    assert_eq!(metrics.fields.get("content-encoding"), Some("zstd"));
    assert!(decoded(&metrics).contains("proxy_requests_total"));
}
