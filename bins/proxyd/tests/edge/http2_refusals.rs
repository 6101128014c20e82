//! Streams refused by the HTTP/2 library itself: they reach no upstream as a complete request, and
//! leave a record.

use crate::support::{
    CANCEL, DATA, END_HEADERS, END_STREAM, Frames, GET, HEADERS, Http2, Http2Upstream, POST,
    PROTOCOL_ERROR, RST_STREAM, block_on, frame, literal, start, to, to_http2,
};
use proxy_testkit::{Proxyd, Upstream, get};

/// Polls the metrics page until it has this many failures with this reason.
#[track_caller]
fn wait_for_failures(proxyd: &Proxyd, reason: &str, count: u64) {
    let line = format!("proxy_errors_total{{reason=\"{reason}\"}} {count}");
    let mut client = proxyd.connect();
    for _ in 0..1_000 {
        if client.ask(get("/metrics", &[])).text().contains(&line) {
            return;
        }
    }
    panic!("no {line}");
}

fn with_metrics(kdl: &str) -> String {
    let metrics = r#"routes { route "metrics" { priority 100; matches { path "/metrics" }
        service-type "builtin"; builtin-handler "metrics" } }"#;
    format!("{kdl}\n{metrics}")
}

/// A `POST` with a part of its body, and trailers that begin with `:path`.
fn with_a_path_behind() -> Vec<u8> {
    [
        frame(HEADERS, END_HEADERS, 1, POST),
        frame(DATA, 0, 1, b"hi"),
        frame(
            HEADERS,
            END_STREAM | END_HEADERS,
            1,
            &literal(b":path", b"/b"),
        ),
    ]
    .concat()
}

#[test]
fn trailers_with_a_pseudo_header_field_abort_the_upload() {
    let upstream = Upstream::start(|served| {
        if served.head().is_some() {
            let sent = served.end().unwrap_or_default();
            assert!(!sent.ends_with(b"0\r\n\r\n"), "{}", sent.escape_ascii());
        }
    });
    let proxyd = start(&with_metrics(&to(&upstream, "h2c #true")), &[]);

    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[]).await;
        let [head, piece, trailers] = [
            frame(HEADERS, END_HEADERS, 1, POST),
            frame(DATA, 0, 1, b"hi"),
            frame(
                HEADERS,
                END_STREAM | END_HEADERS,
                1,
                &literal(b":path", b"/b"),
            ),
        ];
        client.send_raw(&[head, piece].concat()).await.unwrap();
        // The request is being forwarded when its end arrives.
        tokio::task::block_in_place(|| upstream.wait_for_connections(1));
        client.send_raw(&trailers).await.unwrap();
        let reset = client.next_of(RST_STREAM).await;
        assert_eq!((reset.stream, reset.code()), (1, PROTOCOL_ERROR));
    });
    upstream.wait_for_ends(1);
    let record = proxyd.stdout().find(0, |record| record.has("status"));
    assert_eq!(record.text("reason"), "http2_protocol_error");
    wait_for_failures(&proxyd, "http2_protocol_error", 1);
}

#[test]
fn trailers_with_a_pseudo_header_field_reset_the_stream_to_an_http2_upstream() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let whole = request.read().await;
        assert!(whole.is_none(), "{whole:?}");
    });
    let address = upstream.address;
    let proxyd = start(&to_http2(address, ""), &[]);

    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[]).await;
        client.send_raw(&with_a_path_behind()).await.unwrap();
        let reset = client.next_of(RST_STREAM).await;
        assert_eq!((reset.stream, reset.code()), (1, PROTOCOL_ERROR));
    });
}

