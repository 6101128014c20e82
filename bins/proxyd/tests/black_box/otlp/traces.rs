//! Spans of requests, and the trace context that targets receive.

use super::support::{
    PARENT, TRACE, attributes, collector, dropped, hex, otlp, page, resource, sampled, spans,
    spans_in, traceparent, tracing, value,
};
use crate::support::Config;
use proxy_otlp::proto::Span;
use proxy_testkit::{Request, Upstream, closed_port, get};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_sampled_request_is_a_server_span_with_a_client_span() {
    let (upstream, collector) = (Upstream::saying("hello"), collector());
    let proxyd = tracing(&upstream, &collector, "service-name \"edge\"").start();
    let parent = traceparent("01");
    let fields = [
        ("traceparent", &*parent),
        ("tracestate", "a=1"),
        ("User-Agent", "test"),
    ];

    let response = proxyd.connect().ask(get("/a?b=c", &fields));

    assert_eq!(response.status, 200);
    let [server, client] = spans(&collector, 2).try_into().unwrap();
    assert_eq!(hex(&server.trace_id), TRACE);
    assert_eq!(hex(&server.parent_span_id), PARENT);
    assert_eq!((server.kind, client.kind), (2, 3));
    assert_eq!(server.name, "GET all");
    assert!(server.status.is_none() && client.status.is_none());
    is_within(&client, &server);

    let seen = upstream.last_request();
    let own = format!("00-{TRACE}-{}-01", hex(&client.span_id));
    assert_eq!(seen.fields.all("traceparent"), [&*own]);
    assert_eq!(seen.fields.all("tracestate"), ["a=1"]);

    let target = upstream.address().to_string();
    let correlation_id = response.correlation_id();
    let attributes_of_server = attributes(&server.attributes);
    for (key, expected) in [
        ("http.request.method", "GET"),
        ("http.response.status_code", "200"),
        ("http.response.body.size", "5"),
        ("http.route", "all"),
        ("url.path", "/a"),
        ("url.query", "b=c"),
        ("url.scheme", "http"),
        ("client.address", "127.0.0.1"),
        ("network.protocol.version", "1.1"),
        ("user_agent.original", "test"),
        ("proxyd.upstream", "u"),
        ("proxyd.target", &target),
        ("proxyd.correlation_id", &correlation_id),
    ] {
        let found = attributes_of_server.get(key).map(String::as_str);
        assert_eq!(found, Some(expected), "{key}");
    }
    assert!(attributes_of_server.contains_key("proxyd.upstream_ms"));
    let record = proxyd.access_record(&correlation_id);
    assert_eq!(record.text("trace_id"), TRACE);
    let client = attributes(&client.attributes);
    let address = format!("{}:{}", client["server.address"], client["server.port"]);
    assert_eq!(
        (address, &*client["http.response.status_code"]),
        (target, "200")
    );
    is_an_export_of("edge", &collector.last_request());
}

/// Checks that a child's times are within those of its parent.
fn is_within(child: &Span, parent: &Span) {
    assert_eq!(child.trace_id, parent.trace_id);
    assert_eq!(child.parent_span_id, parent.span_id);
    let times = [
        parent.start_time_unix_nano,
        child.start_time_unix_nano,
        child.end_time_unix_nano,
        parent.end_time_unix_nano,
    ];
    assert!(times.is_sorted(), "{times:?}");
}

fn is_an_export_of(name: &str, export: &Request) {
    assert_eq!(export.method, "POST");
    let kind = export.fields.get("content-type");
    assert_eq!(kind, Some("application/x-protobuf"));
    let resource = attributes(&resource(export).attributes);
    assert_eq!(resource["service.name"], name);
    assert_eq!(resource["service.instance.id"].len(), 36);
    assert!(!resource["service.version"].is_empty());
}

#[test]
fn a_trace_that_begins_here_has_a_root_span() {
    let (upstream, collector) = (Upstream::saying(""), collector());
    let address = collector.address();
    let proxyd = Config::to(&upstream)
        .top(&format!(
            "observability {{ trace-context {{ begin #true }}; \
             otlp {{ endpoint \"http://{address}\"; metrics #false }} }}"
        ))
        .start();

    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);

    let [server, client] = spans(&collector, 2).try_into().unwrap();
    assert!(server.parent_span_id.is_empty());
    assert_eq!(client.parent_span_id, server.span_id);
    let own = format!("00-{}-{}-01", hex(&server.trace_id), hex(&client.span_id));
    let seen = upstream.last_request();
    assert_eq!(seen.fields.get("traceparent"), Some(&*own));
}

#[test]
fn a_trace_that_is_not_sampled_has_no_span_and_passes_unchanged() {
    let (upstream, collector) = (Upstream::saying(""), collector());
    let proxyd = tracing(&upstream, &collector, "").start();
    let mut client = proxyd.connect();
    let parent = traceparent("00");

    client.ask(get("/unsampled", &[("traceparent", &parent)]));
    let seen = upstream.last_request();
    assert_eq!(seen.fields.get("traceparent"), Some(&*parent));
    client.ask(get("/none", &[]));
    assert_eq!(upstream.last_request().fields.get("traceparent"), None);
    client.ask(sampled("/sampled"));

    let spans = spans(&collector, 2);
    assert_eq!(spans.len(), 2, "{spans:?}");
    assert_eq!(attributes(&spans[0].attributes)["url.path"], "/sampled");
}

