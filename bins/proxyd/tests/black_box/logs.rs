//! Contents and destinations of access log and error log.

use crate::support::{BINARY, Config, METRICS, metric, pause, post, request};
use proxy_testkit::{Launch, RawClient, Record, Upstream, closed_port, get};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

#[track_caller]
fn is_timestamp(text: &str) {
    let bytes = text.as_bytes();
    assert!(text.len() >= 20 && text.ends_with('Z'), "{text}");
    assert_eq!(
        (bytes[4], bytes[10], bytes[13]),
        (b'-', b'T', b':'),
        "{text}"
    );
}

#[test]
fn an_access_record_has_the_whole_request() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream).start();

    let fields = "User-Agent: probe/1.0\r\nReferer: http://from.test/x\r\nContent-Length: 5\r\n";
    let response = proxyd
        .connect()
        .ask(request("PUT /a/b?c=d", fields, "hello"));

    let record = proxyd.access_record(&response.correlation_id());
    for (field, value) in [
        ("route", "all"),
        ("upstream", "u"),
        ("client_ip", "127.0.0.1"),
        ("method", "PUT"),
        ("host", "a.test"),
        ("path", "/a/b?c=d"),
        ("protocol", "HTTP/1.1"),
        ("user_agent", "probe/1.0"),
        ("referer", "http://from.test/x"),
        ("target", &upstream.address().to_string()),
    ] {
        assert_eq!(record.text(field), value, "{field}");
    }
    assert_eq!(record.number("status"), Some(200.0));
    assert_eq!(record.number("bytes_in"), Some(5.0));
    assert_eq!(record.number("bytes_out"), Some(5.0));
    assert!(record.number("upstream_ms") <= record.number("duration_ms"));
    is_timestamp(record.text("timestamp"));
    assert!(!record.has("reason") && !record.has("error_type") && !record.has("retries"));
}

#[test]
fn an_error_record_has_the_fields_of_the_contract() {
    let (address, config) = (closed_port(), Config::new());
    let proxyd = config
        .route("all", r#"upstream "u""#)
        .upstream("u", &format!("target \"{address}\""))
        .start();

    let response = proxyd.connect().ask(get("/a?b=c", &[]));

    let record = proxyd.error_record(&response.correlation_id());
    for (field, value) in [
        ("target", address.to_string().as_str()),
        ("method", "GET"),
        ("host", "a.test"),
        ("path", "/a?b=c"),
        ("level", "ERROR"),
        ("correlation_id", response.correlation_id().as_str()),
        ("error_type", "Upstream"),
        ("upstream", "u"),
        ("route", "all"),
        ("client_ip", "127.0.0.1"),
        ("reason", "connect_refused"),
    ] {
        assert_eq!(record.text(field), value, "{field}");
    }
    assert_eq!(record.number("http_status"), Some(502.0));
    assert!(record.text("message").starts_with("Upstream error: u - "));
    assert!(record.has("duration_ms"));
    is_timestamp(record.text("timestamp"));
}

#[test]
fn a_limit_record_has_the_fields_of_the_contract() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream)
        .top("limits { max-body-size-bytes 3 }")
        .start();

    let response = proxyd.connect().ask(post("/", "four"));

    let record = proxyd.limit_record(&response.correlation_id());
    assert_eq!(record.text("level"), "WARN");
    assert_eq!(record.number("limit"), Some(3.0));
    assert_eq!(record.number("actual"), Some(4.0));
    assert_eq!(record.text("client_ip"), "127.0.0.1");
    assert!(record.text("message").contains("body_size"));
}

#[test]
fn every_request_leaves_exactly_one_access_record() {
    let upstream = Upstream::saying("");
    let mut proxyd = Config::to(&upstream)
        .top("system { worker-threads 2 }")
        .start();

    for _ in 0..3 {
        let mut client = proxyd.connect();
        for _ in 0..10 {
            let _ = client.ask(get("/", &[]));
        }
    }
    let _ = proxyd.connect().ask("GET / HTTP/1.1\r\n\r\n");
    proxyd.terminate();
    proxyd.wait();
    let _ = proxyd.stdout().try_find(0, |_| false);

    let records = proxyd.stdout().records();
    let access = records.iter().filter(|record| record.has("status"));
    assert_eq!(access.count(), 31);
}

