//! TLS to a collector of traces and metrics.
#![expect(clippy::disallowed_methods, reason = "a test waits until a deadline")]

use crate::support::{Authority, BINARY, over_tls, start, to};
use proxy_testkit::{EVENT_TIMEOUT, Launch, Proxyd, RawClient, Upstream, get};
use std::net::SocketAddr;
use std::time::Instant;

/// A process that exports to `collector`, with the roots in `root.pem`.
fn exporting(upstream: &Upstream, collector: SocketAddr, root: &Authority) -> Proxyd {
    let kdl = format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0" }} }}
        routes {{ route "all" {{ upstream "u" }} }}
        upstreams {{ upstream "u" {{ target "{}" }} }}
        observability {{
            trace-context {{ begin #true }}
            otlp {{ endpoint "https://{collector}"; ca-file "root.pem"; metrics #false }}
        }}
        system {{ worker-threads 1 }}
        "#,
        upstream.address()
    );
    let launch = Launch::new(BINARY, &kdl);
    root.write(launch.folder(), "root.pem");
    launch.start()
}

/// Waits until a request to the collector has this result.
#[track_caller]
fn wait_for(proxyd: &Proxyd, result: &str) {
    let series = format!("proxy_otlp_exports_total{{signal=\"traces\",result=\"{result}\"}} ");
    let mut client = RawClient::connect(proxyd.admin_address());
    let end = Instant::now() + EVENT_TIMEOUT;
    loop {
        let page = client
            .ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .text();
        let value = page.lines().find_map(|line| line.strip_prefix(&series));
        if value.is_some_and(|value| value != "0") {
            return;
        }
        assert!(Instant::now() < end, "{value:?}");
    }
}

#[test]
fn a_collector_is_verified_by_the_roots_of_its_file() {
    let (root, strange) = (Authority::new("root"), Authority::new("strange"));
    let site = root.issue(&["127.0.0.1"]);
    let (upstream, exports) = (Upstream::saying(""), Upstream::saying(""));
    let collector = start(&to(&exports, &over_tls("")), &[("site", &site)]);

    let proxyd = exporting(&upstream, collector.address(), &root);
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
    wait_for(&proxyd, "success");
    assert_eq!(exports.last_request().target, "/v1/traces");

    let proxyd = exporting(&upstream, collector.address(), &strange);
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
    wait_for(&proxyd, "failure");
    assert_eq!(exports.requests().len(), 1);
}
