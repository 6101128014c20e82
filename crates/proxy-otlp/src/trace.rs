//! Spans of requests, by the semantic conventions for HTTP.

use crate::proto::{ExportTraceServiceRequest, KeyValue, ResourceSpans, ScopeSpans, Span, Status};
use crate::resource::{Resource, bytes, integer, millis, text, unix_nanos};
use prost::Message;
use proxy_telemetry::{AttemptSpan, Protocol, RequestSpan};

const SERVER: i32 = 2;
const CLIENT: i32 = 3;
const STATUS_ERROR: i32 = 2;
/// The trace is sampled, and it is known where the parent is.
const SAMPLED: u32 = 0x101;
/// The parent is in another process.
const REMOTE: u32 = 0x200;

/// Methods of RFC 9110 and RFC 5789; all others are `_OTHER`, because clients could invent any number of them.
const METHODS: [&str; 9] = [
    "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
];

/// The body of an export of the spans of `requests`.
pub fn encode_spans(resource: &Resource, requests: &[Box<RequestSpan>]) -> Vec<u8> {
    let spans = requests.iter().flat_map(|request| {
        let attempts = request.attempts.iter().enumerate();
        let attempts = attempts.map(|(number, attempt)| client_span(request, attempt, number));
        [server_span(request)].into_iter().chain(attempts)
    });
    let message = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource.message()),
            scope_spans: vec![ScopeSpans {
                scope: Some(resource.scope()),
                spans: spans.collect(),
            }],
        }],
    };
    message.encode_to_vec()
}

/// The span of a request from a client.
fn server_span(request: &RequestSpan) -> Span {
    let mut attributes = server_attributes(request);
    let RequestSpan {
        parent_id,
        status,
        reason,
        is_error,
        ..
    } = request;
    let error = is_error.then(|| error_type(*reason, *status));
    attributes.extend(error.as_deref().map(|error| text("error.type", error)));
    let method = span_method(&request.method);
    Span {
        trace_id: bytes(&request.trace_id),
        span_id: bytes(&request.span_id),
        parent_span_id: parent_id.as_ref().map_or_else(Vec::new, |id| bytes(id)),
        name: match &request.route {
            Some(route) => format!("{method} {route}"),
            None => method.to_owned(),
        },
        kind: SERVER,
        start_time_unix_nano: unix_nanos(request.started),
        end_time_unix_nano: unix_nanos(request.ended),
        attributes,
        status: error.map(error_status),
        flags: if parent_id.is_some() {
            SAMPLED | REMOTE
        } else {
            SAMPLED
        },
    }
}

/// All attributes of a request's span except `error.type`.
fn server_attributes(request: &RequestSpan) -> Vec<KeyValue> {
    let mut attributes = method_attributes(&request.method);
    let (scheme, default_port) = if request.is_tls {
        ("https", 443)
    } else {
        ("http", 80)
    };
    attributes.extend([
        text("url.scheme", scheme),
        text("url.path", &request.path),
        text("client.address", &request.client_ip.to_string()),
        text("network.peer.address", &request.peer_ip.to_string()),
        text("network.protocol.version", version(request.protocol)),
        text("proxyd.correlation_id", &request.correlation_id),
        integer("http.request.body.size", request.bytes_in),
        integer("http.response.body.size", request.bytes_out),
    ]);
    if let Some(authority) = &request.authority {
        attributes.extend(server(authority, Some(default_port)));
    }
    let route = request.route.as_deref();
    let target = request.attempts.last().map(|last| &*last.target);
    let texts = [
        ("url.query", request.query.as_deref()),
        ("user_agent.original", request.user_agent.as_deref()),
        ("http.route", route),
        ("proxyd.route", route),
        ("proxyd.upstream", request.upstream.as_deref()),
        ("proxyd.target", target),
        ("proxyd.reason", request.reason),
    ];
    attributes.extend(present(&texts));
    let times = [
        ("proxyd.queue_ms", request.queued),
        ("proxyd.connect_ms", request.connecting),
        ("proxyd.upstream_ms", request.upstream_took),
    ];
    for (key, time) in times {
        attributes.extend(time.map(|time| millis(key, time)));
    }
    let status = request.status;
    attributes.extend(status.map(|status| integer("http.response.status_code", status.into())));
    attributes
}

