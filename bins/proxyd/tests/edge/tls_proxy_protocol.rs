//! The PROXY protocol in front of TLS.

use crate::support::{
    Authority, BINARY, Http2, TlsClient, block_on, get, over_tls, plain, start, to,
};
use proxy_testkit::{Launch, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const VERSION_1: &[u8] = b"PROXY TCP4 192.0.2.7 192.0.2.9 40000 443\r\n";

/// The same, with an extension after the addresses.
const VERSION_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x12\
    \xc0\0\x02\x07\xc0\0\x02\x09\x9c\x40\x01\xbb\x04\0\x03\x01\x02\x03";

fn listener() -> String {
    over_tls("") + "; proxy-protocol #true; trusted-proxies \"127.0.0.0/8\""
}

#[test]
fn a_trusted_proxy_s_header_precedes_the_tls_handshake() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, &listener()), &[("site", &site)]);

    block_on(async {
        for header in [VERSION_1, VERSION_2] {
            let client = TlsClient::trusting(&authority);
            let mut stream = plain(proxyd.address()).await;
            stream.write_all(header).await.unwrap();
            let mut client = client.over(stream, "a.test").await.unwrap();
            for _ in 0..2 {
                assert_eq!(client.get("a.test", "/").await, (200, "hello".to_owned()));
                let seen = upstream.last_request();
                assert_eq!(seen.fields.get("x-forwarded-for"), Some("192.0.2.7"));
                assert_eq!(seen.fields.get("x-forwarded-proto"), Some("https"));
            }
        }
    });
}

#[test]
fn a_proxy_header_precedes_the_tls_handshake_with_a_target() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    let inner = start(&to(&upstream, &listener()), &[("site", &site)]);
    for version in ["v1", "v2"] {
        let text = format!(
            "listeners {{ listener \"main\" {{ address \"127.0.0.1:0\"; trusted-proxies \"127.0.0.0/8\" }} }}\n\
             routes {{ route \"all\" {{ upstream \"u\" }} }}\n\
             upstreams {{ upstream \"u\" {{ target \"{}\"; send-proxy \"{version}\"\n\
             tls {{ sni \"a.test\"; ca-file \"root.pem\" }} }} }}",
            inner.address()
        );
        let launch = Launch::new(BINARY, &text);
        authority.write(launch.folder(), "root.pem");
        let outer = launch.start();

        let client = [("X-Forwarded-For", "203.0.113.9")];
        let response = outer.connect().ask(proxy_testkit::get("/", &client));
        assert_eq!(response.text(), "hello", "{version}");
        let record = inner.access_record(&response.correlation_id());
        assert_eq!(record.text("client_ip"), "203.0.113.9", "{version}");
    }
}

#[test]
fn http2_is_agreed_on_behind_the_header() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, &listener()), &[("site", &site)]);

    block_on(async {
        let client = TlsClient::trusting(&authority).offering(&["h2"]);
        let mut stream = plain(proxyd.address()).await;
        stream.write_all(VERSION_2).await.unwrap();
        let secure = client.over(stream, "a.test").await.unwrap();
        let mut http = Http2::over(secure.stream).await;
        let mut request = get("/");
        *request.uri_mut() = "https://a.test/".parse().unwrap();
        assert_eq!(http.ask(request).await.status, 200);
    });
    let seen = upstream.last_request();
    assert_eq!(seen.fields.get("x-forwarded-for"), Some("192.0.2.7"));
}

#[test]
fn a_handshake_without_the_header_is_closed() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, &listener()), &[("site", &site)]);

    block_on(async {
        let client = TlsClient::trusting(&authority);
        assert!(
            client
                .try_connect(proxyd.address(), "a.test")
                .await
                .is_err()
        );
        // It is refused within TLS too.
        let mut stream = plain(proxyd.address()).await;
        stream.write_all(VERSION_1).await.unwrap();
        let mut client = client.over(stream, "a.test").await.unwrap();
        client.stream.write_all(VERSION_1).await.unwrap();
        let mut answer = Vec::new();
        client.stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 400 "));
    });
    assert_eq!(upstream.requests().len(), 0);
}