#[test]
fn records_are_in_the_order_in_which_requests_ended() {
    let upstream = Upstream::saying("");
    let mut proxyd = Config::to(&upstream)
        .top("system { worker-threads 1 }")
        .start();

    let mut client = proxyd.connect();
    let ended = (0..60).map(|number| match number % 7 {
        // Such input never becomes a request, and is logged by separate code.
        6 => proxyd.connect().ask("GET / HTTP/1.1\r\n\r\n"),
        _ => client.ask(get("/", &[])),
    });
    let ended: Vec<String> = ended.map(|response| response.correlation_id()).collect();
    drop(client);
    proxyd.terminate();
    proxyd.wait();
    let _ = proxyd.stdout().try_find(0, |_| false);

    let records = proxyd.stdout().records();
    let access = records.iter().filter(|record| record.has("status"));
    let written: Vec<&str> = access.map(|record| record.text("correlation_id")).collect();
    assert_eq!(written, ended);
}

#[test]
fn bytes_of_clients_cannot_break_a_line() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    let agent = b"evil\" , \"status\":500,\xE2\x80\xA8\x80\t\xC2\x9B\xE2\x80\xAE end";
    let mut text = b"GET /?q=x HTTP/1.1\r\nHost: a.test\r\nUser-Agent: ".to_vec();
    text.extend_from_slice(agent);
    text.extend_from_slice(b"\r\n\r\n");
    let response = proxyd.connect().ask(text);

    let record = proxyd.access_record(&response.correlation_id());
    assert_eq!(record.number("status"), Some(200.0));
    for line in proxyd.stdout().lines() {
        assert!(Record::parse(&line).is_some(), "{line}");
        let odd = |letter: char| letter.is_control() || "\u{2028}\u{202E}".contains(letter);
        assert!(!line.contains(odd), "{line:?}");
    }
}

#[test]
fn secrets_are_never_written() {
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream);
    let proxyd = config
        .top(r#"observability { redact-query "token" "Key" }"#)
        .start();

    let target = "/login?token=s3cret&a=b&KEY=s3cret&x=token";
    let fields = [
        ("Authorization", "Bearer s3cret"),
        ("Cookie", "session=s3cret"),
        ("Referer", "http://a.test/?token=s3cret"),
    ];
    let response = proxyd.connect().ask(get(target, &fields));

    let record = proxyd.access_record(&response.correlation_id());
    assert!(record.text("path").contains("a=b"), "{record:?}");
    assert_eq!(
        upstream.last_request().target,
        target,
        "the upstream still gets them"
    );
    for line in proxyd.stdout().lines() {
        assert!(!line.contains("s3cret"), "{line}");
    }
}

#[test]
fn logs_go_to_files() {
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream).route("own", r#"upstream "none"; matches { path "/none" }"#);
    let config = config.upstream("none", &format!("target \"{}\"", closed_port()));
    let config = config.top(
        r#"observability { access-log { path "access.log" }; error-log { path "error.log" } }"#,
    );
    let mut proxyd = config.start();

    let fine = proxyd.connect().ask(get("/", &[])).correlation_id();
    let failed = proxyd.connect().ask(get("/none", &[])).correlation_id();
    proxyd.terminate();
    proxyd.wait();

    let access = fs::read_to_string(proxyd.folder().join("access.log")).unwrap();
    let errors = fs::read_to_string(proxyd.folder().join("error.log")).unwrap();
    assert!(access.contains(&fine) && access.contains(&failed));
    assert!(errors.contains(&failed) && !errors.contains(&fine));
    assert!(
        !proxyd
            .stdout()
            .lines()
            .iter()
            .any(|line| line.contains(&failed))
    );
}

