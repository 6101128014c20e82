//! HTTP/2 towards targets.

use crate::support::{
    Answer, Authority, BINARY, Http2, Http2Upstream, UpstreamOptions, ask, block_on, get, plain,
    send_all, server_config, start,
};
use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, Response};
use proxy_testkit::{Gate, Launch, RawClient, Upstream, get as get1};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// One route to targets over HTTP/2, from a listener with both versions.
fn to(targets: &[SocketAddr], more: &str) -> String {
    let targets: Vec<_> = targets
        .iter()
        .map(|it| format!("target \"{it}\""))
        .collect();
    let targets = targets.join("; ");
    format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
        routes {{ route "all" {{ upstream "u" }} }}
        upstreams {{ upstream "u" {{ targets {{ {targets} }}; protocol "h2"; {more} }} }}
        system {{ worker-threads 1 }}
        "#
    )
}

#[test]
fn requests_are_sent_by_the_protocol_of_the_upstream() {
    let upstream = Http2Upstream::start(|request| async { request.reply("hello") });
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    let mut client = proxyd.connect();
    for _ in 0..3 {
        let response = client.ask(get1(
            "/a?b=c",
            &[("Connection", "keep-alive"), ("X-A", "1")],
        ));
        assert_eq!((response.status, response.text().as_str()), (200, "hello"));
    }
    let seen = upstream.requests.wait_for(3).pop().unwrap();
    assert_eq!(seen.uri, "http://a.test/a?b=c");
    for (name, value) in [("x-a", "1"), ("x-forwarded-host", "a.test")] {
        assert_eq!(seen.headers[name], value);
    }
    for name in ["host", "connection", "te", "transfer-encoding"] {
        assert!(!seen.headers.contains_key(name), "{name}");
    }
    assert_eq!(upstream.connections.len(), 1);
}

#[test]
fn an_upstream_over_tls_must_agree_to_http2() {
    let root = Authority::new("root");
    let identity = root.issue(&["up.test"]);
    let tls = r#"tls { sni "up.test"; ca-file "root.pem" }"#;
    for (protocols, status) in [(&["h2"][..], 200), (&["http/1.1"], 502), (&[], 502)] {
        let options = UpstreamOptions {
            tls: Some(server_config(&identity, None, protocols)),
            ..UpstreamOptions::default()
        };
        let upstream =
            Http2Upstream::with_options(options, |request| async { request.reply("hello") });
        let launch = Launch::new(BINARY, &to(&[upstream.address], tls));
        root.write(launch.folder(), "root.pem");
        let proxyd = launch.start();
        let response = proxyd.connect().ask(get1("/", &[]));
        assert_eq!(response.status, status, "{protocols:?}");
        if status == 502 {
            let record = proxyd.error_record(&response.correlation_id());
            assert_eq!(record.text("reason"), "tls_handshake_failed");
        } else {
            assert_eq!(
                upstream.requests.wait_for(1)[0].uri.scheme_str(),
                Some("https")
            );
        }
    }
}

#[test]
fn a_target_without_http2_is_a_bad_gateway() {
    let upstream = Upstream::start(|served| {
        if served.exactly(24).is_ok() {
            served.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            served.end();
        }
    });
    let proxyd = start(&to(&[upstream.address()], ""), &[]);

    let response = proxyd.connect().ask(get1("/", &[]));
    assert_eq!(response.status, 502);
    let record = proxyd.error_record(&response.correlation_id());
    assert_eq!(record.text("reason"), "upstream_http2_error");
}

/// An upstream that answers with a permit for each response.
fn waiting(options: UpstreamOptions) -> (Http2Upstream, Arc<Semaphore>) {
    let permits = Arc::new(Semaphore::new(0));
    let upstream = {
        let permits = Arc::clone(&permits);
        Http2Upstream::with_options(options, move |request| {
            let permits = Arc::clone(&permits);
            async move {
                permits.acquire().await.unwrap().forget();
                let number = request.connection.to_string();
                request.reply(number);
            }
        })
    };
    (upstream, permits)
}

#[test]
fn requests_share_a_connection_as_long_as_it_has_room() {
    let options = UpstreamOptions {
        max_streams: Some(2),
        ..UpstreamOptions::default()
    };
    let (upstream, permits) = waiting(options);
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        // From the first response on, the target's maximum is known.
        permits.add_permits(1);
        assert_eq!(http.get("/").await.text(), "0");
        let mut waiting = Vec::new();
        for _ in 0..6 {
            waiting.push(http.send(get("/")).await);
        }
        upstream.requests.wait_for(7);
        assert_eq!(upstream.connections.len(), 3);
        permits.add_permits(6);
        let mut by = Vec::new();
        for response in waiting {
            let answer = Answer::read(response.await.unwrap()).await.unwrap();
            by.push(answer.text().to_owned());
        }
        by.sort_unstable();
        assert_eq!(by, ["0", "0", "1", "1", "2", "2"]);
    });
}

