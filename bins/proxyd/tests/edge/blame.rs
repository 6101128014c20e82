//! The party at fault for a failure over HTTP/2: see `in_process/blame.rs` of `proxy-server`.

use crate::support::{Answer, Http2, Http2Upstream, ask, block_on, start};
use proxy_testkit::{Upstream, get as get1, ok};

/// One failure is enough for the breaker and for an ejection.
fn to(target: std::net::SocketAddr, more: &str) -> String {
    format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
        routes {{ route "all" {{
            upstream "u"
            circuit-breaker {{ failure-threshold 1; timeout-seconds 60 }}
        }} }}
        upstreams {{ upstream "u" {{
            target "{target}"
            outlier-detection {{ consecutive-failures 1; max-ejected-percent 100 }}
            {more}
        }} }}
        system {{ worker-threads 1 }}
        "#
    )
}

#[test]
fn a_clients_own_short_grpc_timeout_counts_nothing() {
    let upstream = Upstream::start(|served| {
        while let Some(request) = served.request() {
            if request.method == "GET" {
                served.send(ok("well"));
            }
        }
    });
    let proxyd = start(&to(upstream.address(), ""), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        for _ in 0..6 {
            let mut call = ask("POST", "/a.B/C");
            let fields = call.headers_mut();
            fields.insert("content-type", "application/grpc".parse().unwrap());
            fields.insert("grpc-timeout", "1n".parse().unwrap());
            fields.insert("te", "trailers".parse().unwrap());
            let late: Answer = http.ask(call).await;
            assert_eq!(late.header("grpc-status"), Some("4"));
        }
    });

    assert_eq!(proxyd.connect().ask(get1("/", &[])).text(), "well");
}

#[test]
fn an_upgrade_that_the_target_cannot_take_counts_nothing() {
    let upstream = Http2Upstream::start(|request| async { request.reply("well") });
    let proxyd = start(&to(upstream.address, "protocol \"h2\""), &[]);
    let upgrade = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];

    for _ in 0..6 {
        let declined = proxyd.connect().ask(get1("/chat", &upgrade));
        let record = proxyd.error_record(&declined.correlation_id());
        assert_eq!(record.text("reason"), "upgrade_declined");
    }

    assert_eq!(proxyd.connect().ask(get1("/", &[])).text(), "well");
}
