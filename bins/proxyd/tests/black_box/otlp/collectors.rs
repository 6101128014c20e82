//! Collectors that fail, hang, flood or change: spans are lost and counted, and requests are still
//! served.

use super::support::{
    attributes, collector, dropped, hex, otlp, page, reaches, sampled, spans, spans_in,
    traceparent, tracing, value,
};
use crate::support::{BINARY, Config, admin};
use flate2::read::GzDecoder;
use prost::Message;
use proxy_otlp::proto::{ExportTracePartialSuccess, ExportTraceServiceResponse};
use proxy_testkit::{Gate, Launch, Record, Reload, Upstream, closed_port};
use std::collections::BTreeSet;
use std::io::Read;
use std::net::TcpListener;
use std::time::Duration;

const EXPORTED: &str = "proxy_otlp_spans_exported_total";
/// Much shorter than a test waits for one event.
const EXIT_TIMEOUT: Duration = Duration::from_secs(15);

fn exports(result: &str) -> String {
    format!("proxy_otlp_exports_total{{signal=\"traces\",result=\"{result}\"}}")
}

#[test]
fn a_collector_that_hangs_costs_spans_and_no_request() {
    let (gate, upstream) = (Gate::new(), Upstream::saying(""));
    let collector = Upstream::gated(&gate, "");
    let settings = "queue-spans 64; timeout-secs 1";
    let proxyd = tracing(&upstream, &collector, settings).start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(sampled("/first")).status, 200);
    // The collector has both spans of this request, so the queue is empty.
    collector.wait_for_requests(1);

    for _ in 0..100 {
        assert_eq!(client.ask(sampled("/more")).status, 200);
    }

    // The queue is full after 32 requests with two spans each.
    assert_eq!(reaches(&proxyd, &dropped("queue_full"), 136.0), Some(136.0));
    // The first export is aborted and repeated.
    let sent = collector.wait_for_requests(2);
    assert_eq!(sent[0].body, sent[1].body);
    gate.open();
    assert_eq!(reaches(&proxyd, EXPORTED, 66.0), Some(66.0));
    let spans = spans(&collector, 66);
    let unique: BTreeSet<_> = spans.iter().map(|span| hex(&span.span_id)).collect();
    assert_eq!(unique.len(), 66);
    assert_eq!(
        value(&page(&proxyd, ""), &dropped("unavailable")),
        Some(0.0)
    );
}

#[test]
fn a_collector_that_refuses_or_floods_harms_no_request() {
    let upstream = Upstream::saying("");
    let flood = format!("HTTP/1.1 200 OK\r\n\r\n{}", "a".repeat(1 << 20));
    let redirect = "HTTP/1.1 307 No\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n";
    let refused = dropped("refused");
    for (response, series) in [
        ("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", &*refused),
        ("HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n", &*refused),
        (redirect, &*refused),
        (&*flood, EXPORTED),
    ] {
        let collector = Upstream::start({
            let response = response.to_owned();
            move |served| {
                if served.request().is_some() {
                    served.send(&response);
                }
            }
        });
        let proxyd = tracing(&upstream, &collector, "").start();
        let mut client = proxyd.connect();
        for count in 1..=2 {
            assert_eq!(client.ask(sampled("/")).status, 200);
            let spans = f64::from(2 * count);
            let exported = reaches(&proxyd, series, spans);
            assert_eq!(exported, Some(spans), "{response:.40}");
        }
        assert_eq!(collector.requests().len(), 2, "{response:.40}");
    }
}

#[test]
fn a_collector_that_is_down_is_tried_again_and_found() {
    let upstream = Upstream::saying("");
    let address = closed_port();
    let proxyd = Config::to(&upstream)
        .top(&otlp(address, "metrics #false"))
        .start();
    assert_eq!(proxyd.connect().ask(sampled("/")).status, 200);
    reaches(&proxyd, &exports("failure"), 1.0);
    let listener = TcpListener::bind(address).unwrap();
    let collector = Upstream::start_on(listener, |served| {
        while served.request().is_some() {
            served.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });

    assert_eq!(spans(&collector, 2).len(), 2);
    reaches(&proxyd, &exports("success"), 1.0);
    let found = |record: &Record| record.text("message") == "the collector accepts data again";
    assert_eq!(proxyd.stderr().find(0, found).text("signal"), "traces");
}

#[test]
fn a_collector_that_is_busy_gets_the_same_spans_after_its_pause() {
    let upstream = Upstream::saying("");
    let collector = Upstream::start(|served| {
        for status in ["429 Busy", "503 Busy", "200 OK"] {
            if served.request().is_none() {
                return;
            }
            let response =
                format!("HTTP/1.1 {status}\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n");
            served.send(response);
        }
    });
    let proxyd = tracing(&upstream, &collector, "").start();

    assert_eq!(proxyd.connect().ask(sampled("/")).status, 200);

    assert_eq!(reaches(&proxyd, EXPORTED, 2.0), Some(2.0));
    let sent = collector.requests();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|one| one.body == sent[0].body));
    let page = page(&proxyd, "");
    assert_eq!(value(&page, &exports("failure")), Some(2.0));
    assert_eq!(value(&page, &exports("success")), Some(1.0));
}