#[test]
fn simultaneous_requests_wait_for_one_connection() {
    let (upstream, permits) = waiting(UpstreamOptions::default());
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let mut waiting = Vec::new();
        for _ in 0..50 {
            waiting.push(http.send(get("/")).await);
        }
        upstream.requests.wait_for(50);
        permits.add_permits(50);
        for response in waiting {
            assert_eq!(response.await.unwrap().status(), 200);
        }
        assert_eq!(upstream.connections.len(), 1);
    });
}

#[test]
fn bodies_and_trailers_go_both_ways() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let (body, trailers) = request.read().await.unwrap();
        assert_eq!(trailers["x-count"], "7");
        assert_eq!(request.head.headers["te"], "trailers");
        request.reply_with(&[("x-a", "b")], body, &[("x-sum", "9")]);
    });
    let proxyd = start(&to(&[upstream.address], ""), &[]);
    let body: Vec<u8> = (0..3_000_000_u32)
        .map(|byte| byte.to_le_bytes()[0])
        .collect();

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let mut request = ask("POST", "/");
        request
            .headers_mut()
            .insert("te", "trailers".parse().unwrap());
        let (response, mut stream) = http.begin(request).await;
        let sending = tokio::spawn({
            let body = body.clone();
            async move {
                crate::support::send_some(&mut stream, &body).await;
                let mut trailers = HeaderMap::new();
                trailers.insert("x-count", "7".parse().unwrap());
                stream.send_trailers(trailers).unwrap();
            }
        });
        let answer = Answer::read(response.await.unwrap()).await.unwrap();
        sending.await.unwrap();
        assert!(answer.body == body);
        assert_eq!(answer.headers["x-a"], "b");
        assert_eq!(answer.trailers["x-sum"], "9");
    });
}

#[test]
fn a_body_by_http1_reaches_a_target_by_http2() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let (body, _) = request.read().await.unwrap();
        request.reply(body);
    });
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    let mut client = proxyd.connect();
    for head in [
        "Content-Length: 5\r\n\r\nhello",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        let response = client.ask(format!("POST / HTTP/1.1\r\nHost: a.test\r\n{head}"));
        assert_eq!((response.status, response.text().as_str()), (200, "hello"));
    }
    let seen = upstream.requests.entries();
    assert_eq!(seen[0].headers["content-length"], "5");
    assert!(!seen[1].headers.contains_key("content-length"));
}

#[test]
fn both_bodies_stream_at_the_same_time() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let mut send = request
            .respond
            .send_response(Response::new(()), false)
            .unwrap();
        while let Some(Ok(data)) = request.body.data().await {
            request
                .body
                .flow_control()
                .release_capacity(data.len())
                .unwrap();
            send.send_data(data, false).unwrap();
        }
        send.send_data(Bytes::new(), true).unwrap();
    });
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let (response, mut up) = http.begin(ask("POST", "/")).await;
        let mut down = response.await.unwrap().into_body();
        for round in 0..100_u8 {
            up.send_data(Bytes::from(vec![round; 3]), false).unwrap();
            let echoed = down.data().await.unwrap().unwrap();
            down.flow_control().release_capacity(echoed.len()).unwrap();
            assert_eq!(echoed, vec![round; 3]);
        }
        up.send_data(Bytes::new(), true).unwrap();
        while let Some(rest) = down.data().await {
            assert!(rest.unwrap().is_empty());
        }
    });
}

#[test]
fn a_client_that_only_sends_does_not_stop_a_target_that_only_sends() {
    let size = 2_000_000;
    let upstream = Http2Upstream::start(move |mut request| async move {
        let mut send = request
            .respond
            .send_response(Response::new(()), false)
            .unwrap();
        let down = tokio::spawn(async move { send_all(&mut send, &vec![1; size]).await });
        assert_eq!(request.read().await.unwrap().0.len(), size);
        down.await.unwrap().unwrap();
    });
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let (response, mut up) = http.begin(ask("POST", "/")).await;
        let response = response.await.unwrap();
        // The response is not read before everything is sent.
        send_all(&mut up, &vec![2; size]).await.unwrap();
        let answer = Answer::read(response).await.unwrap();
        assert_eq!(answer.body.len(), size);
    });
}

