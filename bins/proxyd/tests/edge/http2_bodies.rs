//! Bodies and trailers over HTTP/2.

use crate::support::{
    Answer, Http2, Http2Upstream, ask, block_on, get, plain, send_all, start, to, to_http2,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use proxy_testkit::{Framing, Gate, Upstream, ok};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const H2C: &str = "h2c #true";

#[test]
fn large_bodies_go_both_ways() {
    let upstream = Upstream::echo();
    let proxyd = start(&to(&upstream, H2C), &[]);
    let body: Vec<u8> = (0..3_000_000_u32)
        .map(|byte| byte.to_le_bytes()[0])
        .collect();

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let (response, mut stream) = http.begin(ask("POST", "/")).await;
        send_all(&mut stream, &body).await.unwrap();
        let answer = Answer::read(response.await.unwrap()).await.unwrap();
        assert!(answer.body == body);
    });
    // No length was announced, so it was chunked.
    let framing = upstream.last_request().framing;
    assert!(matches!(framing, Framing::Chunked(_)), "{framing:?}");
}

#[test]
fn a_body_with_a_length_keeps_it() {
    let upstream = Upstream::echo();
    let proxyd = start(&to(&upstream, H2C), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let mut request = ask("POST", "/");
        request.headers_mut().insert("content-length", 5.into());
        let (response, mut stream) = http.begin(request).await;
        send_all(&mut stream, b"hello").await.unwrap();
        assert_eq!(
            Answer::read(response.await.unwrap()).await.unwrap().text(),
            "hello"
        );
    });
    assert_eq!(
        upstream.last_request().fields.get("content-length"),
        Some("5")
    );
}

#[test]
fn a_body_of_another_length_than_declared_is_not_a_request() {
    let upstream = Upstream::start(|served| {
        // An incomplete request is never completed.
        assert!(served.request().is_none());
    });
    let proxyd = start(&to(&upstream, H2C), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        for body in ["hell", "hello!"] {
            let mut request = ask("POST", "/");
            request.headers_mut().insert("content-length", 5.into());
            let (response, mut stream) = http.begin(request).await;
            stream.send_data(body.into(), true).unwrap();
            assert!(response.await.unwrap_err().is_reset());
        }
    });
}

#[test]
fn a_client_that_does_not_read_holds_its_upstream_back() {
    const SIZE: usize = 64 << 20;
    let upstream = Upstream::start(|served| {
        while served.request().is_some() {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
            served.send(head);
            let piece = vec![7; 1 << 20];
            for _ in 0..SIZE >> 20 {
                served.send(&piece);
            }
        }
    });
    let proxyd = start(&to(&upstream, H2C), &[]);

    block_on(async {
        let mut builder = h2::client::Builder::new();
        // Unread streams do not block the one that is read.
        builder.initial_connection_window_size(8 << 16);
        let io = plain(proxyd.address()).await;
        let mut http = Http2::with(io, &mut builder).await;
        let before = proxyd.rss_bytes();
        let mut unread = Vec::new();
        for _ in 0..8 {
            unread.push(http.send(get("/")).await.await.unwrap());
        }
        // Meanwhile other streams are served.
        assert!(proxyd.rss_bytes() < before + (16 << 20));
        for response in unread {
            let mut left = SIZE;
            let mut body = response.into_body();
            while let Some(data) = body.data().await {
                let data = data.unwrap();
                left -= data.len();
                body.flow_control().release_capacity(data.len()).unwrap();
            }
            assert_eq!(left, 0);
        }
        assert!(proxyd.peak_rss_bytes() < before + (32 << 20));
    });
}

#[test]
fn an_upstream_that_does_not_read_holds_its_client_back() {
    let gate = Gate::new();
    let upstream = {
        let gate = gate.clone();
        Upstream::start(move |served| {
            while let Some(mut request) = served.head() {
                if request.method == "POST" {
                    gate.wait();
                }
                served.body(&mut request);
                served.send(ok(request.body.len().to_string()));
            }
        })
    };
    let kdl = to(&upstream, H2C) + "limits { max-body-size-bytes 100000000 }";
    let proxyd = start(&kdl, &[]);
    let body = vec![7; 32 << 20];

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let before = proxyd.rss_bytes();
        let (response, mut stream) = http.begin(ask("POST", "/")).await;
        let sent = Arc::new(AtomicBool::new(false));
        let sending = {
            let sent = Arc::clone(&sent);
            tokio::spawn(async move {
                send_all(&mut stream, &body).await.unwrap();
                sent.store(true, Ordering::Relaxed);
            })
        };
        // It is not read while many other requests are served.
        let mut other = Http2::prior_knowledge(proxyd.address()).await;
        for _ in 0..50 {
            assert_eq!(other.get("/").await.status, 200);
        }
        assert!(!sent.load(Ordering::Relaxed));
        assert!(proxyd.peak_rss_bytes() < before + (16 << 20));
        gate.open();
        let answer = Answer::read(response.await.unwrap()).await.unwrap();
        assert_eq!(answer.text(), (32 << 20).to_string());
        sending.await.unwrap();
    });
}

