//! Effects of reloads and age on open TLS and HTTP/2 connections.

use crate::support::{
    Authority, BINARY, END_HEADERS, END_STREAM, Frames, GET, GOAWAY, HEADERS, SETTINGS, TlsClient,
    block_on, frame, over_tls, start, to,
};
use proxy_testkit::{Launch, Reload, Upstream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

#[test]
fn a_reload_that_demands_client_certificates_reaches_open_connections() {
    let [members, servers] = ["members", "servers"].map(Authority::new);
    let upstream = Upstream::saying("hello");
    let launch = Launch::new(BINARY, &to(&upstream, &over_tls("")));
    members.write(launch.folder(), "members.pem");
    servers.issue(&["a.test"]).write(launch.folder(), "site");
    let proxyd = launch.start();

    block_on(async {
        let client = TlsClient::trusting(&servers);
        let mut plain = client.connect(proxyd.address(), "a.test").await;
        assert_eq!(plain.get("a.test", "/").await.0, 200);
        let client = TlsClient::trusting(&servers).offering(&["h2"]);
        let mut http = client.connect(proxyd.address(), "a.test").await.stream;
        let request = |stream| frame(HEADERS, END_STREAM | END_HEADERS, stream, GET);
        let settings = frame(SETTINGS, 0, 0, &[]);
        let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), settings];
        http.write_all(&begin.concat()).await.unwrap();
        http.write_all(&request(1)).await.unwrap();
        wait_for(&mut http, "hello").await;

        let demanding = r#"client-auth { ca-file "members.pem"; mode "required" }"#;
        let kdl = to(&upstream, &over_tls(demanding));
        assert_eq!(proxyd.reload(&kdl), Reload::Applied);

        // Requests before the client has received the end are validated by the new rule.
        http.write_all(&request(3)).await.unwrap();
        wait_for(&mut http, "client certificate required").await;
        let mut rest = Vec::new();
        plain.stream.read_to_end(&mut rest).await.unwrap();
    });
    assert_eq!(upstream.requests().len(), 2);
}

async fn wait_for(stream: &mut (impl AsyncRead + Unpin), text: &str) {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(text) {
        let count = stream.read_buf(&mut read).await.unwrap();
        assert_ne!(count, 0, "the connection ended before {text:?}");
    }
}

#[test]
fn a_reload_that_tightens_a_listener_sends_goaway() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, "h2c #true"), &[]);

    block_on(async {
        let mut frames = Frames::connect(proxyd.address(), &[]).await;
        frames.send(HEADERS, END_STREAM | END_HEADERS, 1, GET).await;
        upstream.wait_for_requests(1);
        let tightened = "h2c #true; timeouts { header-secs 5 }";
        assert_eq!(proxyd.reload(&to(&upstream, tightened)), Reload::Applied);
        let notice = frames.next_of(GOAWAY).await;
        assert_eq!(notice.payload, b"\x7f\xff\xff\xff\0\0\0\0");
        while frames.next().await.is_some() {}
    });
}

#[test]
fn an_http2_connection_ends_at_its_greatest_age_and_after_its_last_request() {
    let upstream = Upstream::saying("hello");
    for bound in ["max-connection-age-secs 1", "max-requests-per-connection 1"] {
        let proxyd = start(&to(&upstream, &format!("h2c #true; {bound}")), &[]);
        block_on(async {
            let mut frames = Frames::connect(proxyd.address(), &[]).await;
            frames.send(HEADERS, END_STREAM | END_HEADERS, 1, GET).await;
            let notice = frames.next_of(GOAWAY).await;
            assert_eq!(notice.payload, b"\x7f\xff\xff\xff\0\0\0\0", "{bound}");
            while frames.next().await.is_some() {}
        });
    }
}