#[test]
fn a_request_that_a_target_refuses_unseen_is_sent_to_another() {
    let refusing = Http2Upstream::start(|mut request| async move {
        request.respond.send_reset(Reason::REFUSED_STREAM);
    });
    let willing = Http2Upstream::start(|request| async { request.reply("hello") });
    let proxyd = start(&to(&[refusing.address, willing.address], ""), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        for _ in 0..4 {
            // A POST, too: the target has not processed it.
            let answer = http.ask(ask("POST", "/")).await;
            assert_eq!((answer.status.as_u16(), answer.text()), (200, "hello"));
        }
        assert!(!refusing.requests.is_empty());
    });
    // Without another target, the client gets this error.
    let alone = start(&to(&[refusing.address], ""), &[]);
    let response = alone.connect().ask(get1("/", &[]));
    assert_eq!(response.status, 502);
    let record = alone.error_record(&response.correlation_id());
    assert_eq!(record.text("reason"), "upstream_refused_stream");
}

#[test]
fn a_get_whose_stream_a_target_resets_without_a_response_is_sent_again() {
    for code in [Reason::CANCEL, Reason::INTERNAL_ERROR] {
        let resetting = Http2Upstream::start(move |mut request| async move {
            request.respond.send_reset(code);
        });
        let willing = Http2Upstream::start(|request| async { request.reply("hello") });
        let proxyd = start(&to(&[resetting.address, willing.address], ""), &[]);

        for _ in 0..4 {
            let response = proxyd.connect().ask(get1("/", &[]));
            assert_eq!((response.status, response.text().as_str()), (200, "hello"));
        }
        assert!(!resetting.requests.is_empty());
        // It may have been processed: other methods are not sent again.
        let alone = start(&to(&[resetting.address, willing.address], ""), &[]);
        let mut client = alone.connect();
        let post = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n";
        let statuses = [client.ask(post).status, client.ask(post).status];
        assert!(statuses.contains(&502), "{statuses:?}");
    }
}

#[test]
fn a_connection_that_is_to_end_is_finished_and_replaced() {
    let (upstream, permits) = waiting(UpstreamOptions::default());
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let old = http.send(get("/old")).await;
        upstream.requests.wait_for(1);
        upstream.send_goaway();
        // Until the proxy has received it, requests still use the old connection.
        let mut waiting = Vec::new();
        while upstream.connections.len() < 2 {
            waiting.push(http.send(get("/new")).await);
            upstream.requests.wait_for(1 + waiting.len());
        }
        permits.add_permits(1 + waiting.len());
        let answer = Answer::read(old.await.unwrap()).await.unwrap();
        assert_eq!(answer.text(), "0");
        for response in waiting {
            assert_eq!(response.await.unwrap().status(), 200);
        }
    });
}

#[test]
fn a_response_that_a_target_resets_is_not_complete_for_the_client() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let mut send = request
            .respond
            .send_response(Response::new(()), false)
            .unwrap();
        send.send_data(Bytes::from_static(b"some"), false).unwrap();
        // Only after the client has got the beginning.
        drop(request.body.data().await);
        send.send_reset(Reason::INTERNAL_ERROR);
    });
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let (response, mut up) = http.begin(ask("POST", "/")).await;
        let response = response.await.unwrap();
        let id = response.headers()["x-correlation-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let mut body = response.into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), "some");
        up.send_data(Bytes::new(), true).unwrap();
        let error = body.data().await.unwrap().unwrap_err();
        assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
        assert_eq!(proxyd.access_record(&id).text("reason"), "upstream_reset");
    });
}

#[test]
fn a_client_that_gives_up_gives_up_one_stream_only() {
    let gate = Gate::new();
    let upstream = {
        let gate = gate.clone();
        Http2Upstream::start(move |mut request| {
            let gate = gate.clone();
            async move {
                if request.head.uri.path() != "/wait" {
                    return request.reply("hello");
                }
                let reset = std::future::poll_fn(|cx| request.respond.poll_reset(cx)).await;
                assert_eq!(reset.unwrap(), Reason::CANCEL);
                gate.open();
            }
        })
    };
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    let mut client = RawClient::connect(proxyd.address());
    client.send(get1("/wait", &[]));
    upstream.requests.wait_for(1);
    drop(client);
    gate.wait();
    assert_eq!(proxyd.connect().ask(get1("/", &[])).status, 200);
    assert_eq!(upstream.connections.len(), 1);
}