#[test]
fn spans_that_the_collector_rejects_are_counted() {
    let upstream = Upstream::saying("");
    let partial = ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess {
            rejected_spans: 1,
            error_message: "too old".to_owned(),
        }),
    };
    let body = partial.encode_to_vec();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let collector = Upstream::answering([head.as_bytes(), &body].concat());
    let proxyd = tracing(&upstream, &collector, "").start();
    let mut client = proxyd.connect();

    client.ask(sampled("/"));
    assert_eq!(reaches(&proxyd, &dropped("refused"), 1.0), Some(1.0));
    client.ask(sampled("/"));

    assert_eq!(reaches(&proxyd, &dropped("refused"), 2.0), Some(2.0));
    assert_eq!(reaches(&proxyd, EXPORTED, 2.0), Some(2.0));
    let lines = proxyd.stderr().lines();
    let records = lines.iter().filter_map(|line| Record::parse(line));
    let partial: Vec<_> = records.filter(|record| record.has("rejected")).collect();
    let [reported] = &partial[..] else {
        panic!("the same message is reported once: {lines:?}");
    };
    assert_eq!(reported.number("rejected"), Some(1.0));
    assert_eq!(reported.text("error"), "too old");
    let message = "the collector rejected a part of the data";
    assert_eq!(reported.text("message"), message);
}

#[test]
fn spans_that_wait_go_to_the_collector_of_a_reload() {
    let (gate, upstream) = (Gate::new(), Upstream::saying(""));
    let (before, after) = (Upstream::gated(&gate, ""), collector());
    let config = |collector: &Upstream| {
        tracing(&upstream, collector, "timeout-secs 1")
            .top("admin { address \"127.0.0.1:0\" }")
            .kdl()
    };
    let proxyd = Launch::new(BINARY, &config(&before)).start();
    let mut client = proxyd.connect();
    client.ask(sampled("/first"));
    before.wait_for_requests(1);
    client.ask(sampled("/second"));

    assert_eq!(proxyd.reload(&config(&after)), Reload::Applied);

    let spans = spans(&after, 4);
    let paths = spans.iter().filter(|span| span.kind == 2);
    let paths = paths.map(|span| attributes(&span.attributes)["url.path"].clone());
    assert_eq!(paths.collect::<Vec<_>>(), ["/first", "/second"]);
    assert_eq!(before.requests().len(), 1);

    let off = Config::to(&upstream)
        .top("admin { address \"127.0.0.1:0\" }")
        .kdl();
    assert_eq!(proxyd.reload(&off), Reload::Applied);
    proxyd.connect().ask(sampled("/third"));
    let seen = upstream.last_request();
    let unchanged = traceparent("01");
    assert_eq!(seen.fields.get("traceparent"), Some(&*unchanged));
    gate.open();
}

#[test]
fn the_end_of_the_process_exports_the_rest() {
    let (upstream, collector) = (Upstream::saying(""), collector());
    let mut proxyd = Config::to(&upstream)
        .top(&otlp(collector.address(), "interval-secs 3600"))
        .start();
    let mut client = proxyd.connect();
    for _ in 0..3 {
        client.ask(sampled("/"));
    }

    proxyd.terminate();

    assert!(proxyd.wait().success());
    let requests = collector.requests();
    assert_eq!(spans_in(&requests).len(), 6);
    let metrics = requests.iter().filter(|one| one.target == "/v1/metrics");
    assert_eq!(metrics.count(), 1);
}

#[test]
fn a_collector_that_hangs_does_not_keep_the_process() {
    let (gate, upstream) = (Gate::new(), Upstream::saying(""));
    let collector = Upstream::gated(&gate, "");
    let mut proxyd = Config::to(&upstream)
        .top(&otlp(collector.address(), "timeout-secs 60"))
        .top("system { graceful-shutdown-timeout-secs 1 }")
        .start();
    proxyd.connect().ask(sampled("/"));
    collector.wait_for_requests(1);

    proxyd.terminate();

    assert!(proxyd.has_ended_within(EXIT_TIMEOUT));
    assert!(proxyd.wait().success());
    gate.open();
}

#[test]
fn requests_to_the_collector_have_its_fields_and_are_compressed() {
    let (upstream, collector) = (Upstream::saying(""), collector());
    let settings = "metrics #false; compression \"gzip\"; \
                    header \"Authorization\" \"Bearer {$OTLP_TOKEN}\"; header \"X-Tenant\" \"edge\"";
    let kdl = Config::to(&upstream)
        .top(&otlp(collector.address(), settings))
        .kdl();
    let launch = Launch::new(BINARY, &kdl).env("OTLP_TOKEN", "s3cret");
    let proxyd = launch.start();

    proxyd.connect().ask(sampled("/"));

    let mut export = collector.last_request();
    assert_eq!(export.fields.get("authorization"), Some("Bearer s3cret"));
    assert_eq!(export.fields.get("x-tenant"), Some("edge"));
    assert_eq!(export.fields.get("content-encoding"), Some("gzip"));
    let mut body = Vec::new();
    GzDecoder::new(&*export.body)
        .read_to_end(&mut body)
        .unwrap();
    export.body = body;
    assert_eq!(spans_in(&[export]).len(), 2);
    let shown = admin(&proxyd, "/admin/config").to_string();
    assert!(shown.contains("authorization: (redacted)"), "{shown}");
    assert!(!shown.contains("s3cret"), "{shown}");
}
