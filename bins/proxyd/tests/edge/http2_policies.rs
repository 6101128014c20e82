//! Policies of routes with HTTP/2 on both sides: retries by status, compression, copies, and the race
//! between addresses of a name.

use crate::support::{Answer, Http2, Http2Upstream, ask, block_on, get, send_all, start};
use http::{HeaderMap, Response};
use proxy_coding::{Decoder, DecodingLimits};
use proxy_testkit::{DnsServer, SilentListener};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A route with these policies, to targets of the upstream `u` and of `shadow`.
fn kdl(targets: &[SocketAddr], policies: &str, shadow: SocketAddr) -> String {
    let targets: Vec<_> = targets
        .iter()
        .map(|it| format!("target \"{it}\""))
        .collect();
    let targets = targets.join("; ");
    format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
        routes {{ route "all" {{ upstream "u"; policies {{ {policies} }} }} }}
        upstreams {{
            upstream "u" {{ {targets}; protocol "h2" }}
            upstream "shadow" {{ target "{shadow}"; protocol "h2" }}
        }}
        system {{ worker-threads 1 }}
        "#
    )
}

fn saying(text: &'static str) -> Http2Upstream {
    Http2Upstream::start(move |request| async move { request.reply(text) })
}

#[test]
fn a_request_is_sent_to_another_target_after_a_status() {
    let failing = Http2Upstream::start(|mut request| async move {
        let head = Response::builder().status(503).body(()).unwrap();
        drop(request.respond.send_response(head, true));
    });
    let well = saying("well");
    let targets = [failing.address, well.address];
    let policy = "retry { on \"503\"; budget-percent 100 }";
    let proxyd = start(&kdl(&targets, policy, well.address), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        for _ in 0..4 {
            let mut request = get("/a?b=c");
            let fields = request.headers_mut();
            fields.insert("x-own", "1".parse().unwrap());
            let answer = http.ask(request).await;
            assert_eq!((answer.status.as_u16(), answer.text()), (200, "well"));
        }
        let (first, second) = (failing.requests.wait_for(1), well.requests.wait_for(1));
        let (first, second) = (&first[0], &second[0]);
        assert_eq!(first.uri, second.uri);
        assert_eq!(first.headers["x-own"], "1");
        assert_eq!(first.headers, second.headers);
        // A request that may have had an effect is not repeated.
        let mut statuses = Vec::new();
        for _ in 0..2 {
            statuses.push(http.ask(ask("POST", "/")).await.status.as_u16());
        }
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 503]);
    });
}

#[test]
fn a_response_over_http2_is_compressed_with_its_trailers_kept() {
    let text: &'static str = "some words and more words, ".repeat(2_000).leak();
    let upstream = Http2Upstream::start(move |request| async move {
        let fields = [("content-type", "text/plain")];
        request.reply_with(&fields, text, &[("x-sum", "7")]);
    });
    let address = upstream.address;
    let proxyd = start(&kdl(&[address], "compression", address), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        for coding in ["zstd", "br", "gzip"] {
            let mut request = get("/");
            let fields = request.headers_mut();
            fields.insert("accept-encoding", coding.parse().unwrap());

            let answer = http.ask(request).await;

            assert_eq!(answer.header("content-encoding"), Some(coding));
            assert_eq!(answer.header("vary"), Some("Accept-Encoding"));
            assert_eq!(answer.header("content-length"), None);
            assert!(answer.body.len() < text.len() / 4, "{coding}");
            assert_eq!(decoded(&answer), text.as_bytes());
            assert_eq!(answer.trailers["x-sum"], "7");
        }
        let plain = http.get("/").await;
        assert_eq!(plain.header("content-encoding"), None);
        assert_eq!(plain.body, text.as_bytes());
    });
}

fn decoded(answer: &Answer) -> Vec<u8> {
    let limits = DecodingLimits {
        max_ratio: 10_000.0,
        max_bytes: 1 << 30,
    };
    let mut headers = HeaderMap::new();
    let coding = answer.headers["content-encoding"].clone();
    headers.insert("content-encoding", coding);
    let mut decoder = Decoder::from_headers(&headers, limits).unwrap().unwrap();
    let mut text = Vec::new();
    decoder
        .push(&answer.body, |piece| text.extend_from_slice(piece))
        .unwrap();
    decoder
        .finish(|piece| text.extend_from_slice(piece))
        .unwrap();
    text
}

#[test]
fn a_shadow_over_http2_gets_a_copy_with_the_body() {
    let echo = || {
        Http2Upstream::start(|mut request| async move {
            let Some((body, _)) = request.read().await else {
                return;
            };
            request.reply(body);
        })
    };
    let (upstream, shadow) = (echo(), echo());
    let policy = "shadow { upstream \"shadow\" }";
    let proxyd = start(&kdl(&[upstream.address], policy, shadow.address), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let (answer, mut stream) = http.begin(ask("POST", "/a?b=c")).await;
        send_all(&mut stream, b"order").await.unwrap();
        let answer = Answer::read(answer.await.unwrap()).await.unwrap();
        assert_eq!(answer.text(), "order");

        let copy = shadow.requests.wait_for(1).remove(0);
        let original = upstream.requests.wait_for(1).remove(0);
        assert_eq!(copy.method, "POST");
        assert_eq!(copy.uri.path_and_query().unwrap(), "/a?b=c");
        assert_eq!(copy.uri.host(), Some("a.test-shadow"));
        let id = original.headers["x-correlation-id"].to_str().unwrap();
        assert_eq!(
            copy.headers["x-correlation-id"]
                .to_str()
                .unwrap()
                .trim_end_matches("-shadow"),
            id
        );
        assert_eq!(http.get("/").await.status, 200);
    });
}

#[test]
fn a_silent_address_of_a_name_does_not_keep_http2_requests_waiting() {
    let ip = |number| IpAddr::V4(Ipv4Addr::new(127, 0, 0, number));
    let upstream = saying("answered");
    let port = upstream.address.port();
    let Ok(_silent) = SilentListener::start_at(ip(2), port) else {
        panic!("another program has {port}");
    };
    let server = DnsServer::start();
    // Round robin: either address is the first one of some request.
    server.set_addresses("app.test", &[ip(1), ip(2)]);
    let name_server = server.address();
    let kdl = format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
        routes {{ route "all" {{ upstream "u" }} }}
        upstreams {{
            upstream "u" {{
                target "app.test:{port}"
                protocol "h2"
                timeouts {{ connect-secs 60 }}
                connection-pool {{ max-idle 0 }}
            }}
        }}
        system {{ worker-threads 1; dns {{ name-servers "{name_server}" }} }}
        "#
    );
    let proxyd = start(&kdl, &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        for _ in 0..4 {
            // The time of connecting is longer than the deadline of tests.
            assert_eq!(http.get("/").await.text(), "answered");
        }
    });
}