#[test]
fn a_slow_client_slows_its_own_stream_only() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let size = if request.head.uri.path() == "/large" {
            8 << 20
        } else {
            5
        };
        let mut send = request
            .respond
            .send_response(Response::new(()), false)
            .unwrap();
        drop(send_all(&mut send, &vec![b'x'; size]).await);
    });
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    block_on(async {
        let mut slow = Http2::prior_knowledge(proxyd.address()).await;
        let mut unread = Vec::new();
        for _ in 0..20 {
            unread.push(slow.send(get("/large")).await.await.unwrap());
        }
        let mut quick = Http2::prior_knowledge(proxyd.address()).await;
        for _ in 0..20 {
            assert_eq!(quick.get("/small").await.text(), "xxxxx");
        }
        assert_eq!(upstream.connections.len(), 1);
        // 20 windows and the sockets' buffers, not 20 times 8 MiB.
        assert!(proxyd.peak_rss_bytes() < 64 << 20);
        drop(unread);
    });
}

#[test]
fn a_101_over_http2_is_refused_at_once() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let mut switch = Response::new(());
        *switch.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
        request.respond.send_informational(switch).unwrap();
        // No further response follows.
        std::future::pending::<()>().await;
    });
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    let response = proxyd.connect().ask(get1("/", &[]));
    assert_eq!(response.status, 502);
    let record = proxyd.error_record(&response.correlation_id());
    assert_eq!(record.text("reason"), "unasked_upgrade");
}

#[test]
fn early_hints_are_passed_on() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let mut hint = Response::new(());
        *hint.status_mut() = http::StatusCode::EARLY_HINTS;
        hint.headers_mut().insert("link", "</a>".parse().unwrap());
        request.respond.send_informational(hint).unwrap();
        request.reply("hello");
    });
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    let mut client = proxyd.connect();
    let hint = client.ask(get1("/", &[]));
    assert_eq!((hint.status, hint.fields.get("link")), (103, Some("</a>")));
    assert_eq!(client.response().status, 200);
    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let mut response = http.send(get("/")).await;
        let hint = std::future::poll_fn(|cx| response.poll_informational(cx)).await;
        assert_eq!(hint.unwrap().unwrap().headers()["link"], "</a>");
        assert_eq!(response.await.unwrap().status(), 200);
    });
}

