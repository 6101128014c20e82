//! WebSocket through an HTTP/2 stream. [RFC 8441]

use crate::support::{Answer, Http2, ask, block_on, start, to};
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use h2::ext::Protocol;
use h2::{RecvStream, SendStream};
use http::Request;
use proxy_testkit::{Upstream, ok};
use std::net::SocketAddr;

/// A connection on which the server has announced that it takes tunnels.
async fn connected(address: SocketAddr) -> Http2 {
    let http = Http2::prior_knowledge(address).await;
    while !http.send.is_extended_connect_protocol_enabled() {
        tokio::task::yield_now().await;
    }
    http
}

fn connect(protocol: &'static str) -> Request<()> {
    let mut request = ask("CONNECT", "/chat");
    request
        .extensions_mut()
        .insert(Protocol::from_static(protocol));
    request
}

/// Accepts every upgrade with the correct reply to its key, then returns every byte. Sends a
/// meaningless length, as some servers do.
fn websocket() -> Upstream {
    Upstream::start(|served| {
        let Some(request) = served.head() else { return };
        let key = request.fields.get("sec-websocket-key").unwrap().to_owned();
        let accept = accept(&key);
        served.send(format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: chat\r\n\
             Content-Length: 0\r\n\r\n"
        ));
        while let Ok(bytes) = served.some() {
            served.send(bytes);
        }
        served.end();
    })
}

/// Accepts upgrades and echoes, and answers other requests with a page.
fn websocket_and_page() -> Upstream {
    Upstream::start(|served| {
        while let Some(request) = served.request() {
            let Some(key) = request.fields.get("sec-websocket-key") else {
                served.send(ok("page"));
                continue;
            };
            let accept = accept(key);
            served.send(format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Accept: {accept}\r\n\r\n"
            ));
            while let Ok(bytes) = served.some() {
                served.send(bytes);
            }
            served.end();
            return;
        }
    })
}

fn accept(key: &str) -> String {
    let text = [key, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"].concat();
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
}

#[test]
fn a_websocket_is_tunnelled_through_a_stream() {
    let upstream = websocket();
    let proxyd = start(&to(&upstream, "h2c #true"), &[]);

    block_on(async {
        let mut http = connected(proxyd.address()).await;
        let (response, mut up) = http.begin(connect("websocket")).await;
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
        for name in [
            "upgrade",
            "connection",
            "content-length",
            "sec-websocket-accept",
        ] {
            assert!(!response.headers().contains_key(name), "{name}");
        }
        let id = response.headers()["x-correlation-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let mut down = response.into_body();
        let mut echoed = Vec::new();
        for round in 0..200_u8 {
            let piece = vec![round; 5_000];
            crate::support::send_some(&mut up, &piece).await;
            while echoed.len() < piece.len() {
                let data = down.data().await.unwrap().unwrap();
                down.flow_control().release_capacity(data.len()).unwrap();
                echoed.extend_from_slice(&data);
            }
            assert!(echoed == piece);
            echoed.clear();
        }
        up.send_data(Bytes::new(), true).unwrap();
        while let Some(rest) = down.data().await {
            assert!(rest.unwrap().is_empty());
        }
        let record = proxyd.access_record(&id);
        assert_eq!(record.number("status"), Some(200.0));
        assert_eq!(record.number("bytes_in"), Some(1_000_000.0));
    });
    let seen = upstream.last_request();
    assert_eq!(
        (seen.method.as_str(), seen.target.as_str()),
        ("GET", "/chat")
    );
    assert_eq!(seen.fields.get("upgrade"), Some("websocket"));
    assert_eq!(seen.fields.get("host"), Some("a.test"));
}

#[test]
fn an_upstream_that_does_not_switch_opens_no_tunnel() {
    let upstream = Upstream::start(|served| {
        for answer in [
            &ok("hello")[..],
            b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n",
        ] {
            served.request();
            served.send(answer);
        }
        served.request();
    });
    let proxyd = start(&to(&upstream, "h2c #true"), &[]);

    block_on(async {
        let mut http = connected(proxyd.address()).await;
        let answer = http.ask(connect("websocket")).await;
        assert_eq!(answer.status, 502);
        let id = answer.header("x-correlation-id").unwrap();
        assert_eq!(proxyd.error_record(id).text("reason"), "upgrade_declined");
    });
}

#[test]
fn a_route_without_a_target_opens_no_tunnel() {
    let kdl = r#"
        listeners { listener "main" { address "127.0.0.1:0"; h2c #true } }
        routes { route "all" { respond 200 "hello" } }
        "#;
    let proxyd = start(kdl, &[]);

    block_on(async {
        let mut http = connected(proxyd.address()).await;
        let answer = http.ask(connect("websocket")).await;
        assert_eq!(answer.status, 502);
        let id = answer.header("x-correlation-id").unwrap();
        assert_eq!(proxyd.error_record(id).text("reason"), "upgrade_declined");
        assert_eq!(http.ask(ask("GET", "/")).await.status, 200);
    });
}

#[test]
fn tunnels_are_neither_stored_nor_taken_from_the_store_nor_copied() {
    let (upstream, copies) = (websocket_and_page(), Upstream::saying("copy"));
    let kdl = format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
        routes {{ route "all" {{
            upstream "u"
            cache {{ ttl-secs 60 }}
            shadow {{ upstream "s" }}
        }} }}
        upstreams {{
            upstream "u" {{ target "{}" }}
            upstream "s" {{ target "{}" }}
        }}
        system {{ worker-threads 1 }}
        "#,
        upstream.address(),
        copies.address()
    );
    let proxyd = start(&kdl, &[]);

    block_on(async {
        let mut http = connected(proxyd.address()).await;
        let (status, _, first) = open(&mut http).await;
        assert_eq!(status, 200);
        let page = http.ask(ask("GET", "/chat")).await;
        assert_eq!((page.status.as_u16(), page.text()), (200, "page"));
        let (status, _, (mut up, mut down)) = open(&mut http).await;
        assert_eq!(status, 200);
        crate::support::send_some(&mut up, b"hello").await;
        assert_eq!(down.data().await.unwrap().unwrap(), "hello");
        drop(first);
    });
    assert_eq!(copies.wait_for_requests(1).len(), 1, "of the page");
}

#[test]
fn an_answer_to_another_key_opens_no_tunnel() {
    let upstream = Upstream::websocket();
    let proxyd = start(&to(&upstream, "h2c #true"), &[]);

    block_on(async {
        let mut http = connected(proxyd.address()).await;
        let (response, _up) = http.begin(connect("websocket")).await;
        let answer = Answer::read(response.await.unwrap()).await.unwrap();
        assert_eq!(answer.status, 502);
    });
}

#[test]
fn other_tunnels_are_not_served() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, "h2c #true"), &[]);

    block_on(async {
        let mut http = connected(proxyd.address()).await;
        assert_eq!(http.ask(connect("connect-udp")).await.status, 405);
        let mut plain = ask("CONNECT", "");
        *plain.uri_mut() = "a.test:443".parse().unwrap();
        assert_eq!(http.ask(plain).await.status, 405);
    });
    assert_eq!(upstream.requests().len(), 0);
}

