//! Trace context (W3C): forwarded, begun, and logged.

use crate::support::{Config, refusal, request};
use proxy_testkit::{Upstream, get};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const BEGIN: &str = "observability { trace-context { begin #true } }";

fn parent(flags: &str) -> String {
    format!("00-{TRACE}-00f067aa0ba902b7-{flags}")
}

#[test]
fn a_traceparent_is_forwarded_unchanged_and_logged() {
    let upstream = Upstream::saying("ok");
    for blocks in ["", BEGIN] {
        let proxyd = Config::to(&upstream).top(blocks).start();
        for flags in ["00", "01"] {
            let parent = parent(flags);
            let fields = [("traceparent", &*parent), ("tracestate", "a=1,b=2")];

            let response = proxyd.connect().ask(get("/", &fields));

            let seen = upstream.last_request();
            assert_eq!(seen.fields.all("traceparent"), [&*parent]);
            assert_eq!(seen.fields.all("tracestate"), ["a=1,b=2"]);
            let record = proxyd.access_record(&response.correlation_id());
            assert_eq!(record.text("trace_id"), TRACE);
        }
    }
}

#[test]
fn a_request_without_a_trace_begins_one_where_that_is_set() {
    let upstream = Upstream::saying("ok");
    let proxyd = Config::to(&upstream).start();
    let response = proxyd.connect().ask(get("/", &[]));
    assert_eq!(upstream.last_request().fields.get("traceparent"), None);
    assert!(
        !proxyd
            .access_record(&response.correlation_id())
            .has("trace_id")
    );

    for (percent, flags) in [("", "01"), ("sample-percent 0", "00")] {
        let blocks = format!("observability {{ trace-context {{ begin #true; {percent} }} }}");
        let proxyd = Config::to(&upstream).top(&blocks).start();
        for fields in [
            &[][..],
            &[("traceparent", "00-nonsense-01"), ("tracestate", "a=1")],
        ] {
            let response = proxyd.connect().ask(get("/", fields));

            let seen = upstream.last_request();
            let parent = seen.fields.get("traceparent").unwrap().to_owned();
            assert_eq!(seen.fields.all("traceparent").len(), 1);
            assert_eq!(seen.fields.get("tracestate"), None);
            let parts: Vec<&str> = parent.split('-').collect();
            assert_eq!((parts[0], parts[3]), ("00", flags));
            assert_eq!((parts[1].len(), parts[2].len()), (32, 16));
            let record = proxyd.access_record(&response.correlation_id());
            assert_eq!(record.text("trace_id"), parts[1]);
        }
    }
}

#[test]
fn a_limit_record_names_the_trace_of_its_request() {
    let upstream = Upstream::saying("ok");
    let proxyd = Config::through(&upstream, "max-body-size 3").start();
    let fields = format!("traceparent: {}\r\nContent-Length: 4\r\n", parent("01"));

    let response = proxyd.connect().ask(request("POST /", &fields, "four"));

    refusal(&response, 413, "LIMIT_EXCEEDED");
    let record = proxyd.limit_record(TRACE);
    assert_eq!(record.text("correlation_id"), response.correlation_id());
}
