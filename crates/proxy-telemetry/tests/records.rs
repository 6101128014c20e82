//! A record is one line of JSON with the facts, for any input of a client.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proptest::prelude::*;
use proxy_errors::LimitType;
use proxy_telemetry::{
    AccessFormat, AccessLogRequest, AccessRecord, ErrorRecord, EscapedField, EscapedFields,
    EventFields, EventRecord, Level, LimitRecord, LineFormat, LineSyntax, LogCounters, LogWriter,
    OptionalField, Protocol, WorkerLog,
};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

struct Sent(Sender<Vec<u8>>);

impl Write for Sent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes.to_vec()).unwrap();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn written(write: impl FnOnce(&mut WorkerLog)) -> String {
    let (sent, all) = channel();
    let log = LogWriter::to_writer(Sent(sent), LogCounters::default(), |_| ()).unwrap();
    let mut worker = log.worker();
    write(&mut worker);
    drop(worker);
    log.close(Duration::from_secs(30));
    let bytes: Vec<u8> = all.iter().flatten().collect();
    String::from_utf8(bytes).unwrap()
}

fn parsed(line: &str) -> Value {
    assert_eq!(line.matches('\n').count(), 1, "{line}");
    serde_json::from_str(line.strip_suffix('\n').unwrap()).unwrap()
}

/// Names of a plan's parts, for records.
struct Plan {
    routes: EscapedFields,
    targets: EscapedFields,
}

impl Plan {
    fn new() -> Self {
        Self {
            routes: EscapedFields::from_routes(["other", "api"]),
            targets: EscapedFields::from_targets("app", ["10.0.0.1:8080"]),
        }
    }

    fn route(&self) -> Option<EscapedField<'_>> {
        self.routes.get(1)
    }

    fn target(&self) -> Option<EscapedField<'_>> {
        self.targets.get(0)
    }
}

fn full(plan: &Plan) -> AccessRecord<'_> {
    AccessRecord {
        at: Duration::from_millis(1_700_000_000_045),
        correlation_id: b"0190163d-8694-739b-aea5-966c26f8ad90",
        route: plan.route(),
        target: plan.target(),
        client_ip: b"2001:db8::1",
        status: 502,
        took: Duration::from_nanos(1_234_567),
        bytes_in: 10,
        bytes_out: 4_294_967_296,
        protocol: Protocol::Http2,
        reason: Some("connect_refused"),
        error_type: Some("Upstream"),
        retries: 1,
        retry_cause: Some("reset"),
        is_retry_refused: true,
        queued: Some(Duration::from_millis(20)),
        connecting: Some(Duration::from_micros(1_500)),
        upstream_took: Some(Duration::from_micros(999)),
        cache: Some("stale"),
        trace_id: Some(b"4bf92f3577b34da6a3ce929d0e0e4736"),
        agent: None,
    }
}

fn asked<'a>() -> AccessLogRequest<'a> {
    AccessLogRequest {
        method: b"POST",
        host: Some(b"example.com"),
        path: b"/a/b?c=d&token=s3cret",
        user_agent: Some(b"curl/8"),
        referer: Some(b"https://example.com/?token=s3cret"),
    }
}

fn access(
    record: &AccessRecord<'_>,
    facts: &AccessLogRequest<'_>,
    format: &AccessFormat,
) -> String {
    written(|log| {
        let access_head = log.access_head(facts, format).unwrap();
        log.access(record, access_head);
    })
}

/// A format with both optional fields, and without redaction.
fn everything() -> AccessFormat {
    AccessFormat {
        line: LineSyntax::Json,
        fields: vec![OptionalField::UserAgent, OptionalField::Referer],
        redact_query: Vec::new(),
    }
}

#[test]
fn an_access_record_has_every_field() {
    let format = AccessFormat {
        redact_query: vec!["Token".to_owned()],
        ..everything()
    };

    let line = access(&full(&Plan::new()), &asked(), &format);

    let expected = json!({
        "timestamp": "2023-11-14T22:13:20.045Z",
        "correlation_id": "0190163d-8694-739b-aea5-966c26f8ad90",
        "route": "api",
        "upstream": "app",
        "target": "10.0.0.1:8080",
        "client_ip": "2001:db8::1",
        "method": "POST",
        "host": "example.com",
        "path": "/a/b?c=d&token=REDACTED",
        "status": 502,
        "duration_ms": 1.234,
        "bytes_in": 10,
        "bytes_out": 4_294_967_296_u64,
        "protocol": "HTTP/2",
        "reason": "connect_refused",
        "error_type": "Upstream",
        "retries": 1,
        "retry_cause": "reset",
        "retry_refused": "budget",
        "queue_ms": 20.0,
        "connect_ms": 1.5,
        "upstream_ms": 0.999,
        "cache": "stale",
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "user_agent": "curl/8",
        "referer": "https://example.com/?token=REDACTED",
    });
    assert_eq!(parsed(&line), expected);
}

