//! Heads that are valid in only one of HTTP/2 and HTTP/1.1.

use crate::support::{
    END_HEADERS, END_STREAM, Frames, GET, HEADERS, Http2, RST_STREAM, block_on, get, literal,
    start, to,
};
use http::HeaderValue;
use proxy_testkit::{Proxyd, Upstream};

const H2C: &str = "h2c #true";

fn running(more: &str) -> (Upstream, Proxyd) {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&(to(&upstream, H2C) + more), &[]);
    (upstream, proxyd)
}

#[test]
fn crumbs_of_a_cookie_are_joined() {
    let (upstream, proxyd) = running("");
    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let mut request = get("/");
        for crumb in ["a=1", "b=2", "c=3"] {
            request
                .headers_mut()
                .append("cookie", crumb.parse().unwrap());
        }
        assert_eq!(http.ask(request).await.status, 200);
    });
    let seen = upstream.last_request();
    assert_eq!(seen.fields.all("cookie"), ["a=1; b=2; c=3"]);
}

/// As the same cookie in one field, as clients send it over HTTP/1.1.
#[test]
fn crumbs_that_make_too_long_a_cookie_are_refused() {
    let (upstream, proxyd) = running("");
    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        for (last, status) in [(96, 200), (97, 429)] {
            let mut request = get("/");
            let crumbs = std::iter::repeat_n(98, 40).chain([last]);
            for crumb in crumbs {
                let crumb = "c".repeat(crumb).parse().unwrap();
                request.headers_mut().append("cookie", crumb);
            }
            assert_eq!(http.ask(request).await.status, status, "{last}");
        }
    });
    assert_eq!(
        upstream.last_request().fields.get("cookie").unwrap().len(),
        4096
    );
}

#[test]
fn a_host_that_differs_from_the_authority_is_refused() {
    let (upstream, proxyd) = running("");
    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        for (host, status) in [("A.TEST", 200), ("b.test", 400)] {
            let mut request = get("/");
            request.headers_mut().insert("host", host.parse().unwrap());
            assert_eq!(http.ask(request).await.status, status, "{host}");
        }
        let mut twice = get("/");
        for _ in 0..2 {
            twice
                .headers_mut()
                .append("host", HeaderValue::from_static("a.test"));
        }
        assert_eq!(http.ask(twice).await.status, 400);
    });
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn a_request_without_authority_is_routed_by_its_host() {
    let (upstream, proxyd) = running("");
    block_on(async {
        let mut frames = Frames::connect(proxyd.address(), &[]).await;
        let nameless = b"\x82\x84\x86";
        let named = [nameless, &literal(b"host", b"b.test")[..]].concat();
        for (stream, head, status) in [(1, &nameless[..], 0x8c), (3, &named, 0x88)] {
            frames
                .send(HEADERS, END_STREAM | END_HEADERS, stream, head)
                .await;
            let answer = frames.next_of(HEADERS).await;
            // Indexed: 400 and 200.
            assert_eq!((answer.stream, answer.payload[0]), (stream, status));
        }
    });
    assert_eq!(upstream.last_request().fields.get("host"), Some("b.test"));
}

#[test]
fn the_name_of_the_correlation_id_is_spelt_out_once() {
    // `x-correlation-id` by the code of RFC 7541, appendix B.
    const NAME: &[u8] = b"\xf2\xb1\x0f\x65\x85\xa0\x69\x31\xea\x58\xd2\x7f";
    let (_upstream, proxyd) = running("");
    let spelt = block_on(async {
        let mut frames = Frames::connect(proxyd.address(), &[]).await;
        let mut spelt = Vec::new();
        for stream in [1, 3, 5] {
            frames
                .send(HEADERS, END_STREAM | END_HEADERS, stream, GET)
                .await;
            let head = frames.next_of(HEADERS).await.payload;
            spelt.push(head.windows(NAME.len()).any(|bytes| bytes == NAME));
        }
        spelt
    });
    assert_eq!(spelt, [true, false, false]);
}

#[test]
fn fields_of_a_connection_end_their_stream() {
    let (upstream, proxyd) = running("");
    block_on(async {
        let mut frames = Frames::connect(proxyd.address(), &[]).await;
        let unfit = [
            literal(b"connection", b"close"),
            literal(b"keep-alive", b"timeout=5"),
            literal(b"proxy-connection", b"close"),
            literal(b"transfer-encoding", b"chunked"),
            literal(b"upgrade", b"websocket"),
            literal(b"te", b"gzip"),
        ];
        for (stream, field) in (1..).step_by(2).zip(unfit) {
            let head = [GET, &field].concat();
            frames
                .send(HEADERS, END_STREAM | END_HEADERS, stream, &head)
                .await;
            let reset = frames.next_of(RST_STREAM).await;
            assert_eq!(reset.stream, stream, "{field:?}");
        }
    });
    assert_eq!(upstream.requests().len(), 0);
}

