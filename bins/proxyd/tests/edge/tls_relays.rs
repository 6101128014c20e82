//! Relayed TLS connections: passed through by server name, and terminated at the listener.

use crate::support::{Authority, Identity, TlsClient, TlsUpstream, block_on, server_config, start};
use proxy_testkit::{End, Proxyd, RawClient};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::rustls::version::{TLS12, TLS13};

/// A target with a certificate for these names.
fn target(authority: &Authority, names: &[&str]) -> TlsUpstream {
    TlsUpstream::start(server_config(&authority.issue(names), None, &[]))
}

/// A listener that passes TLS through to `a`, by a wildcard to `b`, and by default to `c`.
fn passing(listener: &str, [a, b, c]: [SocketAddr; 3]) -> String {
    format!(
        r#"
        listeners {{ listener "main" {{
            address "127.0.0.1:0"; protocol "tls-passthrough"; default-route "c"; {listener}
        }} }}
        routes {{
            route "a" {{ listeners "main"; matches {{ host "a.test" "x.b.test" }}; upstream "a" }}
            route "b" {{ listeners "main"; matches {{ host "*.b.test" }}; upstream "b" }}
            route "c" {{ listeners "main"; matches {{ host "c.test" }}; upstream "c" }}
        }}
        upstreams {{
            upstream "a" {{ target "{a}" }}
            upstream "b" {{ target "{b}" }}
            upstream "c" {{ target "{c}" }}
        }}
        tests {{
            test "exact" {{ request "TCP" "tls://a.test"; expect {{ upstream "a" }} }}
            test "exact before the wildcard" {{ request "TCP" "tls://X.b.test:443"; expect {{ upstream "a" }} }}
            test "wildcard" {{ request "TCP" "tls://y.b.test"; expect {{ upstream "b" }} }}
            test "default" {{ request "TCP" "tls://other.test"; expect {{ upstream "c" }} }}
            test "no name" {{ request "TCP" "tls://127.0.0.1"; expect {{ upstream "c" }} }}
        }}
        system {{ worker-threads 1 }}
        "#
    )
}

/// Waits for the record of a connection that was refused.
#[track_caller]
fn refused(proxyd: &Proxyd, reason: &str) {
    let record = proxyd.stdout().find(0, |record| record.has("reason"));
    assert_eq!(record.text("reason"), reason);
}

#[test]
fn the_server_name_leads_to_the_target_that_ends_tls() {
    let authority = Authority::new("root");
    let a = target(&authority, &["a.test", "x.b.test"]);
    let b = target(&authority, &["y.b.test"]);
    let c = target(&authority, &["c.test", "other.test"]);
    let kdl = passing("", [&a, &b, &c].map(|target| target.address));
    let proxyd = start(&kdl, &[]);

    block_on(async {
        for (name, at) in [
            ("a.test", &a),
            ("x.b.test", &a),
            ("y.b.test", &b),
            ("c.test", &c),
            ("other.test", &c),
        ] {
            for version in [&TLS12, &TLS13] {
                let client = TlsClient::with_versions(&authority, &[version]);
                let mut client = client.connect(proxyd.address(), name).await;
                assert_eq!(client.get(name, "/").await, (200, "hello".to_owned()));
                assert_eq!(at.next_handshake().server_name.as_deref(), Some(name));
            }
        }
    });
    let record = proxyd.stdout().find(0, |record| {
        record.has("host") && record.text("host") == "y.b.test"
    });
    assert_eq!(record.text("route"), "b");
    assert_eq!(record.text("protocol"), "TCP");
    assert_eq!(record.number("status"), Some(200.0));
}

#[test]
fn clients_that_use_no_tls_or_nothing_reach_no_target() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    silent.set_nonblocking(true).unwrap();
    let address = silent.local_addr().unwrap();
    let kdl = passing("timeouts { handshake-ms 300 }", [address; 3]);
    let proxyd = start(&kdl, &[]);

    for garbage in [
        &b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"[..],
        &[0; 200],
        b"\x16\x03\x01\x00\x01",
        b"",
    ] {
        let mut client = RawClient::connect(proxyd.address());
        client.send(garbage);
        // A client that has sent nothing is not refused.
        let is_expected = match client.end() {
            End::Reset => true,
            End::Closed => garbage.is_empty(),
        };
        assert!(is_expected, "{garbage:?}");
    }
    assert!(silent.accept().is_err(), "a target was called");
}

#[test]
fn a_name_without_a_route_is_refused() {
    let authority = Authority::new("root");
    let a = target(&authority, &["a.test"]);
    let kdl = passing("", [a.address; 3]).replace(r#"default-route "c";"#, "");
    let kdl = kdl.replace(
        r#"expect { upstream "c" }"#,
        r#"expect { reason "route_not_found" }"#,
    );
    let proxyd = start(&kdl, &[]);

    block_on(async {
        let client = TlsClient::trusting(&authority);
        let refused = client.try_connect(proxyd.address(), "other.test").await;
        assert!(refused.is_err());
    });
    refused(&proxyd, "route_not_found");
}

/// A server that returns each byte.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            thread::spawn(move || {
                let mut writer = stream.try_clone().unwrap();
                drop(std::io::copy(&mut stream, &mut writer));
            });
        }
    });
    address
}