#[test]
fn the_fields_of_an_access_record_have_one_order() {
    let line = access(&full(&Plan::new()), &asked(), &everything());

    assert_eq!(
        line,
        concat!(
            r#"{"timestamp":"2023-11-14T22:13:20.045Z","#,
            r#""correlation_id":"0190163d-8694-739b-aea5-966c26f8ad90","#,
            r#""route":"api","upstream":"app","target":"10.0.0.1:8080","#,
            r#""client_ip":"2001:db8::1","method":"POST","host":"example.com","#,
            r#""path":"/a/b?c=d&token=s3cret","status":502,"duration_ms":1.234,"#,
            r#""bytes_in":10,"bytes_out":4294967296,"protocol":"HTTP/2","#,
            r#""reason":"connect_refused","error_type":"Upstream","retries":1,"#,
            r#""retry_cause":"reset","retry_refused":"budget","#,
            r#""queue_ms":20.000,"connect_ms":1.500,"#,
            r#""upstream_ms":0.999,"cache":"stale","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","#,
            r#""user_agent":"curl/8","#,
            r#""referer":"https://example.com/?token=s3cret"}"#,
            "\n"
        )
    );
}

#[test]
fn missing_values_are_left_out() {
    let plan = Plan::new();
    let record = AccessRecord {
        route: None,
        target: None,
        reason: None,
        error_type: None,
        retries: 0,
        retry_cause: None,
        is_retry_refused: false,
        queued: None,
        connecting: None,
        upstream_took: None,
        cache: None,
        trace_id: None,
        agent: None,
        ..full(&plan)
    };
    let facts = AccessLogRequest {
        host: None,
        user_agent: None,
        referer: None,
        ..asked()
    };

    let line = access(&record, &facts, &everything());

    let record = parsed(&line);
    let names: Vec<_> = record.as_object().unwrap().keys().collect();
    let expected = [
        "bytes_in",
        "bytes_out",
        "client_ip",
        "correlation_id",
        "duration_ms",
        "method",
        "path",
        "protocol",
        "status",
        "timestamp",
    ];
    assert_eq!(names, expected);
}

#[test]
fn optional_fields_are_written_only_where_asked_for() {
    let line = access(&full(&Plan::new()), &asked(), &AccessFormat::default());

    let record = parsed(&line);
    assert_eq!(
        (record.get("user_agent"), record.get("referer")),
        (None, None)
    );
    assert_eq!(record["path"], "/a/b?c=d&token=s3cret");
}

#[test]
fn an_error_record_has_the_fields_of_the_interface_in_order() {
    let record = ErrorRecord {
        level: Level::Error,
        at: Duration::from_secs(1_700_000_000),
        correlation_id: "c-1",
        error_type: "Upstream",
        http_status: 502,
        message: "Upstream error: app - \"refused\"",
        reason: "connect_refused",
        upstream: Some("app"),
        target: Some("10.0.0.1:80"),
        route: Some("api"),
        client_ip: "192.0.2.1",
        head: None,
        took: Duration::from_millis(12),
        field: Some("x-long"),
        setting: Some("limits.max-header-count"),
    };

    let line = written(|log| log.error(&record));

    assert_eq!(
        line,
        concat!(
            r#"{"level":"ERROR","timestamp":"2023-11-14T22:13:20.000Z","correlation_id":"c-1","#,
            r#""error_type":"Upstream","http_status":502,"#,
            r#""message":"Upstream error: app - \"refused\"","reason":"connect_refused","#,
            r#""upstream":"app","target":"10.0.0.1:80","route":"api","client_ip":"192.0.2.1","#,
            r#""duration_ms":12.000,"#,
            r#""field":"x-long","setting":"limits.max-header-count"}"#,
            "\n"
        )
    );
}