#[test]
fn no_line_end_and_no_zero_passes() {
    let (upstream, proxyd) = running("");
    block_on(async {
        for value in [&b"a\r\nx-forged: 1"[..], b"a\nb", b"a\rb", b"a\0b"] {
            let mut frames = Frames::connect(proxyd.address(), &[]).await;
            let head = [GET, &literal(b"x", value)].concat();
            frames
                .send(HEADERS, END_STREAM | END_HEADERS, 1, &head)
                .await;
            while let Some(frame) = frames.next().await {
                assert_ne!((frame.kind, frame.stream), (HEADERS, 1), "{value:?}");
                if frame.kind == RST_STREAM {
                    break;
                }
            }
        }
        for name in [&b"x y"[..], b"x\r\ny", b"X", b"x:y"] {
            let mut frames = Frames::connect(proxyd.address(), &[]).await;
            let head = [GET, &literal(name, b"1")].concat();
            frames
                .send(HEADERS, END_STREAM | END_HEADERS, 1, &head)
                .await;
            while let Some(frame) = frames.next().await {
                assert_ne!((frame.kind, frame.stream), (HEADERS, 1), "{name:?}");
                if frame.kind == RST_STREAM {
                    break;
                }
            }
        }
    });
    assert_eq!(upstream.requests().len(), 0);
}

#[test]
fn white_space_around_a_value_is_refused() {
    let (upstream, proxyd) = running("");
    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let mut request = get("/");
        request
            .headers_mut()
            .insert("x", HeaderValue::from_static(" a"));
        let answer = http.ask(request).await;
        assert_eq!(
            (answer.status.as_u16(), answer.error_code().as_str()),
            (400, "PARSE")
        );
    });
    assert_eq!(upstream.requests().len(), 0);
}

#[test]
fn heads_beyond_the_limits_are_answered_with_the_limit() {
    for (settings, status) in [("", 429), ("standard-statuses #true", 431)] {
        let limits = format!(
            "limits {{ max-header-count 12; max-header-name-bytes 20; \
             max-header-value-bytes 300; max-header-size-bytes 1024; {settings} }}"
        );
        let (upstream, proxyd) = running(&limits);
        block_on(async {
            let mut http = Http2::prior_knowledge(proxyd.address()).await;
            let many: Vec<_> = (0..13).map(|n| (format!("x{n}"), "1".to_owned())).collect();
            let long: Vec<_> = (0..4).map(|n| (format!("x{n}"), "1".repeat(300))).collect();
            let cases = [
                (many, "header_count_limit"),
                (vec![("x".repeat(21), "1".to_owned())], "header_name_limit"),
                (
                    vec![("x".to_owned(), "1".repeat(301))],
                    "header_value_limit",
                ),
                (long, "header_size_limit"),
            ];
            for (fields, reason) in cases {
                let mut request = get("/");
                for (name, value) in fields {
                    let name: http::HeaderName = name.parse().unwrap();
                    request.headers_mut().append(name, value.parse().unwrap());
                }
                let answer = http.ask(request).await;
                assert_eq!(answer.status, status, "{reason}");
                assert_eq!(answer.error_code(), "LIMIT_EXCEEDED");
                let id = answer.header("x-correlation-id").unwrap();
                assert_eq!(proxyd.error_record(id).text("reason"), reason);
            }
            let answer = http.get(&format!("/{}", "x".repeat(17_000))).await;
            assert_eq!(answer.status, status);
        });
        assert_eq!(upstream.requests().len(), 0);
    }
}

#[test]
fn nothing_that_is_not_a_request_by_http1_becomes_one() {
    let (upstream, proxyd) = running("");
    let bare = b"\x82\x84\x86";
    let unfit = [
        ("a quote in a name", [GET, &literal(b"x\"y", b"1")].concat()),
        (
            "an empty length",
            [GET, &literal(b"content-length", b"")].concat(),
        ),
        (
            "a length twice",
            [
                GET,
                &literal(b"content-length", b"0"),
                &literal(b"content-length", b"0"),
            ]
            .concat(),
        ),
        (
            "a host that is none",
            [&bare[..], &literal(b"host", b"a,b")].concat(),
        ),
        (
            "a path that is none",
            b"\x82\x86\x41\x06a.test\x04\x02?a".to_vec(),
        ),
        ("a path of all", b"\x82\x86\x41\x06a.test\x04\x01*".to_vec()),
        (
            "a path beyond ASCII",
            b"\x82\x86\x41\x06a.test\x04\x03/\xc3\xa9".to_vec(),
        ),
    ];
    block_on(async {
        for (name, head) in unfit {
            let mut frames = Frames::connect(proxyd.address(), &[]).await;
            frames
                .send(HEADERS, END_STREAM | END_HEADERS, 1, &head)
                .await;
            let answer = frames.next_of(HEADERS).await;
            // Indexed: 400.
            assert_eq!(answer.payload[0], 0x8c, "{name}");
        }
    });
    assert_eq!(upstream.requests().len(), 0);
}