/// The span of an attempt at a target, a child of the request's.
fn client_span(request: &RequestSpan, attempt: &AttemptSpan, number: usize) -> Span {
    let AttemptSpan {
        span_id,
        started,
        ended,
        upstream,
        target,
        status,
        error,
    } = attempt;
    let mut attributes = method_attributes(&request.method);
    attributes.extend(server(target, None));
    attributes.extend([
        text("proxyd.upstream", upstream),
        text("proxyd.target", target),
    ]);
    if number > 0 {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        attributes.push(integer("http.request.resend_count", number));
    }
    attributes.extend(status.map(|status| integer("http.response.status_code", status.into())));
    let is_error = error.is_some() || status.is_some_and(|status| 400 <= status);
    let error = is_error.then(|| error_type(*error, *status));
    attributes.extend(error.as_deref().map(|error| text("error.type", error)));
    Span {
        trace_id: bytes(&request.trace_id),
        span_id: bytes(span_id),
        parent_span_id: bytes(&request.span_id),
        name: span_method(&request.method).to_owned(),
        kind: CLIENT,
        start_time_unix_nano: unix_nanos(*started),
        end_time_unix_nano: unix_nanos(*ended),
        attributes,
        status: error.map(error_status),
        flags: SAMPLED,
    }
}

fn error_status(error: String) -> Status {
    Status {
        message: error,
        code: STATUS_ERROR,
    }
}

/// The reason, or else the status of the response.
fn error_type(reason: Option<&str>, status: Option<u16>) -> String {
    match (reason, status) {
        (Some(reason), _) => reason.to_owned(),
        (None, Some(status)) => status.to_string(),
        (None, None) => "_OTHER".to_owned(),
    }
}

fn method_attributes(method: &str) -> Vec<KeyValue> {
    if METHODS.contains(&method) {
        return vec![text("http.request.method", method)];
    }
    vec![
        text("http.request.method", "_OTHER"),
        text("http.request.method_original", method),
    ]
}

/// The method in a span's name.
fn span_method(method: &str) -> &str {
    if METHODS.contains(&method) {
        method
    } else {
        "HTTP"
    }
}

fn version(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http10 => "1.0",
        Protocol::Http11 | Protocol::Tcp => "1.1",
        Protocol::Http2 => "2",
        Protocol::Http3 => "3",
    }
}

/// `server.address` and `server.port` of `host`, `host:port`, `[v6]:port` or a socket's path.
fn server(authority: &str, default_port: Option<u16>) -> Vec<KeyValue> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            match port.parse::<u16>() {
                Ok(port) => (host, Some(port)),
                Err(_) => (authority, None),
            }
        }
        Some(_) | None => (authority, None),
    };
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let mut attributes = vec![text("server.address", bare.unwrap_or(host))];
    let port = port.or(default_port);
    attributes.extend(port.map(|port| integer("server.port", port.into())));
    attributes
}