#[test]
fn an_access_log_in_the_combined_format_has_a_line_for_each_request() {
    let upstream = Upstream::echo();
    let config = Config::to(&upstream).route("own", r#"upstream "none"; matches { path "/none" }"#);
    let config = config.upstream("none", &format!("target \"{}\"", closed_port()));
    let mut proxyd = config
        .top(
            r#"observability {
                access-log { path "access.log"; format "combined" }
                error-log { path "error.log" }
            }"#,
        )
        .start();

    let fields = "User-Agent: probe \"1\"\r\nReferer: http://from.test/x\r\nContent-Length: 5\r\n";
    proxyd.connect().ask(request("PUT /a?b=c", fields, "hello"));
    let failed = proxyd.connect().ask(get("/none", &[])).correlation_id();
    proxyd.terminate();
    proxyd.wait();

    let access = fs::read_to_string(proxyd.folder().join("access.log")).unwrap();
    let lines: Vec<(&str, &str)> = access
        .lines()
        .map(|line| line.split_once(" +0000] ").unwrap())
        .collect();
    let [put, none] = *lines else {
        panic!("{access}");
    };
    assert!(put.0.starts_with("127.0.0.1 - - ["), "{access}");
    assert_eq!(
        put.1,
        r#""PUT /a?b=c HTTP/1.1" 200 5 "http://from.test/x" "probe \"1\"""#
    );
    assert!(
        none.1.starts_with(r#""GET /none HTTP/1.1" 502 "#),
        "{access}"
    );
    // Error records are still JSON, and identify their request.
    let errors = fs::read_to_string(proxyd.folder().join("error.log")).unwrap();
    let error = errors.lines().find(|line| line.contains(&failed)).unwrap();
    assert!(error.contains(r#""path":"/none""#), "{error}");
}

#[test]
fn logs_go_to_a_syslog_server() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("log");
    let server = UnixDatagram::bind(&socket).unwrap();
    server
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream)
        .top(&format!(
            r#"observability {{ access-log {{ path "syslog:{}" }} }}"#,
            socket.display()
        ))
        .start();
    let id = proxyd.connect().ask(get("/a", &[])).correlation_id();
    let mut buffer = [0; 4096];
    let length = server.recv(&mut buffer).unwrap();
    let message = String::from_utf8_lossy(&buffer[..length]);
    assert!(message.starts_with("<30>proxyd["), "{message}");
    let (_, record) = message.split_once("]: ").unwrap();
    assert_eq!(Record::parse(record).unwrap().text("correlation_id"), id);
}

#[test]
fn an_access_log_in_a_format_of_fields_has_their_values() {
    let upstream = Upstream::echo();
    let fields = proxy_model::LOG_FIELDS.map(|field| format!("{{{field}}}"));
    let format = fields.join("|");
    let mut proxyd = Config::to(&upstream)
        .top(&format!(
            r#"observability {{ access-log {{ path "access.log"; format "{format}" }} }}"#
        ))
        .start();
    let header = "User-Agent: probe\r\nReferer: http://from.test/x\r\nContent-Length: 5\r\n";
    proxyd.connect().ask(request("PUT /a?b=c", header, "hello"));
    proxyd.terminate();
    proxyd.wait();

    let access = fs::read_to_string(proxyd.folder().join("access.log")).unwrap();
    let line = access.strip_suffix('\n').unwrap();
    let values: Vec<&str> = line.split('|').collect();
    let named = proxy_model::LOG_FIELDS.into_iter().zip(values);
    let named: BTreeMap<&str, &str> = named.collect();
    for (field, expected) in [
        ("client_ip", "127.0.0.1"),
        ("method", "PUT"),
        ("path", "/a?b=c"),
        ("status", "200"),
        ("bytes_in", "5"),
        ("bytes_out", "5"),
        ("protocol", "HTTP/1.1"),
        ("user_agent", "probe"),
        ("referer", "http://from.test/x"),
        ("reason", "-"),
    ] {
        assert_eq!(named[field], expected, "{field} in {line}");
    }
    // A field that no record has would be absent from each line.
    for field in [
        "timestamp",
        "time_common",
        "correlation_id",
        "route",
        "upstream",
        "target",
    ] {
        assert_ne!(named[field], "-", "{field} in {line}");
    }
}

/// Sends requests until the file contains a record of one.
#[track_caller]
fn wait_for_line_in(path: &Path, proxyd: &proxy_testkit::Proxyd) {
    let mut client = proxyd.connect();
    for _ in 0..100 {
        let id = client.ask(get("/", &[])).correlation_id();
        pause(&mut client, 150);
        if fs::read_to_string(path).is_ok_and(|text| text.contains(&id)) {
            return;
        }
    }
    panic!("nothing is written to {}", path.display());
}

#[test]
fn a_moved_log_is_reopened_by_its_signal() {
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream);
    let proxyd = config
        .top(r#"observability { access-log { path "access.log" } }"#)
        .start();
    let (log, moved) = (
        proxyd.folder().join("access.log"),
        proxyd.folder().join("access.log.1"),
    );
    wait_for_line_in(&log, &proxyd);

    fs::rename(&log, &moved).unwrap();
    wait_for_line_in(&moved, &proxyd);
    proxyd.signal(Signal::USR1);

    wait_for_line_in(&log, &proxyd);
}

#[test]
fn a_disabled_access_log_writes_nothing() {
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream);
    let mut proxyd = config
        .top("observability { access-log { enabled #false } }")
        .start();

    let response = proxyd.connect().ask(get("/", &[]));
    assert_eq!(response.status, 200);
    assert_eq!(proxyd.connect().ask("GET / HTTP/1.1\r\n\r\n").status, 400);
    proxyd.terminate();
    proxyd.wait();

    let _ = proxyd.stdout().try_find(0, |_| false);
    assert!(
        !proxyd
            .stdout()
            .records()
            .iter()
            .any(|record| record.has("status"))
    );
}

