//! Health checks by HTTP/2 and over TLS.
#![expect(clippy::disallowed_methods, reason = "a test waits for a result")]

use crate::support::{
    Authority, BINARY, Http2Upstream, TlsUpstream, UpstreamOptions, server_config,
};
use proxy_testkit::{Launch, Proxyd, RawClient};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

const QUICK: &str = "interval-ms 800; timeout-ms 800; healthy-threshold 2; unhealthy-threshold 2";

fn running(address: SocketAddr, settings: &str, root: &Authority) -> Proxyd {
    let kdl = format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0" }} }}
        routes {{ route "all" {{ upstream "u" }} }}
        upstreams {{ upstream "u" {{ target "{address}"; {settings} }} }}
        admin {{ address "127.0.0.1:0" }}
        system {{ worker-threads 1 }}
        "#
    );
    let launch = Launch::new(BINARY, &kdl);
    root.write(launch.folder(), "root.pem");
    launch.start()
}

fn entry(proxyd: &Proxyd) -> Value {
    let mut admin = RawClient::connect(proxyd.admin_address());
    let request = "GET /admin/upstreams HTTP/1.1\r\nHost: localhost\r\n\r\n";
    admin.ask(request).json()["upstreams"]["u"]["targets"][0].clone()
}

/// The entry once this is so.
#[track_caller]
fn wait(proxyd: &Proxyd, is_so: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let entry = entry(proxyd);
        if is_so(&entry) {
            return entry;
        }
        assert!(Instant::now() < end, "{entry}");
    }
}

fn has_passed(entry: &Value) -> bool {
    let results = entry["recent_checks"].as_array().unwrap();
    let passed = results.iter().filter(|passed| **passed == true);
    2 <= passed.count() && entry["healthy"] == true
}

#[test]
fn a_grpc_check_asks_about_its_service() {
    let status = Arc::new(AtomicU8::new(1));
    let reported = Arc::clone(&status);
    let upstream = Http2Upstream::start(move |mut request| {
        let reported = Arc::clone(&reported);
        async move {
            let (message, _) = request.read().await.unwrap();
            let is_ours = request.head.uri.path() == "/grpc.health.v1.Health/Check"
                && message == b"\0\0\0\0\x0b\x0a\x09shop.Cart";
            let status = if is_ours {
                reported.load(Ordering::Relaxed)
            } else {
                3
            };
            let fields = [("content-type", "application/grpc")];
            let trailers = [("grpc-status", "0")];
            request.reply_with(&fields, vec![0, 0, 0, 0, 2, 8, status], &trailers);
        }
    });
    let root = Authority::new("root");
    let check = format!("health-check {{ type \"grpc\" {{ service \"shop.Cart\" }}; {QUICK} }}");
    let settings = format!("protocol \"h2\"; {check}");
    let proxyd = running(upstream.address, &settings, &root);

    wait(&proxyd, has_passed);
    status.store(2, Ordering::Relaxed);
    let entry = wait(&proxyd, |entry| entry["healthy"] == false);
    let not_serving = "health check: the gRPC health service does not say SERVING";
    assert_eq!(entry["last_error"], not_serving);
    status.store(1, Ordering::Relaxed);
    wait(&proxyd, |entry| entry["healthy"] == true);
}

#[test]
fn a_check_of_an_upstream_with_tls_is_made_over_tls_and_verified() {
    let root = Authority::new("root");
    let named = |sni: &str| {
        let target = TlsUpstream::start(server_config(
            &root.issue(&["up.test"]),
            None,
            &["http/1.1"],
        ));
        let tls = format!("tls {{ sni \"{sni}\"; ca-file \"root.pem\" }}");
        let check = format!("health-check {{ type \"http\"; {QUICK} }}");
        (
            running(target.address, &format!("{tls}; {check}"), &root),
            target,
        )
    };

    let (proxyd, target) = named("up.test");
    wait(&proxyd, has_passed);
    assert_eq!(
        target.next_handshake().server_name.as_deref(),
        Some("up.test")
    );
    let (proxyd, _target) = named("other.test");
    let entry = wait(&proxyd, |entry| entry["healthy"] == false);
    let last_error = entry["last_error"].as_str().unwrap();
    assert!(
        last_error.starts_with("health check: cannot connect: "),
        "{last_error}"
    );
}

#[test]
fn a_grpc_check_is_made_by_http2_for_any_upstream_with_tls() {
    let root = Authority::new("root");
    let options = UpstreamOptions {
        tls: Some(server_config(&root.issue(&["up.test"]), None, &["h2"])),
        ..UpstreamOptions::default()
    };
    let upstream = Http2Upstream::with_options(options, |request| async {
        let fields = [("content-type", "application/grpc")];
        let trailers = [("grpc-status", "0")];
        request.reply_with(&fields, vec![0, 0, 0, 0, 2, 8, 1], &trailers);
    });
    // Requests go by HTTP/1.1, the default.
    let tls = "tls { sni \"up.test\"; ca-file \"root.pem\" }";
    let check = format!("health-check {{ type \"grpc\"; {QUICK} }}");
    let proxyd = running(upstream.address, &format!("{tls}; {check}"), &root);

    wait(&proxyd, has_passed);
}
