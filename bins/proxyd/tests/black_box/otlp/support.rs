//! A collector that decodes exports, and configurations with exports to it.
#![expect(clippy::disallowed_methods, reason = "a test waits until a deadline")]

use crate::support::Config;
use prost::Message;
use proxy_otlp::proto::{
    ExportMetricsServiceRequest, ExportTraceServiceRequest, KeyValue, Metric, Resource, Span, Value,
};
use proxy_testkit::{EVENT_TIMEOUT, Proxyd, RawClient, Request, Upstream, get};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Instant;

pub(super) const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
pub(super) const PARENT: &str = "00f067aa0ba902b7";

/// Formats a `traceparent` with these flags.
pub(super) fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT}-{flags}")
}

/// Formats a sampled request.
pub(super) fn sampled(target: &str) -> Vec<u8> {
    get(target, &[("traceparent", &traceparent("01"))])
}

/// Starts a collector that accepts everything.
pub(super) fn collector() -> Upstream {
    Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
}

/// Formats a configuration of exports to `collector`.
pub(super) fn otlp(collector: SocketAddr, settings: &str) -> String {
    format!("observability {{ otlp {{ endpoint \"http://{collector}\"; {settings} }} }}")
}

/// Creates a configuration with one route to `upstream`, and exports of traces only.
pub(super) fn tracing(upstream: &Upstream, collector: &Upstream, settings: &str) -> Config {
    let settings = format!("metrics #false; {settings}");
    Config::to(upstream).top(&otlp(collector.address(), &settings))
}

/// Decodes the spans in these requests.
pub(super) fn spans_in(requests: &[Request]) -> Vec<Span> {
    let traces = requests.iter().filter(|one| one.target == "/v1/traces");
    let exports = traces.map(|one| ExportTraceServiceRequest::decode(&*one.body).unwrap());
    let scopes = exports.flat_map(|export| export.resource_spans);
    let scopes = scopes.flat_map(|resource| resource.scope_spans);
    scopes.flat_map(|scope| scope.spans).collect()
}

/// Waits until `count` spans have arrived; returns all spans.
#[track_caller]
pub(super) fn spans(collector: &Upstream, count: usize) -> Vec<Span> {
    let mut requests = 1;
    loop {
        let seen = collector.wait_for_requests(requests);
        let spans = spans_in(&seen);
        if count <= spans.len() {
            return spans;
        }
        requests = seen.len() + 1;
    }
}

/// Decodes the metrics in a request, by name.
pub(super) fn metrics_in(request: &Request) -> BTreeMap<String, Metric> {
    assert_eq!(request.target, "/v1/metrics");
    let mut export = ExportMetricsServiceRequest::decode(&*request.body).unwrap();
    let metrics = export.resource_metrics[0].scope_metrics.remove(0).metrics;
    let metrics = metrics.into_iter();
    metrics
        .map(|metric| (metric.name.clone(), metric))
        .collect()
}

/// Decodes the resource of exported spans.
pub(super) fn resource(request: &Request) -> Resource {
    let mut export = ExportTraceServiceRequest::decode(&*request.body).unwrap();
    export.resource_spans.remove(0).resource.unwrap()
}

/// Formats attributes as texts.
pub(super) fn attributes(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| match attribute.value.clone().unwrap().value.unwrap() {
        Value::Text(text) => text,
        Value::Integer(number) => number.to_string(),
        Value::Decimal(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
    };
    let attributes = attributes.iter();
    attributes.map(|one| (one.key.clone(), text(one))).collect()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Requests the metrics page.
pub(super) fn page(proxyd: &Proxyd, fields: &str) -> String {
    let mut client = RawClient::connect(proxyd.admin_address());
    // The admin interface refuses unknown hosts.
    let request = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    client.ask(request).text()
}

/// Returns the value of a series, which is written with its labels.
pub(super) fn value(page: &str, series: &str) -> Option<f64> {
    let mut values = page.lines().filter_map(|line| line.strip_prefix(series));
    values.find_map(|value| value.strip_prefix(' ')?.parse().ok())
}

/// Waits until a series has at least this value; returns the value.
#[track_caller]
pub(super) fn reaches(proxyd: &Proxyd, series: &str, least: f64) -> Option<f64> {
    let end = Instant::now() + EVENT_TIMEOUT;
    loop {
        let value = value(&page(proxyd, ""), series);
        if value.is_some_and(|value| least <= value) {
            return value;
        }
        assert!(Instant::now() < end, "{series} is {value:?}");
    }
}

/// Returns the series of spans that were dropped for this reason.
pub(super) fn dropped(reason: &str) -> String {
    format!("proxy_otlp_spans_dropped_total{{reason=\"{reason}\"}}")
}