fn present(texts: &[(&str, Option<&str>)]) -> Vec<KeyValue> {
    let texts = texts.iter();
    texts
        .filter_map(|(key, value)| value.map(|value| text(key, value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::Value;
    use std::collections::BTreeMap;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    fn request() -> RequestSpan {
        RequestSpan {
            trace_id: *b"4bf92f3577b34da6a3ce929d0e0e4736",
            span_id: *b"00f067aa0ba902b7",
            parent_id: Some(*b"1111111111111111"),
            started: Duration::from_secs(1_700_000_000),
            ended: Duration::from_millis(1_700_000_000_250),
            method: "GET".into(),
            is_tls: false,
            path: "/a".into(),
            query: Some("b=c".into()),
            authority: Some("example.com:8080".into()),
            user_agent: Some("test".into()),
            protocol: Protocol::Http2,
            client_ip: Ipv4Addr::new(192, 0, 2, 1).into(),
            peer_ip: Ipv4Addr::LOCALHOST.into(),
            correlation_id: "id".into(),
            route: Some("api".into()),
            upstream: Some("app".into()),
            status: Some(502),
            reason: Some("connect_refused"),
            is_error: true,
            bytes_in: 1,
            bytes_out: 2,
            queued: Some(Duration::from_micros(1_500)),
            connecting: None,
            upstream_took: None,
            attempts: vec![
                AttemptSpan {
                    span_id: *b"2222222222222222",
                    started: Duration::from_secs(1_700_000_000),
                    ended: Duration::from_secs(1_700_000_000),
                    upstream: "app".into(),
                    target: "[::1]:81".into(),
                    status: None,
                    error: Some("connect_refused"),
                },
                AttemptSpan {
                    span_id: *b"3333333333333333",
                    started: Duration::from_secs(1_700_000_000),
                    ended: Duration::from_secs(1_700_000_000),
                    upstream: "app".into(),
                    target: "10.0.0.1:82".into(),
                    status: Some(404),
                    error: None,
                },
            ],
        }
    }

    fn resource() -> Resource {
        Resource {
            service_name: "edge".to_owned(),
            service_version: "1.2.3".to_owned(),
            instance_id: "i".to_owned(),
        }
    }

    fn spans(request: RequestSpan) -> Vec<Span> {
        let encoded = encode_spans(&resource(), &[Box::new(request)]);
        let mut message = ExportTraceServiceRequest::decode(&*encoded).unwrap();
        message.resource_spans[0].scope_spans.remove(0).spans
    }

    fn attributes(span: &Span) -> BTreeMap<String, String> {
        let text = |attribute: &KeyValue| {
            let value = attribute.value.clone().unwrap().value.unwrap();
            match value {
                Value::Text(text) => text,
                Value::Integer(number) => number.to_string(),
                Value::Decimal(number) => number.to_string(),
                Value::Flag(flag) => flag.to_string(),
            }
        };
        let attributes = span.attributes.iter();
        attributes.map(|one| (one.key.clone(), text(one))).collect()
    }

    #[test]
    fn a_request_is_a_server_span_with_a_child_for_each_attempt() {
        let [server, first, second] = spans(request()).try_into().unwrap();

        assert_eq!(server.trace_id.len(), 16);
        assert_eq!(server.trace_id[..2], [0x4b, 0xf9]);
        assert_eq!(server.span_id, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
        assert_eq!(server.parent_span_id, [0x11; 8]);
        assert_eq!((server.name.as_str(), server.kind), ("GET api", 2));
        let took = server.end_time_unix_nano - server.start_time_unix_nano;
        assert_eq!((took, server.flags), (250_000_000, 0x301));
        assert_eq!(server.status.as_ref().unwrap().code, 2);
        let expected = [
            ("client.address", "192.0.2.1"),
            ("error.type", "connect_refused"),
            ("http.request.body.size", "1"),
            ("http.request.method", "GET"),
            ("http.response.body.size", "2"),
            ("http.response.status_code", "502"),
            ("http.route", "api"),
            ("network.peer.address", "127.0.0.1"),
            ("network.protocol.version", "2"),
            ("proxyd.correlation_id", "id"),
            ("proxyd.queue_ms", "1.5"),
            ("proxyd.reason", "connect_refused"),
            ("proxyd.route", "api"),
            ("proxyd.target", "10.0.0.1:82"),
            ("proxyd.upstream", "app"),
            ("server.address", "example.com"),
            ("server.port", "8080"),
            ("url.path", "/a"),
            ("url.query", "b=c"),
            ("url.scheme", "http"),
            ("user_agent.original", "test"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(attributes(&server), BTreeMap::from(expected));

        for (span, id) in [(&first, 0x22), (&second, 0x33)] {
            assert_eq!((span.kind, span.flags), (3, 0x101));
            assert_eq!(span.span_id, [id; 8]);
            assert_eq!(span.parent_span_id, server.span_id);
            assert_eq!(span.trace_id, server.trace_id);
            assert_eq!(span.status.as_ref().unwrap().code, 2);
        }
        let first = attributes(&first);
        assert_eq!(first["error.type"], "connect_refused");
        assert_eq!(
            (&*first["server.address"], &*first["server.port"]),
            ("::1", "81")
        );
        assert!(!first.contains_key("http.request.resend_count"));
        let second = attributes(&second);
        assert_eq!(second["error.type"], "404");
        assert_eq!(second["http.request.resend_count"], "1");
    }

    #[test]
    fn a_root_without_an_error_has_neither_parent_nor_status() {
        let [server] = spans(RequestSpan {
            parent_id: None,
            status: Some(404),
            reason: Some("route_not_found"),
            is_error: false,
            route: None,
            attempts: Vec::new(),
            ..request()
        })
        .try_into()
        .unwrap();

        assert_eq!((server.parent_span_id.len(), server.flags), (0, 0x101));
        assert_eq!(
            (server.name.as_str(), server.status.is_some()),
            ("GET", false)
        );
        let attributes = attributes(&server);
        assert!(!attributes.contains_key("error.type"));
        assert_eq!(attributes["proxyd.reason"], "route_not_found");
    }

    #[test]
    fn a_method_that_clients_invent_is_other() {
        let spans = spans(RequestSpan {
            method: "get".into(),
            ..request()
        });
        assert_eq!(spans[0].name, "HTTP api");
        for span in &spans {
            let attributes = attributes(span);
            assert_eq!(attributes["http.request.method"], "_OTHER");
            assert_eq!(attributes["http.request.method_original"], "get");
        }
    }

    #[test]
    fn the_resource_names_the_process() {
        let encoded = encode_spans(&resource(), &[]);
        let message = ExportTraceServiceRequest::decode(&*encoded).unwrap();
        let resource = message.resource_spans[0].resource.clone().unwrap();
        let span = Span {
            attributes: resource.attributes,
            ..Span::default()
        };
        let attributes = attributes(&span);
        assert_eq!(attributes["service.name"], "edge");
        assert_eq!(attributes["service.version"], "1.2.3");
        assert_eq!(attributes["service.instance.id"], "i");
    }
}
