//! TLS and HTTP/2 on Unix sockets.

use crate::support::{Authority, Http2, TlsClient, block_on, over_tls, start};
use proxy_testkit::Upstream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use tempfile::TempDir;
use tokio::net::TcpStream;

fn config(place: &TempDir, upstream: &Upstream, listener: &str) -> String {
    let path = place.path().join("proxy.sock");
    format!(
        r#"
        listeners {{ listener "main" {{ address "unix:{}"; {listener} }} }}
        routes {{ route "all" {{ upstream "u" }} }}
        upstreams {{ upstream "u" {{ targets {{ target "{}" }} }} }}
        system {{ worker-threads 1 }}
        "#,
        path.display(),
        upstream.address()
    )
}

/// A connection. `TcpStream` reads and writes sockets of any family.
fn connect(folder: &Path) -> TcpStream {
    let stream = UnixStream::connect(folder.join("proxy.sock")).unwrap();
    stream.set_nonblocking(true).unwrap();
    TcpStream::from_std(OwnedFd::from(stream).into()).unwrap()
}

#[test]
fn http2_is_spoken_at_a_unix_socket_without_tls() {
    let (place, upstream) = (tempfile::tempdir().unwrap(), Upstream::saying("hi"));
    let _proxyd = start(&config(&place, &upstream, "h2c #true"), &[]);
    block_on(async {
        let mut client = Http2::over(connect(place.path())).await;
        for _ in 0..3 {
            assert_eq!(client.get("/").await.text(), "hi");
        }
    });
}

#[test]
fn tls_is_spoken_at_a_unix_socket() {
    let (place, upstream) = (tempfile::tempdir().unwrap(), Upstream::saying("hi"));
    let authority = Authority::new("roots");
    let identity = authority.issue(&["a.test"]);
    let kdl = config(&place, &upstream, &over_tls(""));
    let _proxyd = start(&kdl, &[("site", &identity)]);
    block_on(async {
        let client = TlsClient::trusting(&authority);
        let mut secure = client.over(connect(place.path()), "a.test").await.unwrap();
        for _ in 0..3 {
            assert_eq!(secure.get("a.test", "/").await, (200, "hi".to_owned()));
        }
        let offering = TlsClient::trusting(&authority).offering(&["h2"]);
        let secure = offering
            .over(connect(place.path()), "a.test")
            .await
            .unwrap();
        let mut client = Http2::over(secure.stream).await;
        assert_eq!(client.get("/").await.text(), "hi");
    });
}