#[test]
fn a_tunnel_with_a_length_does_not_leave_its_upstream_waiting_for_a_body() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, "h2c #true"), &[]);

    block_on(async {
        let mut http = connected(proxyd.address()).await;
        let mut request = connect("websocket");
        let length = http::HeaderValue::from_static("5");
        request.headers_mut().insert("content-length", length);
        let (response, _up) = http.begin(request).await;
        let answer = Answer::read(response.await.unwrap()).await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), &*answer.error_code()),
            (400, "PARSE")
        );
    });
    assert_eq!(upstream.requests().len(), 0);
}

/// Opens a tunnel; returns the status, the ID of the request, and both halves.
async fn open(http: &mut Http2) -> (u16, String, (SendStream<Bytes>, RecvStream)) {
    let (response, up) = http.begin(connect("websocket")).await;
    let response = response.await.unwrap();
    let id = response.headers()["x-correlation-id"].to_str().unwrap();
    let (status, id) = (response.status().as_u16(), id.to_owned());
    (status, id, (up, response.into_body()))
}

#[test]
fn a_tunnel_counts_as_a_connection_of_its_client() {
    for (limit, reason) in [
        ("max-connections-per-client 3", "client_connection_limit"),
        ("max-total-connections 3", "connection_limit"),
    ] {
        let upstream = websocket();
        let kdl = to(&upstream, "h2c #true");
        let proxyd = start(&format!("{kdl}\nlimits {{ {limit} }}"), &[]);

        block_on(async {
            let mut http = Http2::prior_knowledge(proxyd.address()).await;
            while !http.send.is_extended_connect_protocol_enabled() {
                tokio::task::yield_now().await;
            }
            // The connection itself is the third.
            let (first, _, tunnel) = open(&mut http).await;
            let (second, _, _other) = open(&mut http).await;
            let (third, id, _refused) = open(&mut http).await;

            assert_eq!((first, second, third), (200, 200, 503), "{limit}");
            assert_eq!(proxyd.access_record(&id).text("reason"), reason);
            assert_eq!(upstream.connections(), 2);
            // A tunnel that ends makes room for another.
            drop(tunnel);
            while open(&mut http).await.0 != 200 {}
        });
    }
}