#[test]
fn records_below_the_level_are_not_written() {
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream)
        .route("gone", r#"upstream "none"; matches { path "/none" }"#)
        .upstream("none", &format!("target \"{}\"", closed_port()))
        .top("observability { error-log { level \"error\" } }");
    let mut proxyd = config.start();

    let warned = proxyd
        .connect()
        .ask("GET / HTTP/1.1\r\n\r\n")
        .correlation_id();
    let failed = proxyd.connect().ask(get("/none", &[])).correlation_id();
    proxyd.terminate();
    proxyd.wait();
    let _ = proxyd.stdout().try_find(0, |_| false);

    let records = proxyd.stdout().records();
    let levels_of = |id: &str| -> Vec<String> {
        let own = records
            .iter()
            .filter(|record| record.text("correlation_id") == id);
        own.map(|record| record.text("level").to_owned()).collect()
    };
    assert!(levels_of(&failed).contains(&"ERROR".to_owned()));
    assert!(
        !levels_of(&warned).contains(&"WARN".to_owned()),
        "{records:?}"
    );
}

/// Sends `count` requests, several at the same time.
fn flood(proxyd: &proxy_testkit::Proxyd, count: usize) {
    let mut client = proxyd.connect();
    let path = format!("/{}", "x".repeat(1000));
    for _ in 0..count / 20 {
        client.send(get(&path, &[]).repeat(20));
        for _ in 0..20 {
            assert_eq!(client.response().status, 404);
        }
    }
}

#[test]
fn a_reader_that_stops_reading_costs_lines_and_no_request() {
    let config = Config::new().route("metrics", &format!("priority 100; {METRICS}"));
    let mut proxyd = Launch::new(BINARY, &config.kdl()).hold_stdout().start();

    flood(&proxyd, 20_000);

    let mut client = proxyd.connect();
    let lost = |client: &mut _| metric(client, "proxy_log_lines_lost_total{log=\"access\"}");
    let mut before = lost(&mut client);
    assert!(before > 0.0, "the pipe and the buffers hold some 20 MB?");
    proxyd.read_stdout();
    // Lines are lost until the reader has made room, and the next tick has come.
    let written_again = loop {
        let asked = client.ask(get("/again", &[])).correlation_id();
        pause(&mut client, 300);
        let after = lost(&mut client);
        if std::mem::replace(&mut before, after) >= after {
            break asked;
        }
    };
    assert_eq!(
        proxyd.access_record(&written_again).number("status"),
        Some(404.0)
    );
}

