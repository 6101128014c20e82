//! One client with many stalled streams over HTTP/2, and another client.

use crate::support::{Http2, Http2Upstream, block_on, get, plain, start, to};
use h2::RecvStream;
use http::{HeaderValue, Response};
use proxy_testkit::{Proxyd, Upstream, ok};
use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpSocket;

const CONNECTIONS: usize = 20;
const STREAMS: usize = 100;
/// Places of a worker that one client is left at the default limits.
const CLIENT_SHARE: usize = 945;

/// A connection of the client at `127.0.0.2`.
async fn other_client(to: SocketAddr) -> Http2 {
    let socket = TcpSocket::new_v4().unwrap();
    socket
        .bind((Ipv4Addr::new(127, 0, 0, 2), 0).into())
        .unwrap();
    Http2::over(socket.connect(to).await.unwrap()).await
}

#[test]
fn stalled_streams_of_one_client_leave_places_to_another() {
    let hung = Http2Upstream::start(|request| async move {
        pending::<()>().await;
        drop(request);
    });
    let well =
        Upstream::start(|served| while served.head().is_some() && served.send(ok("well")) {});
    let kdl = format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
        routes {{
            route "well" {{ matches {{ path "/" }}; upstream "well" }}
            route "hung" {{ matches {{ path-prefix "/hung" }}; upstream "hung" }}
        }}
        upstreams {{
            upstream "well" {{ target "{}" }}
            upstream "hung" {{ target "{}"; protocol "h2" }}
        }}
        system {{ worker-threads 1 }}
        "#,
        well.address(),
        hung.address
    );
    let proxyd = start(&kdl, &[]);

    block_on(async {
        let mut stalled = Vec::new();
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut http = Http2::prior_knowledge(proxyd.address()).await;
            for _ in 0..STREAMS {
                stalled.push(http.send(get("/hung")).await);
            }
            connections.push(http);
        }
        hung.requests.wait_for(CLIENT_SHARE);
        for _ in 0..100 {
            let mut http = other_client(proxyd.address()).await;
            assert_eq!(http.get("/").await.text(), "well");
        }
        assert_eq!(hung.requests.len(), CLIENT_SHARE);
        drop((stalled, connections));
    });
}

/// Opens 400 streams for `target` by four connections with windows of `window_bytes`, and waits for the heads.
async fn stall(
    proxyd: &Proxyd,
    target: &str,
    window_bytes: u32,
) -> (Vec<Http2>, Vec<Response<RecvStream>>) {
    let (mut connections, mut responses) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let mut builder = h2::client::Builder::new();
        let mut http = Http2::with(
            plain(proxyd.address()).await,
            builder.initial_window_size(window_bytes),
        )
        .await;
        let mut sent = Vec::new();
        for _ in 0..STREAMS {
            let mut request = get(target);
            let headers = request.headers_mut();
            headers.insert("accept", HeaderValue::from_static("text/html"));
            headers.insert("accept-encoding", HeaderValue::from_static("zstd"));
            sent.push(http.send(request).await);
        }
        for response in sent {
            responses.push(response.await.unwrap());
        }
        connections.push(http);
    }
    (connections, responses)
}

#[test]
fn compressed_streams_that_one_client_does_not_read_hold_few_encoders() {
    let body = "abcdefghij klmnop ".repeat(20_000);
    let upstream = Upstream::start(move |served| {
        while served.head().is_some() {
            served.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ));
        }
    });
    let kdl =
        to(&upstream, "h2c #true").replace("upstream \"u\" }", "upstream \"u\"; compression }");
    let coded = |responses: &[Response<RecvStream>]| {
        let coded = responses.iter().map(Response::headers);
        coded
            .filter(|it| it.contains_key("content-encoding"))
            .count()
    };

    // Without a window there is no encoder at all; a byte is enough for one.
    for (window_bytes, max_growth) in [(0, 100 << 20), (1, 220 << 20)] {
        let proxyd = start(&kdl, &[]);
        block_on(async {
            let before = proxyd.rss_bytes();
            let (connections, responses) = stall(&proxyd, "/", window_bytes).await;

            let count = coded(&responses);
            assert!((1..=64).contains(&count), "{count} of 400 are compressed");
            let mut other = other_client(proxyd.address()).await;
            let mut request = get("/");
            let zstd = HeaderValue::from_static("zstd");
            request.headers_mut().insert("accept-encoding", zstd);
            let answer = other.ask(request).await;
            assert_eq!(answer.header("content-encoding"), Some("zstd"));
            let grown = proxyd.peak_rss_bytes().saturating_sub(before);
            assert!(grown < max_growth, "grew by {grown} bytes");
            drop((connections, responses));
        });
    }
}

#[test]
fn pages_and_texts_that_a_client_does_not_read_are_not_copied() {
    let long = "text ".repeat(40_000);
    let kdl = format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
        routes {{
            route "text" {{ matches {{ path "/text" }}; respond 200 "{long}" }}
            route "page" {{
                matches {{ path "/page" }}
                respond 404
                error-pages {{ page 404 html="<p>{{status}}</p>{long}</body>" }}
            }}
        }}
        system {{ worker-threads 1 }}
        "#
    );
    let proxyd = start(&kdl, &[]);

    block_on(async {
        let before = proxyd.rss_bytes();
        let (texts, pages) = (
            stall(&proxyd, "/text", 0).await,
            stall(&proxyd, "/page", 0).await,
        );

        let grown = proxyd.peak_rss_bytes().saturating_sub(before);
        assert!(grown < 50 << 20, "800 responses grew by {grown} bytes");
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        assert!(http.get("/text").await.text() == long);
        let mut request = get("/page");
        let html = HeaderValue::from_static("text/html");
        request.headers_mut().insert("accept", html);
        let page = http.ask(request).await;
        let (id, text) = (page.header("x-correlation-id").unwrap(), page.text());
        assert!(text.starts_with(&format!("<p>404</p>{long}<p>Request ID: <code>{id}</code>")));
        assert_eq!(
            page.header("content-length"),
            Some(&*text.len().to_string())
        );
        drop((texts, pages));
    });
}