#[test]
fn a_hello_of_an_old_device_is_passed_on_unchanged() {
    // TLS 1.0 with one cipher suite, the name `a.test`, and no signature algorithms.
    let body = [
        &[3, 1][..],
        &[7; 32],
        &[0, 0, 2, 0, 0x2f, 1, 0],
        &[0, 15, 0, 0, 0, 11, 0, 9, 0, 0, 6],
        b"a.test",
    ];
    let body = body.concat();
    let length = |more: usize| u8::try_from(body.len() + more).unwrap();
    let head = [0x16, 3, 1, 0, length(4), 1, 0, 0, length(0)];
    let hello = [&head[..], &body].concat();
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let other = silent.local_addr().unwrap();
    let proxyd = start(&passing("", [echo(), other, other]), &[]);

    let mut client = TcpStream::connect(proxyd.address()).unwrap();
    client
        .set_read_timeout(Some(proxy_testkit::EVENT_TIMEOUT))
        .unwrap();
    client.write_all(&hello).unwrap();
    let mut echoed = vec![0; hello.len()];
    client.read_exact(&mut echoed).unwrap();
    assert_eq!(echoed, hello);
}

/// A listener that ends TLS, and relays to an echo.
fn ending(tls: &str) -> String {
    let target = echo();
    format!(
        r#"
        listeners {{ listener "main" {{
            address "127.0.0.1:0"; protocol "tcp"; default-route "other"
            tls {{ cert-file "site.crt"; key-file "site.key"; {tls} }}
        }} }}
        routes {{
            route "a" {{ listeners "main"; matches {{ host "a.test" }}; upstream "u" }}
            route "other" {{ listeners "main"; deny "127.0.0.1"; upstream "u" }}
        }}
        upstreams {{ upstream "u" {{ target "{target}" }} }}
        system {{ worker-threads 1 }}
        "#
    )
}

fn site(authority: &Authority) -> Identity {
    authority.issue(&["a.test", "b.test"])
}

#[test]
fn a_relay_listener_terminates_tls_and_relays_the_plaintext() {
    let authority = Authority::new("root");
    let proxyd = start(&ending(""), &[("site", &site(&authority))]);
    let bytes: Vec<u8> = (0..2_000_003_u32).map(|n| n.to_le_bytes()[0]).collect();

    block_on(async {
        // No protocol is agreed on: the relayed one is unknown.
        let client = TlsClient::trusting(&authority).offering(&["imap"]);
        let secure = client.connect(proxyd.address(), "a.test").await;
        assert_eq!(secure.protocol(), None);
        let (mut reader, mut writer) = tokio::io::split(secure.stream);
        let sent = bytes.clone();
        let writing = tokio::spawn(async move {
            writer.write_all(&sent).await.unwrap();
            writer.shutdown().await.unwrap();
            writer
        });
        let mut received = Vec::new();
        reader.read_to_end(&mut received).await.unwrap();
        assert!(received == bytes, "{} bytes received", received.len());
        drop(writing.await.unwrap());
    });
    let record = proxyd.stdout().find(0, |record| {
        record.has("host") && record.text("host") == "a.test"
    });
    assert_eq!(record.number("bytes_in"), Some(2_000_003.0));
    assert_eq!(record.text("route"), "a");
}

#[test]
fn a_listener_with_tls_decides_by_the_name_and_by_the_clients_certificate() {
    let authority = Authority::new("root");
    let site = site(&authority);
    let proxyd = start(&ending(""), &[("site", &site)]);
    block_on(async {
        let client = TlsClient::trusting(&authority);
        let mut denied = client.connect(proxyd.address(), "b.test").await;
        assert!(denied.stream.read_u8().await.is_err());
    });
    refused(&proxyd, "access_denied");

    let clients = Authority::new("clients");
    let required = r#"client-auth { mode "required"; ca-file "clients.crt" }"#;
    let launch = proxy_testkit::Launch::new(crate::support::BINARY, &ending(required));
    site.write(launch.folder(), "site");
    std::fs::write(launch.folder().join("clients.crt"), clients.pem()).unwrap();
    let proxyd = launch.start();
    block_on(async {
        let identity = clients.issue_to_client("operator");
        let shown = TlsClient::showing(&authority, &identity);
        let mut secure = shown.connect(proxyd.address(), "a.test").await;
        secure.stream.write_all(b"hello").await.unwrap();
        assert_eq!(secure.stream.read_u8().await.unwrap(), b'h');
        let nameless = TlsClient::trusting(&authority);
        let mut refused = nameless.connect(proxyd.address(), "a.test").await;
        assert!(refused.stream.read_u8().await.is_err());
    });
    refused(&proxyd, "client_certificate_missing");
}
