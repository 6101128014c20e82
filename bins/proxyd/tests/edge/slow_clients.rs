//! Clients that make minimal progress.

use crate::support::{
    Authority, CANCEL, DATA, END_HEADERS, END_STREAM, Frames, GET, HEADERS, Http2, Http2Upstream,
    INITIAL_WINDOW, POST, RST_STREAM, TlsClient, WINDOW_UPDATE, ask, block_on, frame, over_tls,
    start, to,
};
use proxy_testkit::{Upstream, ok};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// Interval between two bytes: much less than the idle timeout.
const BYTE_INTERVAL: Duration = Duration::from_millis(50);

fn never_answering() -> Upstream {
    Upstream::start(|served| {
        served.head();
        served.end();
    })
}

#[test]
fn a_stream_with_a_trickling_client_is_reset() {
    let upstream = Upstream::answering(ok(vec![b'x'; 200_000]));
    let proxyd = start(
        &to(&upstream, "h2c #true; timeouts { write-idle-ms 600 }"),
        &[],
    );

    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[(INITIAL_WINDOW, 10)]).await;
        let get = frame(HEADERS, END_STREAM | END_HEADERS, 1, GET);
        client.send_raw(&get).await.unwrap();
        // Each byte is read long before 600 ms without one.
        let reset = loop {
            let Ok(frame) = timeout(BYTE_INTERVAL, client.next()).await else {
                let one = [0, 0, 0, 1];
                client.send(WINDOW_UPDATE, 0, 1, &one).await;
                continue;
            };
            let frame = frame.unwrap();
            if frame.kind == RST_STREAM {
                break frame;
            }
        };
        assert_eq!((reset.stream, reset.code()), (1, CANCEL));
    });
    let record = proxyd.stdout().find(0, |record| record.has("status"));
    assert_eq!(record.text("reason"), "client_write_timeout");
}

#[test]
fn a_body_that_drips_by_http2_is_answered_408() {
    let upstream = never_answering();
    let proxyd = start(
        &to(&upstream, "h2c #true; timeouts { body-idle-ms 600 }"),
        &[],
    );

    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[]).await;
        client.send(HEADERS, END_HEADERS, 1, POST).await;
        let head = loop {
            let Ok(frame) = timeout(BYTE_INTERVAL, client.next()).await else {
                client.send(DATA, 0, 1, b"x").await;
                continue;
            };
            let frame = frame.unwrap();
            if frame.kind == HEADERS {
                break frame;
            }
        };
        assert_eq!(head.stream, 1);
    });
    let record = proxyd.stdout().find(0, |record| record.has("status"));
    assert_eq!(record.text("reason"), "request_body_timeout");
    assert_eq!(record.number("status"), Some(408.0));
}

#[test]
fn a_body_that_drips_over_tls_is_answered_408() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::start(|served| {
        while let Some(request) = served.head() {
            if request.method == "POST" {
                served.end();
                return;
            }
            served.send(ok("ok"));
        }
    });
    let listener = over_tls("") + "; timeouts { body-idle-ms 2500 }";
    let proxyd = start(&to(&upstream, &listener), &[("site", &site)]);

    block_on(async {
        let client = TlsClient::trusting(&authority);
        let mut client = client.connect(proxyd.address(), "a.test").await;
        // Behind the rest of the handshake.
        assert_eq!(client.get("a.test", "/").await.0, 200);
        let head = b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9999\r\n\r\n";
        client.stream.write_all(head).await.unwrap();
        let mut drops = 0;
        while timeout(BYTE_INTERVAL, client.stream.get_ref().0.readable())
            .await
            .is_err()
        {
            client.stream.write_all(b"x").await.unwrap();
            client.stream.flush().await.unwrap();
            drops += 1;
        }
        assert!(5 < drops, "only {drops}");
        let (head, _) = client.response().await;
        assert!(head.starts_with("http/1.1 408 "), "{head}");
    });
}

#[test]
fn a_grpc_call_that_only_sends_heartbeats_continues() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let (body, _) = request.read().await.unwrap();
        request.reply(body);
    });
    let address = upstream.address;
    let proxyd = start(
        &format!(
            r#"
            listeners {{
                listener "main" {{
                    address "127.0.0.1:0"; h2c #true
                    timeouts {{ body-idle-ms 2500 }}
                }}
            }}
            routes {{ route "all" {{ upstream "u" }} }}
            upstreams {{ upstream "u" {{ target "{address}"; protocol "h2" }} }}
            system {{ worker-threads 1 }}
            "#
        ),
        &[],
    );

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let mut request = ask("POST", "/");
        let grpc = "application/grpc".parse().unwrap();
        request.headers_mut().insert("content-type", grpc);
        let (mut response, mut stream) = http.begin(request).await;
        // More than twice the idle timeout.
        for _ in 0..110 {
            assert!(timeout(BYTE_INTERVAL, &mut response).await.is_err());
            stream.send_data("x".into(), false).unwrap();
        }
        stream.send_data("x".into(), true).unwrap();
        assert_eq!(response.await.unwrap().status(), 200);
    });
}

#[test]
fn a_client_that_reads_slowly_by_http2_does_not_outlast_the_route_s_total() {
    let upstream = Upstream::answering(ok(vec![b'x'; 2_000_000]));
    let address = upstream.address();
    let proxyd = start(
        &format!(
            r#"
            listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
            routes {{ route "all" {{ upstream "u"; timeouts {{ request-ms 1000 }} }} }}
            upstreams {{ upstream "u" {{ target "{address}" }} }}
            system {{ worker-threads 1 }}
            "#
        ),
        &[],
    );

    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[(INITIAL_WINDOW, 2_000)]).await;
        let get = frame(HEADERS, END_STREAM | END_HEADERS, 1, GET);
        client.send_raw(&get).await.unwrap();
        // 2 kB per 50 ms: much more than the minimum data rate.
        let reset = loop {
            let Ok(frame) = timeout(BYTE_INTERVAL, client.next()).await else {
                let more = 2_000_u32.to_be_bytes();
                client.send(WINDOW_UPDATE, 0, 1, &more).await;
                continue;
            };
            let frame = frame.unwrap();
            if frame.kind == RST_STREAM {
                break frame;
            }
        };
        assert_eq!((reset.stream, reset.code()), (1, CANCEL));
    });
    let record = proxyd.stdout().find(0, |record| record.has("status"));
    assert_eq!(record.text("reason"), "request_timeout");
    let took = record.number("duration_ms").unwrap();
    assert!(took < 15_000.0, "{took}");
}