#[test]
fn an_idle_connection_to_a_target_is_closed_in_time() {
    let upstream = Http2Upstream::start(|request| async { request.reply("hello") });
    let pool = "connection-pool { idle-timeout-ms 2000 }";
    let proxyd = start(&to(&[upstream.address], pool), &[]);

    let mut client = proxyd.connect();
    assert_eq!(client.ask(get1("/", &[])).status, 200);
    let before = proxyd.open_files();
    // The proxy logs no closed idle connection: its open files show it.
    block_on(async {
        while proxyd.open_files() >= before {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(client.ask(get1("/", &[])).status, 200);
    assert_eq!(upstream.connections.len(), 2);
}

/// A target that returns every byte of a tunnel.
fn tunnelling() -> Http2Upstream {
    let options = UpstreamOptions {
        tunnels: true,
        ..UpstreamOptions::default()
    };
    Http2Upstream::with_options(options, |mut request| async move {
        if request.head.uri.path() == "/no" {
            let mut refusal = Response::new(());
            *refusal.status_mut() = http::StatusCode::FORBIDDEN;
            let coding = http::HeaderValue::from_static("gzip");
            refusal.headers_mut().insert("content-encoding", coding);
            let mut send = request.respond.send_response(refusal, false).unwrap();
            send.send_data(Bytes::from_static(b"coded"), true).unwrap();
            return;
        }
        let mut send = request
            .respond
            .send_response(Response::new(()), false)
            .unwrap();
        while let Some(Ok(data)) = request.body.data().await {
            request
                .body
                .flow_control()
                .release_capacity(data.len())
                .unwrap();
            send.send_data(data, false).unwrap();
        }
        send.send_data(Bytes::new(), true).unwrap();
    })
}

const UPGRADE: &[(&str, &str)] = &[
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

#[test]
fn an_http1_websocket_is_tunnelled_through_an_http2_stream() {
    let upstream = tunnelling();
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    let mut client = proxyd.connect();
    let response = client.send(get1("/chat", UPGRADE)).head();
    assert_eq!(response.status, 101);
    let accept = response.fields.get("sec-websocket-accept");
    assert_eq!(accept, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    for _ in 0..20 {
        client.send(b"hello");
        assert_eq!(client.exactly(5).unwrap(), b"hello");
    }
    client.finish();
    assert!(client.rest().unwrap().0.is_empty());
    let seen = upstream.requests.wait_for(1).pop().unwrap();
    assert_eq!(
        (seen.method.as_str(), seen.uri.path()),
        ("CONNECT", "/chat")
    );
    assert_eq!(
        seen.extensions.get::<h2::ext::Protocol>().unwrap().as_str(),
        "websocket"
    );
    assert!(!seen.headers.contains_key("sec-websocket-key"));
    // The target's refusal is forwarded without its body.
    let refused = proxyd.connect().ask(get1("/no", UPGRADE));
    assert_eq!((refused.status, refused.text()), (403, String::new()));
    assert!(!refused.fields.has("content-encoding"));
}

#[test]
fn a_websocket_by_http2_continues_by_http2() {
    let upstream = tunnelling();
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    block_on(async {
        let mut http = Http2::over(plain(proxyd.address()).await).await;
        while !http.send.is_extended_connect_protocol_enabled() {
            tokio::task::yield_now().await;
        }
        let mut request = ask("CONNECT", "/chat");
        let protocol = h2::ext::Protocol::from_static("websocket");
        request.extensions_mut().insert(protocol);
        let (response, mut up) = http.begin(request).await;
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        let mut down = response.into_body();
        up.send_data(Bytes::from_static(b"hello"), false).unwrap();
        assert_eq!(down.data().await.unwrap().unwrap(), "hello");
    });
}

#[test]
fn a_target_without_tunnels_opens_none() {
    let upstream = Http2Upstream::start(|request| async { request.reply("hello") });
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    let response = proxyd.connect().ask(get1("/chat", UPGRADE));
    assert_eq!(response.status, 502);
    let record = proxyd.error_record(&response.correlation_id());
    assert_eq!(record.text("reason"), "upgrade_declined");
    // Another protocol is not even requested.
    let other = get1("/", &[("Connection", "Upgrade"), ("Upgrade", "foo")]);
    assert_eq!(proxyd.connect().ask(other).text(), "hello");
}

#[test]
fn an_answer_that_http1_could_not_carry_is_a_bad_gateway() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let mut head = Response::new(());
        let fields: &[(&[u8], &'static str)] = match request.head.uri.path() {
            "/quote" => &[(b"x\"y", "1")],
            "/padded" => &[(b"x", " 1")],
            "/empty-length" => &[(b"content-length", "")],
            "/lengths" => &[(b"content-length", "0"), (b"content-length", "0")],
            _ => &[(b"content-length", "0")],
        };
        for (name, value) in fields {
            let name = http::HeaderName::from_lowercase(name).unwrap();
            let value = http::HeaderValue::from_static(value);
            head.headers_mut().append(name, value);
        }
        request.respond.send_response(head, true).unwrap();
    });
    let proxyd = start(&to(&[upstream.address], ""), &[]);

    for (target, reason) in [
        ("/quote", "bad_response_header"),
        ("/padded", "bad_response_header"),
        ("/empty-length", "response_conflicting_length"),
        ("/lengths", "response_conflicting_length"),
    ] {
        let response = proxyd.connect().ask(get1(target, &[]));
        assert_eq!(response.status, 502, "{target}");
        let record = proxyd.error_record(&response.correlation_id());
        assert_eq!(record.text("reason"), reason);
    }
    assert_eq!(proxyd.connect().ask(get1("/good", &[])).status, 200);
}

#[test]
fn a_get_on_a_fresh_connection_that_closes_silently_is_sent_again() {
    let silent = Upstream::start(|served| {
        // The preface and the first frames, then nothing.
        drop(served.exactly(24));
    });
    let upstream = Http2Upstream::start(|request| async { request.reply("hello") });
    let proxyd = start(&to(&[silent.address(), upstream.address], ""), &[]);

    for _ in 0..4 {
        let response = proxyd.connect().ask(get1("/", &[]));
        assert_eq!((response.status, response.text().as_str()), (200, "hello"));
    }
    assert_eq!(silent.connections(), 2, "each target was tried");
}

#[test]
fn an_http2_connection_that_another_worker_keeps_idle_is_not_an_obstacle() {
    let upstream = Http2Upstream::start(|request| async { request.reply("hello") });
    let settings = "connection-pool { max-connections 1 }; timeouts { connect-secs 5 }";
    let kdl = to(&[upstream.address], settings).replace("worker-threads 1", "worker-threads 2");
    let proxyd = start(&kdl, &[]);

    let statuses: Vec<u16> = (0..30)
        .map(|_| proxyd.connect().ask(get1("/", &[])).status)
        .collect();

    assert_eq!(statuses, [200; 30]);
}