#[test]
fn lines_over_the_buffer_are_dropped_and_counted() {
    let config = Config::new()
        .route("metrics", &format!("priority 100; {METRICS}"))
        .top("observability { access-log { buffer-lines 10 } }");
    let proxyd = Launch::new(BINARY, &config.kdl()).hold_stdout().start();

    // A pipe holds 64 KiB, about 50 of these lines.
    flood(&proxyd, 400);

    let mut client = proxyd.connect();
    let lost = metric(&mut client, "proxy_log_lines_lost_total{log=\"access\"}");
    assert!(lost > 0.0, "more than 10 lines wait for the reader");
}

#[test]
fn an_unread_stdout_does_not_keep_a_process() {
    let config = Config::new();
    let mut proxyd = Launch::new(BINARY, &config.kdl()).hold_stdout().start();

    // A pipe holds 64 KiB, about 50 of these lines.
    flood(&proxyd, 400);
    proxyd.terminate();

    assert!(proxyd.wait().success());
}

#[test]
fn lines_of_two_logs_in_one_slow_pipe_do_not_mix() {
    let upstream = format!("target \"{}\"", closed_port());
    let config = Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &upstream)
        .top("worker-threads 2");
    let mut proxyd = Launch::new(BINARY, &config.kdl()).hold_stdout().start();
    // Each request writes a line to both logs. A pipe holds 64 KiB, and may take only a part of a
    // long line.
    let address = proxyd.address();
    let query = "q".repeat(5_000);
    let clients: Vec<_> = (0..4)
        .map(|number: usize| {
            let target = if number == 0 { &query } else { "short" };
            let request = get(&format!("/?{target}"), &[]);
            std::thread::spawn(move || {
                let mut client = RawClient::connect(address);
                for _ in 0..200 {
                    assert_eq!(client.ask(&request).status, 502);
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }

    proxyd.read_stdout();
    proxyd.terminate();
    assert!(proxyd.wait().success());

    let lines = proxyd.stdout().to_the_end();
    assert!(lines.len() >= 800, "{}", lines.len());
    for line in &lines {
        assert!(Record::parse(line).is_some(), "{line}");
    }
}

#[test]
fn error_records_name_their_requests_though_no_access_log_does() {
    let hanging_up = Upstream::start(|served| drop(served.request()));
    let (refused, other) = (closed_port(), hanging_up.address());
    let logs = r#"observability { access-log { enabled #false }; redact-query "token" }"#;
    let proxyd = Config::new()
        .route(
            "refused",
            r#"matches { path "/refused" }; upstream "refused""#,
        )
        .route(
            "edited",
            r#"matches { path "/edited" }; upstream "other"
               request-headers { set "X-A" "1" }"#,
        )
        .upstream("refused", &format!("target \"{refused}\""))
        .upstream("other", &format!("target \"{other}\""))
        .top(logs)
        .start();
    for (path, target) in [
        ("/none", None),
        ("/refused", Some(refused)),
        ("/edited", Some(other)),
    ] {
        let asked = format!("{path}?token=s3cret");
        let response = proxyd.connect().ask(get(&asked, &[]));

        let record = proxyd.error_record(&response.correlation_id());
        assert_eq!(record.text("method"), "GET");
        assert_eq!(record.text("host"), "a.test");
        assert_eq!(record.text("path"), format!("{path}?token=REDACTED"));
        let target = target.map(|target| target.to_string());
        let logged = record.has("target").then(|| record.text("target"));
        assert_eq!(logged, target.as_deref(), "{path}");
    }
    let response = proxyd
        .connect()
        .ask("GET /bad HTTP/1.1\r\nHost: a.test\r\nX : 1\r\n\r\n");
    let record = proxyd.error_record(&response.correlation_id());
    assert_eq!(record.text("path"), "/bad");
}