#[test]
fn trailers_go_both_ways() {
    let trailing = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n\
        5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n";
    let upstream = Upstream::answering(trailing);
    let proxyd = start(&to(&upstream, H2C), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let mut request = ask("POST", "/");
        let headers = request.headers_mut();
        headers.insert("te", "trailers".parse().unwrap());
        headers.insert("trailer", "x-count".parse().unwrap());
        let (response, mut stream) = http.begin(request).await;
        stream
            .send_data(Bytes::from_static(b"body"), false)
            .unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("x-count", "4".parse().unwrap());
        stream.send_trailers(trailers).unwrap();
        let answer = Answer::read(response.await.unwrap()).await.unwrap();
        assert_eq!(answer.text(), "hello");
        assert_eq!(answer.trailers["x-sum"], "7");
    });
    let seen = upstream.last_request();
    assert_eq!(seen.trailers.get("x-count"), Some("4"));
    assert_eq!(seen.fields.get("te"), Some("trailers"));
}

#[test]
fn trailers_are_held_to_the_limits_of_heads() {
    let upstream = Upstream::saying("hello");
    let limits = "limits { max-header-count 10; max-header-size-bytes 1024 }";
    let kdl = format!("{}\n{limits}", to(&upstream, H2C));
    let proxyd = start(&kdl, &[]);
    let trailers_of = |count: usize, size: usize| {
        let field = |number| {
            let name = format!("x-{number}").parse::<HeaderName>().unwrap();
            (name, "v".repeat(size).parse().unwrap())
        };
        (0..count).map(field).collect::<HeaderMap>()
    };

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        for (trailers, status, limit) in [
            (trailers_of(10, 1), 200, ""),
            (
                trailers_of(11, 1),
                429,
                "header_count - Current value 11 exceeds limit 10",
            ),
            (
                trailers_of(1, 1020),
                429,
                "header_size - Current value 1027 exceeds limit 1024",
            ),
        ] {
            let (response, mut stream) = http.begin(ask("POST", "/")).await;
            stream
                .send_data(Bytes::from_static(b"body"), false)
                .unwrap();
            stream.send_trailers(trailers).unwrap();
            let answer = Answer::read(response.await.unwrap()).await.unwrap();
            assert_eq!(answer.status, status, "{}", answer.text());
            assert!(answer.text().contains(limit), "{}", answer.text());
        }
    });
}

#[test]
fn an_answer_before_the_end_of_the_request_is_delivered() {
    let upstream = Upstream::start(|served| {
        while served.head().is_some() {
            served
                .send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
            served.finish();
            served.end();
        }
    });
    let proxyd = start(&to(&upstream, H2C), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let (response, mut stream) = http.begin(ask("POST", "/")).await;
        stream
            .send_data(Bytes::from_static(b"some"), false)
            .unwrap();
        let answer = Answer::read(response.await.unwrap()).await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.text()), (403, "no"));
        // The rest is not needed, and that is not an error.
        let reset = std::future::poll_fn(|cx| stream.poll_reset(cx)).await;
        assert_eq!(reset.unwrap(), h2::Reason::NO_ERROR);
    });
}

#[test]
fn a_truncated_response_is_not_complete_for_the_client() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
    });
    let proxyd = start(&to(&upstream, H2C), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let response = http.send(get("/")).await.await.unwrap();
        let id = response.headers()["x-correlation-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let error = Answer::read(response).await.unwrap_err();
        assert_eq!(error.reason(), Some(h2::Reason::INTERNAL_ERROR));
        assert_eq!(
            proxyd.access_record(&id).text("reason"),
            "response_truncated"
        );
        // The connection stays open.
        let again = http.send(get("/")).await.await;
        assert_eq!(again.unwrap().status(), 200);
    });
}

#[test]
fn a_stream_with_a_client_that_reads_nothing_is_reset() {
    let upstream = Upstream::start(|served| {
        while let Some(request) = served.request() {
            let size = if request.target == "/large" {
                200_000
            } else {
                5
            };
            served.send(ok(vec![b'x'; size]));
        }
    });
    let proxyd = start(
        &to(&upstream, "h2c #true; timeouts { write-idle-ms 300 }"),
        &[],
    );

    block_on(async {
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(1_000);
        let io = plain(proxyd.address()).await;
        let mut http = Http2::with(io, &mut builder).await;
        let response = http.send(get("/large")).await.await.unwrap();
        let id = response.headers()["x-correlation-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let mut body = response.into_body();
        // The first window of data arrives, and is never acknowledged.
        let mut seen = 0;
        let error = loop {
            match body.data().await.unwrap() {
                Ok(data) => seen += data.len(),
                Err(error) => break error,
            }
        };
        assert_eq!((seen, error.reason()), (1_000, Some(h2::Reason::CANCEL)));
        assert_eq!(
            proxyd.access_record(&id).text("reason"),
            "client_write_timeout"
        );
        // Other streams of the connection continue.
        assert_eq!(http.get("/small").await.status, 200);
    });
}

#[test]
fn a_too_large_body_after_an_early_answer_is_not_an_http2_upstreams_fault() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let head = http::Response::new(());
        let mut send = request.respond.send_response(head, false).unwrap();
        send.send_data("ok".into(), false).unwrap();
        while let Some(Ok(data)) = request.body.data().await {
            request
                .body
                .flow_control()
                .release_capacity(data.len())
                .unwrap();
        }
    });
    let address = upstream.address;
    let proxyd = start(&to_http2(address, "limits { max-body-size-bytes 10 }"), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let (response, mut stream) = http.begin(ask("POST", "/")).await;
        stream.send_data("1234".into(), false).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        let id = response.headers()["x-correlation-id"]
            .to_str()
            .unwrap()
            .to_owned();
        stream.send_data("12345678".into(), false).unwrap();
        Answer::read(response).await.unwrap_err();
        let record = proxyd.access_record(&id);
        assert_eq!(record.text("reason"), "body_size_limit");
        let record = proxyd.limit_record(&id);
        assert_eq!(record.number("limit"), Some(10.0));
    });
}