#[test]
fn a_combined_record_is_one_line_whatever_a_client_sent() {
    let format = AccessFormat {
        line: LineSyntax::Combined,
        redact_query: vec!["token".to_owned()],
        ..everything()
    };
    let plan = Plan::new();
    assert_eq!(
        access(&full(&plan), &asked(), &format),
        "2001:db8::1 - - [14/Nov/2023:22:13:20 +0000] \
         \"POST /a/b?c=d&token=REDACTED HTTP/2.0\" 502 4294967296 \
         \"https://example.com/?token=REDACTED\" \"curl/8\"\n"
    );

    let hostile = AccessLogRequest {
        path: b"/\" 200 1 \"",
        referer: None,
        user_agent: Some(b"a\nb\"\\\x7f"),
        ..asked()
    };
    let line = access(&full(&plan), &hostile, &format);
    assert_eq!(line.matches('\n').count(), 1, "{line}");
    assert!(
        line.contains(r#""POST /\" 200 1 \" HTTP/2.0" 502 "#),
        "{line}"
    );
    assert!(line.contains(r#" "-" "a\nb\"\\"#), "{line}");
}

#[test]
fn a_line_of_fields_is_one_line_whatever_a_client_sent() {
    let line = LineFormat::default()
        .field("client_ip")
        .text(" [")
        .common_time()
        .text("] ");
    let line = ["route", "target", "status", "cache", "agent", "user_agent"]
        .into_iter()
        .fold(line, |line, field| line.field(field).text("|"));
    let line = line.text("\"").field("path").text("\"");
    let format = AccessFormat {
        line: LineSyntax::Custom(Arc::new(line)),
        redact_query: vec!["token".to_owned()],
        ..everything()
    };
    let plan = Plan::new();
    assert_eq!(
        access(&full(&plan), &asked(), &format),
        "2001:db8::1 [14/Nov/2023:22:13:20 +0000] \
         api|10.0.0.1:8080|502|stale|-|curl/8|\"/a/b?c=d&token=REDACTED\"\n"
    );

    let hostile = AccessLogRequest {
        path: b"/\"},\"route\":\"x\n",
        user_agent: None,
        ..asked()
    };
    let line = access(&full(&plan), &hostile, &format);
    assert_eq!(line.matches('\n').count(), 1, "{line}");
    assert!(line.contains("] api|"), "{line}");
    assert!(
        line.ends_with("|-|-|\"/\\\"},\\\"route\\\":\\\"x\\n\"\n"),
        "{line}"
    );
}

#[test]
fn an_error_record_names_its_request_without_redacted_values() {
    let format = AccessFormat {
        line: LineSyntax::Json,
        fields: Vec::new(),
        redact_query: vec!["token".to_owned()],
    };
    let line = written(|log| {
        let head = log.access_head(&asked(), &format);
        log.error(&ErrorRecord {
            level: Level::Warn,
            at: Duration::ZERO,
            correlation_id: "c-1",
            error_type: "RouteNotFound",
            http_status: 404,
            message: "",
            reason: "route_not_found",
            upstream: None,
            target: None,
            route: None,
            client_ip: "192.0.2.1",
            head: head.as_ref(),
            took: Duration::ZERO,
            field: None,
            setting: None,
        });
    });

    let record = parsed(&line);
    assert_eq!(record["client_ip"], "192.0.2.1");
    assert_eq!(record["method"], "POST");
    assert_eq!(record["host"], "example.com");
    assert_eq!(record["path"], "/a/b?c=d&token=REDACTED");
    assert_eq!(record["duration_ms"], 0.0);
}

fn header_count() -> LimitRecord<'static> {
    LimitRecord {
        at: Duration::ZERO,
        message: "too many header fields",
        repeated: 0,
        limit_type: Some(LimitType::HeaderCount),
        limit: 100,
        actual: 120,
        client_ip: Ipv4Addr::new(192, 0, 2, 1).into(),
        trace_id: Some("c-1"),
        correlation_id: Some("d-1"),
        setting: Some("limits.max-header-count"),
    }
}

#[test]
fn a_flood_over_a_limit_is_a_few_lines_and_their_number() {
    let second = Duration::from_secs(1);
    let lines = written(|log| {
        for number in 0..1_000 {
            log.limit(&LimitRecord {
                actual: number,
                ..header_count()
            });
        }
        log.limit(&LimitRecord {
            client_ip: Ipv4Addr::new(192, 0, 2, 2).into(),
            ..header_count()
        });
        log.sum_up(4 * second);
        log.sum_up(5 * second);
        log.limit(&LimitRecord {
            at: 6 * second,
            ..header_count()
        });
    });

    let records: Vec<_> = lines.split_inclusive('\n').map(parsed).collect();
    let logged = |record: &Value| (record["actual"].clone(), record.get("repeated").cloned());
    let logged: Vec<_> = records.iter().map(logged).collect();
    let mut expected: Vec<_> = (0..5).map(|actual| (json!(actual), None)).collect();
    expected.push((json!(120), None));
    expected.push((json!(999), Some(json!(995))));
    expected.push((json!(120), None));
    assert_eq!(logged, expected);
    let message = "too many header fields … repeated 995 times";
    assert_eq!(records[6]["message"], message);
    assert_eq!(records[6]["client_ip"], "192.0.2.1");
}

#[test]
fn repetitions_are_written_at_the_latest_when_the_log_ends() {
    let lines = written(|log| {
        // More clients than the log distinguishes.
        for client in 0..2_000_u32 {
            log.limit(&LimitRecord {
                client_ip: Ipv4Addr::from(client).into(),
                ..header_count()
            });
        }
    });

    let records: Vec<_> = lines.split_inclusive('\n').map(parsed).collect();
    assert_eq!(records.len(), 256 + 5 + 1);
    assert_eq!(records.last().unwrap()["repeated"], 2_000 - 256 - 5);
}

#[test]
fn a_limit_record_has_the_limit_and_the_value() {
    let record = header_count();

    let line = written(|log| log.limit(&record));

    let expected = json!({
        "level": "WARN",
        "timestamp": "1970-01-01T00:00:00.000Z",
        "message": "too many header fields",
        "limit_type": "header_count",
        "limit": 100,
        "actual": 120,
        "client_ip": "192.0.2.1",
        "trace_id": "c-1",
        "correlation_id": "d-1",
        "setting": "limits.max-header-count",
    });
    assert_eq!(parsed(&line), expected);
}

fn hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

proptest! {
    #[test]
    fn any_input_of_a_client_is_one_line_without_controls(
        method: Vec<u8>,
        host: Vec<u8>,
        path: Vec<u8>,
        agent in "\\PC*|[\\x00-\\x9f\u{2000}-\u{2070}\"\\\\]*",
        secret: bool,
    ) {
        let facts = AccessLogRequest {
            method: &method,
            host: Some(&host),
            path: &path,
            user_agent: Some(agent.as_bytes()),
            ..asked()
        };
        let format = AccessFormat {
            line: LineSyntax::Json,
            fields: vec![OptionalField::UserAgent],
            redact_query: if secret { vec!["token".to_owned()] } else { Vec::new() },
        };

        let line = access(&full(&Plan::new()), &facts, &format);

        prop_assert!(!line.trim_end_matches('\n').chars().any(hidden));
        let record = parsed(&line);
        prop_assert_eq!(record["user_agent"].as_str(), Some(agent.as_str()));
    }

    #[test]
    fn a_secret_never_appears_whatever_stands_around_it(
        before in "[a-z=&;%?]{0,20}",
        after in "([&][a-z=&;%?]{0,20})?",
        name in "token|TOKEN|%74oken|t%6fken",
    ) {
        let path = format!("/?{before}&{name}=S3;CRET{after}");
        let facts = AccessLogRequest { path: path.as_bytes(), ..asked() };
        let format = AccessFormat {
            line: LineSyntax::Json,
            fields: Vec::new(),
            redact_query: vec!["token".to_owned()],
        };

        let line = access(&full(&Plan::new()), &facts, &format);

        prop_assert!(!line.contains("S3") && !line.contains("CRET"), "{}", line);
    }
}

#[test]
fn an_event_is_one_line_with_its_fields_behind_its_message() {
    let mut fields = EventFields::default();
    fields.text("ad\"dress", "[::1]:80\n");
    fields.plain("id", -7);
    fields.plain("done", true);
    let mut record = EventRecord {
        level: "WARN",
        at: Duration::from_millis(1_700_000_000_007),
        message: "it \"happened\"",
        repeated: 0,
        fields: &fields,
    };

    let line = written(|log| log.event(&record));

    assert_eq!(line.as_bytes(), record.line());
    let whole = json!({
        "level": "WARN",
        "timestamp": "2023-11-14T22:13:20.007Z",
        "message": "it \"happened\"",
        "ad\"dress": "[::1]:80\n",
        "id": -7,
        "done": true,
    });
    assert_eq!(parsed(&line), whole);
    record.repeated = 12;
    let repeated = parsed(&written(|log| log.event(&record)));
    assert_eq!(repeated["message"], "it \"happened\" … repeated 12 times");
    assert_eq!(repeated["repeated"], 12);
}