#[test]
fn a_stream_that_never_became_a_request_leaves_a_record() {
    let with_connection = [GET, &literal(b"connection", b"close")].concat();
    let path = literal(b":path", b"/a b");
    let with_space = [&b"\x82\x86\x41\x06a.test"[..], &path].concat();
    for head in [with_connection, with_space] {
        let upstream = Upstream::saying("hello");
        let proxyd = start(&with_metrics(&to(&upstream, "h2c #true")), &[]);

        block_on(async {
            let mut client = Frames::connect(proxyd.address(), &[]).await;
            let ends = END_STREAM | END_HEADERS;
            client.send(HEADERS, ends, 1, &head).await;
            let reset = client.next_of(RST_STREAM).await;
            assert_eq!((reset.stream, reset.code()), (1, PROTOCOL_ERROR));
            // The connection stays open, and served streams leave no such record.
            client.send(HEADERS, ends, 3, GET).await;
            assert_eq!(client.next_of(HEADERS).await.stream, 3);
        });
        let record = proxyd.stdout().find(0, |record| record.has("http_status"));
        assert_eq!(record.text("reason"), "http2_protocol_error");
        assert!(record.text("message").contains("stream 1"), "{record:?}");
        assert_eq!(record.text("client_ip"), "127.0.0.1");
        wait_for_failures(&proxyd, "http2_protocol_error", 1);
    }
}

fn get_of(path: &str) -> Vec<u8> {
    let path = literal(b":path", path.as_bytes());
    [&b"\x82\x86\x41\x06a.test"[..], &path].concat()
}

#[test]
fn a_malformed_path_ends_its_stream_alone() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&with_metrics(&to(&upstream, "h2c #true")), &[]);
    let paths = ["/< ", "/>\n", "/`\0", "/?<\x7f", "<", "/é>"];
    let ends = END_STREAM | END_HEADERS;

    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[]).await;
        let mut stream = 1;
        for path in paths {
            client.send(HEADERS, ends, stream, &get_of(path)).await;
            let reset = client.next_of(RST_STREAM).await;
            assert_eq!((reset.stream, reset.code()), (stream, PROTOCOL_ERROR));
            client.send(HEADERS, ends, stream + 2, GET).await;
            assert_eq!(client.next_of(HEADERS).await.stream, stream + 2, "{path}");
            stream += 4;
        }
    });
    wait_for_failures(&proxyd, "http2_protocol_error", paths.len() as u64);
    for stream in (1..).step_by(4).take(paths.len()) {
        let error_message = format!("stream {stream} was reset");
        let record = proxyd.stdout().find(0, |record| {
            record.has("http_status") && record.text("message").contains(&error_message)
        });
        assert_eq!(record.text("reason"), "http2_protocol_error");
    }
}

#[test]
fn a_header_section_that_the_library_refuses_leaves_a_record() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&with_metrics(&to(&upstream, "h2c #true")), &[]);

    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[]).await;
        // One field of 4000 bytes enters the table, then is referenced several times by one byte
        // each.
        let mut head = GET.to_vec();
        head.extend([0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
        head.extend(std::iter::repeat_n(b'a', 4000));
        head.extend(std::iter::repeat_n(0xbe, 25));
        let sent = frame(HEADERS, END_STREAM | END_HEADERS, 1, &head);
        client.send_raw(&sent).await.unwrap();
        assert_eq!(client.next_of(HEADERS).await.stream, 1);
    });
    let record = proxyd.stdout().find(0, |record| record.has("http_status"));
    assert_eq!(record.text("reason"), "header_size_limit");
    wait_for_failures(&proxyd, "header_size_limit", 1);
}

#[test]
fn a_client_that_gives_a_stream_up_leaves_no_such_record() {
    let upstream = Upstream::start(|served| {
        served.head();
        served.end();
    });
    let mut proxyd = start(&to(&upstream, "h2c #true"), &[]);

    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[]).await;
        let sent = frame(HEADERS, END_STREAM | END_HEADERS, 1, GET);
        client.send_raw(&sent).await.unwrap();
        tokio::task::block_in_place(|| upstream.wait_for_requests(1));
        let reset = frame(RST_STREAM, 0, 1, &CANCEL.to_be_bytes());
        client.send_raw(&reset).await.unwrap();
        let mut other = Http2::prior_knowledge(proxyd.address()).await;
        drop(other.send(crate::support::get("/")).await);
    });
    upstream.wait_for_ends(1);
    let record = proxyd.stdout().find(0, |record| record.has("status"));
    assert_eq!(record.text("reason"), "client_aborted");
    proxyd.terminate();
    proxyd.wait();
    let error_message = proxyd.stdout().records();
    assert!(
        !error_message.iter().any(|record| record.has("http_status")),
        "{error_message:?}"
    );
}