#[test]
fn secrets_in_queries_are_not_exported() {
    let (upstream, collector) = (Upstream::saying(""), collector());
    let address = collector.address();
    let proxyd = Config::to(&upstream)
        .top(&format!(
            "observability {{ redact-query \"token\"; \
             otlp {{ endpoint \"http://{address}\"; metrics #false }} }}"
        ))
        .start();

    proxyd.connect().ask(sampled("/a?b=c&Token=s3cret"));

    let spans = spans(&collector, 2);
    let server = attributes(&spans[0].attributes);
    assert_eq!(server["url.query"], "b=c&Token=REDACTED");
    let body = collector.last_request().body;
    assert!(!body.windows(6).any(|part| part == b"s3cret"));
}

#[test]
fn each_attempt_is_a_span_that_its_target_has_as_parent() {
    let collector = collector();
    let first = AtomicBool::new(true);
    let upstream = Upstream::start(move |served| {
        while served.request().is_some() {
            let is_first = first.swap(false, Ordering::Relaxed);
            let status = if is_first { "503 No" } else { "200 OK" };
            served.send(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"));
        }
    });
    let retry = "retry { attempts 1; on \"503\"; budget-percent 100 }";
    let proxyd = Config::through(&upstream, retry)
        .top(&otlp(collector.address(), "metrics #false"))
        .start();

    assert_eq!(proxyd.connect().ask(sampled("/")).status, 200);

    let [server, first, second] = spans(&collector, 3).try_into().unwrap();
    assert!(server.status.is_none());
    assert_eq!(first.status.as_ref().unwrap().code, 2);
    assert!(second.status.is_none());
    let first_attributes = attributes(&first.attributes);
    assert_eq!(first_attributes["http.response.status_code"], "503");
    assert_eq!(first_attributes["error.type"], "503");
    let second_attributes = attributes(&second.attributes);
    assert_eq!(second_attributes["http.response.status_code"], "200");
    assert_eq!(second_attributes["http.request.resend_count"], "1");
    let seen = upstream.requests();
    let parents = seen
        .iter()
        .map(|one| one.fields.get("traceparent").unwrap());
    let expected = [&first, &second].map(|span| format!("00-{TRACE}-{}-01", hex(&span.span_id)));
    assert_eq!(parents.collect::<Vec<_>>(), expected);
}

#[test]
fn a_failure_of_a_target_is_an_error_and_a_refusal_is_none() {
    let collector = collector();
    let proxyd = Config::new()
        .route(
            "gone",
            "matches { path-prefix \"/gone\" }; upstream \"gone\"",
        )
        .upstream("gone", &format!("target \"{}\"", closed_port()))
        .top(&otlp(collector.address(), "metrics #false"))
        .start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(sampled("/gone")).status, 502);
    assert_eq!(client.ask(sampled("/other")).status, 404);

    let [failed, attempt, refused] = spans(&collector, 3).try_into().unwrap();

    let failed_attributes = attributes(&failed.attributes);
    assert_eq!(failed.status.unwrap().code, 2);
    assert_eq!(failed_attributes["error.type"], "connect_refused");
    assert_eq!(failed_attributes["http.response.status_code"], "502");
    assert_eq!(attempt.status.unwrap().code, 2);
    let attempt = attributes(&attempt.attributes);
    assert_eq!(attempt["error.type"], "connect_refused");
    assert!(!attempt.contains_key("http.response.status_code"));
    assert!(refused.status.is_none());
    assert_eq!(refused.name, "GET");
    let refused = attributes(&refused.attributes);
    assert_eq!(refused["proxyd.reason"], "route_not_found");
    assert!(!refused.contains_key("error.type"));
}

#[test]
fn a_field_that_the_route_sets_stays() {
    let (upstream, collector) = (Upstream::saying(""), collector());
    let set = "policies { request-headers { set \"traceparent\" \"own\" } }";
    let proxyd = Config::through(&upstream, set)
        .top(&otlp(collector.address(), "metrics #false"))
        .start();

    proxyd.connect().ask(sampled("/"));

    let seen = upstream.last_request();
    assert_eq!(seen.fields.all("traceparent"), ["own"]);
    assert_eq!(spans(&collector, 2).len(), 2);
}

#[test]
fn signals_that_are_off_are_not_exported() {
    let upstream = Upstream::saying("");
    let metrics_only = collector();
    let settings = "traces #false; interval-secs 1";
    let proxyd = Config::to(&upstream)
        .top(&otlp(metrics_only.address(), settings))
        .start();
    proxyd.connect().ask(sampled("/"));
    let seen = upstream.last_request();
    assert_eq!(seen.fields.get("traceparent"), Some(&*traceparent("01")));
    for request in metrics_only.wait_for_requests(2) {
        assert_eq!(request.target, "/v1/metrics");
    }
    assert_eq!(value(&page(&proxyd, ""), &dropped("queue_full")), None);

    let traces_only = collector();
    let settings = "metrics #false; interval-secs 1";
    let proxyd = Config::to(&upstream)
        .top(&otlp(traces_only.address(), settings))
        .start();
    let mut client = proxyd.connect();
    for count in 1..=3 {
        client.ask(sampled("/"));
        assert_eq!(spans(&traces_only, 2 * count).len(), 2 * count);
    }
    let requests = traces_only.requests();
    assert_eq!(spans_in(&requests).len(), 6);
    assert!(requests.iter().all(|one| one.target == "/v1/traces"));
    assert_eq!(traces_only.connections(), 1);
}

#[test]
fn the_response_of_a_local_answer_is_a_span_without_a_child() {
    let collector = collector();
    let proxyd = Config::new()
        .route("hello", "respond 200 \"hello\"")
        .top(&otlp(collector.address(), "metrics #false"))
        .start();

    assert_eq!(proxyd.connect().ask(sampled("/")).status, 200);

    let [server] = spans(&collector, 1).try_into().unwrap();
    assert_eq!(server.name, "GET hello");
}
