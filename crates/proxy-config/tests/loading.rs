//! A valid text results in its model; faults are reported once, in order, with their places.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proxy_config::{
    DiagnosticCode, Files, Loaded, Report, embedded, load, load_bundle, load_from, parse,
};
use proxy_model::{
    BindAddress, BuiltinHandler, Host, ListenerProtocol, LoadBalancing, LogLevel, LogTarget, Model,
    OtlpCompression, PathPolicy, Service, ServiceForm, UpstreamProtocol,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

fn fixture(name: &str) -> Model {
    let path = Path::new("../../fixtures/config/valid").join(name);
    load(&path).unwrap().model
}

fn in_memory(files: &[(&str, &str)]) -> Result<Loaded, Report> {
    let files: BTreeMap<String, Vec<u8>> = files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()))
        .collect();
    load_from(Files::Memory(&files), "main.kdl")
}

fn codes(report: &Report) -> Vec<DiagnosticCode> {
    report.faults().iter().map(|fault| fault.code).collect()
}

fn strings<T: ToString>(values: impl IntoIterator<Item = T>) -> Vec<String> {
    values.into_iter().map(|value| value.to_string()).collect()
}

#[test]
fn every_block_is_decoded() {
    let model = fixture("every_block.kdl");

    assert_eq!(*model.system.worker_threads, 4);
    assert_eq!(
        *model.system.graceful_shutdown_timeout,
        Duration::from_secs(45)
    );
    let dns = &model.system.dns;
    let name_servers = ["10.0.0.53:53", "[2001:db8::53]:5353"];
    assert_eq!(strings(&dns.name_servers), name_servers);
    let times = [&dns.timeout, &dns.min_ttl, &dns.max_ttl].map(|time| time.as_secs());
    assert_eq!(times, [3, 10, 60]);
}

#[test]
fn faults_of_units_and_words_name_the_spelling_that_is_accepted() {
    let report = parse(
        r#"
        listeners { listener "l" { address "127.0.0.1:80"; proxy-protocol #true } }
        routes {
            route "r" {
                upstream "u"
                max-body-size "1.5GB"
                timeouts { connect-secs 0; request-secs 0.5 }
                rate-limit { requests-per-second 0.5 }
                request-headers { set "X-V" 2 }
            }
        }
        upstreams { upstream "u" { target "127.0.0.1:81" } }
        agents { agent "a" { unix-socket "/run/a.sock" } }
        "#,
        "x.kdl",
    )
    .unwrap_err();
    let faults = report.faults().iter();
    let ways_out: Vec<&str> = faults
        .map(|fault| fault.help.as_deref().unwrap_or(&fault.label))
        .collect();
    let expected = [
        "name the load balancers, as in `trusted-proxies \"10.0.0.0/8\"`",
        "whole numbers only; write `1500MB`",
        "write `connect-ms` for less than a second",
        "write `request-ms 500`",
        "write `rate \"30/min\"`",
        "write it in quotes: `\"2\"`",
        "one of `open`, `closed`",
    ];
    assert_eq!(ways_out, expected, "{report}");
}

#[test]
fn settings_of_listeners_are_decoded() {
    let model = fixture("every_block.kdl");

    let [public, six] = model.listeners.as_slice() else {
        unreachable!("two listeners are written");
    };
    assert_eq!(public.address.to_string(), "0.0.0.0:8080");
    assert_eq!(*public.protocol, ListenerProtocol::Http);
    let fallback = model.route(*public.default_route.unwrap()).unwrap();
    assert_eq!(fallback.id, "fallback");
    let trusted = ["10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32"];
    assert_eq!(strings(&public.trusted_proxies), trusted);
    assert_eq!(*public.path_policy, PathPolicy::Forward);
    assert!(*public.expose_reasons);
    assert_eq!(*public.backlog, 4096);
    assert_eq!(*public.timeouts.header, Duration::from_secs(10));
    assert_eq!(*public.timeouts.body_idle, Duration::from_secs(20));
    assert_eq!(*public.timeouts.write_idle, Duration::from_secs(25));
    assert_eq!(*public.timeouts.keep_alive, Duration::from_secs(90));
    let age = public.max_connection_age.as_deref().copied();
    assert_eq!(age, Some(Duration::from_hours(1)));
    let requests = public.max_requests_per_connection.as_deref().copied();
    assert_eq!(requests, Some(1000));
    assert!(matches!(&six.address.value, BindAddress::Tcp(address) if address.is_ipv6()));
}

#[test]
fn limits_admin_and_logs_are_decoded() {
    let model = fixture("every_block.kdl");

    assert_eq!(*model.limits.max_header_count, 50);
    assert_eq!(*model.limits.max_header_value_bytes, 8192);
    assert_eq!(*model.limits.max_body_size_bytes, 1_000_000);
    assert!(*model.limits.standard_statuses);
    assert_eq!(model.admin.address.unwrap().to_string(), "0.0.0.0:9090");
    assert!(
        model
            .admin
            .token_file
            .unwrap()
            .ends_with("valid/parts/admin.token")
    );
    let logs = &model.observability;
    let LogTarget::File(path) = &logs.access_log.path.value else {
        unreachable!("a file is written");
    };
    assert!(path.ends_with("valid/parts/access.log"));
    assert_eq!(*logs.access_log.buffer_lines, 1000);
    assert_eq!(*logs.error_log.level, LogLevel::Warn);
    assert_eq!(*logs.error_log.path, LogTarget::Stderr);
    let traces = &logs.trace_context;
    let trace_context = (*traces.begin, *traces.sample_percent);
    assert_eq!(trace_context, (true, 12.5));
    assert_eq!(strings(&logs.redact_query), ["token", "key"]);
    let recording = logs.recording.as_ref().unwrap();
    let numbers = (*recording.sample_percent, *recording.keep_bytes);
    assert_eq!(numbers, (25.0, 32 << 20));
    assert_eq!(strings(&recording.redact), ["x-tenant"]);
}

#[test]
fn the_export_to_a_collector_is_decoded() {
    let model = fixture("every_block.kdl");
    let otlp = model.observability.otlp.as_ref().unwrap();
    assert_eq!(
        otlp.endpoint.to_string(),
        "https://collector.test:4318/edge"
    );
    assert!(
        otlp.ca_file
            .as_ref()
            .unwrap()
            .ends_with("parts/admin.token")
    );
    let headers = otlp.headers.iter();
    let headers = headers.map(|field| (field.name.as_str(), field.value.value.as_bytes()));
    let expected: [(&str, &[u8]); 2] = [("authorization", b"Bearer t"), ("x-tenant", b"edge")];
    assert_eq!(headers.collect::<Vec<_>>(), expected);
    assert_eq!(otlp.service_name.value, "edge");
    assert_eq!(*otlp.compression, OtlpCompression::Gzip);
    assert_eq!((*otlp.traces, *otlp.metrics), (true, true));
    assert_eq!((*otlp.queue_spans, otlp.timeout.as_secs()), (512, 3));
    assert_eq!(otlp.interval.as_secs(), 15);
}

#[test]
fn faults_of_an_export_have_their_place() {
    for (settings, code, text) in [
        ("", "missing-setting", "endpoint"),
        ("endpoint \"collector:4318\"", "bad-value", "http://"),
        (
            "endpoint \"http://c:4318/v1/traces\"",
            "bad-value",
            "appended",
        ),
        (
            "endpoint \"http://c\"; header \"Content-Type\" \"a\"",
            "bad-value",
            "exporter itself",
        ),
        (
            "endpoint \"http://c\"; header \"A\"",
            "missing-value",
            "a name and a value",
        ),
        (
            "endpoint \"http://c\"; header \"A b\" \"c\"",
            "bad-value",
            "not a header field name",
        ),
        (
            "endpoint \"http://c\"; header \"A\" \"s3cret\\n\"",
            "bad-value",
            "not a header field value",
        ),
        (
            "endpoint \"http://c\"; queue-spans 1",
            "out-of-range",
            "queue-spans",
        ),
        (
            "endpoint \"http://c\"; traces #false; metrics #false",
            "conflict",
            "neither",
        ),
    ] {
        let text_of_file = format!("observability {{ otlp {{ {settings} }} }}");
        let report = parse(&text_of_file, "test.kdl").unwrap_err();
        let [fault] = report.faults() else {
            panic!("{settings}: {report:?}");
        };
        assert_eq!(fault.code.name(), code, "{settings}");
        assert!(fault.place.line > 0, "{settings}");
        let shown = format!("{fault:?}");
        assert!(shown.contains(text), "{settings}: {shown}");
        assert!(!shown.contains("s3cret"), "{settings}: {shown}");
    }
}

#[test]
fn conditions_and_forms_of_routes_are_decoded() {
    let model = fixture("every_block.kdl");
    let [api, site, health, fallback] = model.routes.as_slice() else {
        unreachable!("four routes are written");
    };

    assert_eq!(*api.priority, 100);
    assert_eq!(
        strings(&api.matches.hosts),
        ["api.example.com", "*.api.example.com"]
    );
    let paths = [
        "path \"/login\"",
        "path-prefix \"/v1\"",
        "path-prefix \"/v2\"",
        r#"path-regex "^/users/\\d+$""#,
    ];
    assert_eq!(strings(&api.matches.paths), paths);
    assert_eq!(strings(&api.matches.headers), ["x-env: beta", "x-debug"]);
    assert_eq!(strings(&api.matches.methods), ["GET", "POST"]);
    assert_eq!(strings(&api.matches.query_params), ["v=2", "preview"]);
    assert_eq!(*api.form, ServiceForm::Api);
    assert_eq!(*site.form, ServiceForm::Web);
    assert_eq!(*health.form, ServiceForm::Negotiated);
    assert!(
        matches!(&health.service, Service::Builtin(handler) if **handler == BuiltinHandler::Health)
    );
    assert_eq!(*health.priority, 1000);
    assert_eq!(*fallback.priority, -1);
}

#[test]
fn policies_of_routes_are_decoded() {
    let model = fixture("every_block.kdl");
    let [api, site, ..] = model.routes.as_slice() else {
        unreachable!("four routes are written");
    };

    let policies = &api.policies;
    let times = &policies.timeouts;
    assert_eq!(*times.connect.unwrap(), Duration::from_secs(2));
    assert_eq!(*times.request.unwrap(), Duration::from_mins(5));
    assert_eq!(*times.read.unwrap(), Duration::from_secs(30));
    assert_eq!(*times.idle.unwrap(), Duration::from_mins(10));
    assert_eq!(
        *site.policies.timeouts.request.unwrap(),
        Duration::from_secs(30)
    );
    assert_eq!(*policies.max_body_size.unwrap(), 500_000_000);
    assert_eq!(
        strings(&policies.request_headers.set),
        ["x-env: beta", "host: app.internal"]
    );
    assert_eq!(strings(&policies.request_headers.add), ["x-seen-by: proxy"]);
    assert_eq!(
        strings(&policies.request_headers.remove),
        ["x-debug", "x-trace"]
    );
    assert_eq!(
        strings(&policies.response_headers.set),
        ["x-frame-options: DENY"]
    );
    assert_eq!(strings(&policies.response_headers.remove), ["server"]);
}

#[test]
fn targets_and_timeouts_of_upstreams_are_decoded() {
    let model = fixture("every_block.kdl");
    let upstream = model.upstreams.first().unwrap();

    let targets = upstream.targets.iter().map(|target| &target.address.value);
    let addresses = ["10.0.0.1:8080", "app.internal:8080", "[2001:db8::1]:8080"];
    assert_eq!(strings(targets), addresses);
    let second = &upstream.targets.get(1).unwrap().address.host;
    assert_eq!(*second, Host::Name("app.internal".into()));
    assert_eq!(*upstream.load_balancing, LoadBalancing::RoundRobin);
    assert_eq!(*upstream.protocol, UpstreamProtocol::H1);
    assert_eq!(*upstream.timeouts.connect, Duration::from_secs(3));
    assert_eq!(*upstream.timeouts.request, Duration::from_secs(50));
    assert_eq!(*upstream.timeouts.read, Duration::from_secs(40));
    assert_eq!(*upstream.timeouts.idle, Duration::from_mins(30));
    assert_eq!(*upstream.connection_pool.max_connections.unwrap(), 200);
    assert_eq!(*upstream.connection_pool.max_idle.unwrap(), 50);
    let lifetime = upstream.connection_pool.max_lifetime.as_deref().copied();
    assert_eq!(lifetime, Some(Duration::from_mins(10)));
    assert_eq!(
        *upstream.connection_pool.idle_timeout,
        Duration::from_secs(20)
    );
}

#[test]
fn other_spellings_are_equal() {
    let model = fixture("spellings.kdl");

    assert_eq!(*model.system.worker_threads, 2);
    let first = model.listeners.first().unwrap();
    assert_eq!(*first.timeouts.header, Duration::from_millis(2500));
    let route = model.routes.first().unwrap();
    assert_eq!(*route.priority, 100);
    assert_eq!(
        strings(&route.matches.headers),
        ["x-version: 2", "x-tenant: red"]
    );
    assert_eq!(strings(&route.matches.query_params), ["format=json"]);
    assert_eq!(
        *route.policies.timeouts.request.unwrap(),
        Duration::from_secs(5)
    );
    assert_eq!(*route.policies.max_body_size.unwrap(), 10 << 20);
    assert_eq!(
        strings(&route.policies.request_headers.set),
        ["x-a: 1", "x-b: 2"]
    );
    let upstream = model.upstreams.first().unwrap();
    let targets = upstream.targets.iter().map(|target| target.address.port);
    assert_eq!(targets.collect::<Vec<_>>(), [9002, 9003, 9001]);
    assert_eq!(*upstream.timeouts.connect, Duration::from_millis(250));
    assert_eq!(*model.limits.max_body_size_bytes, 1000);
    assert_eq!(*model.admin.address, None);
}

#[test]
fn kdl_1_is_read_as_well() {
    let model = fixture("kdl_1.kdl");

    assert!(*model.listeners.first().unwrap().expose_reasons);
    let route = model.routes.first().unwrap();
    let paths = [
        r#"path-regex "^/users/\\d+$""#,
        r#"path-regex "^/say/\"hi[0-9]\"$""#,
    ];
    assert_eq!(strings(&route.matches.paths), paths);
    assert!(route.policies.timeouts.request.is_none());
}

#[test]
fn repeated_blocks_are_joined() {
    let model = fixture("blocks_twice.kdl");

    let names: Vec<&str> = model
        .listeners
        .iter()
        .map(|listener| listener.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(model.routes.len(), 2);
    assert_eq!(model.upstreams.len(), 2);
    assert_eq!(*model.limits.max_header_count, 20);
    assert_eq!(*model.limits.max_in_flight_requests, 20);
}

#[test]
fn included_files_are_read_in_the_order_of_their_names() {
    let model = fixture("including.kdl");

    let ids: Vec<&str> = model.routes.iter().map(|route| route.id.as_str()).collect();
    assert_eq!(ids, ["one", "three", "two"]);
    let place = model.routes.get(1).unwrap().place;
    let file = model.sources.file_and_line(place);
    assert_eq!(
        file,
        "../../fixtures/config/valid/parts/deeper/routes-3.kdl:1"
    );
}

#[test]
fn a_schema_version_from_the_future_is_refused() {
    assert!(parse("schema-version 1", "x.kdl").is_ok());
    let report = parse("schema-version 2", "x.kdl").unwrap_err();
    assert_eq!(codes(&report), [DiagnosticCode::OutOfRange]);
}

#[test]
fn files_in_memory_include_each_other_and_nothing_else() {
    let loaded = in_memory(&[
        ("main.kdl", "include \"parts/*.kdl\" \"./limits.kdl\""),
        ("parts/a.kdl", "include \"../more/b.kdl\""),
        ("more/b.kdl", "system { worker-threads 7 }"),
        ("limits.kdl", "limits { max-header-count 7 }"),
    ])
    .unwrap();
    assert_eq!(*loaded.model.system.worker_threads, 7);
    assert_eq!(*loaded.model.limits.max_header_count, 7);

    let report = in_memory(&[("main.kdl", "include \"../fixtures.kdl\"")]).unwrap_err();
    assert_eq!(codes(&report), [DiagnosticCode::IncludeWithoutMatch]);
}

#[test]
fn a_missing_include_or_variable_hides_no_fault_and_causes_none() {
    let text = r#"
        include "not-there.kdl"
        listeners { listener "main" { address "127.0.0.1:{$NO_SUCH_PORT}"; default-route "there" } }
        routes { route "a" { upstream "there"; max-body-size 1.5 } }
        limits { max-header-count 0 }
    "#;
    let report = in_memory(&[("main.kdl", text)]).unwrap_err();

    let expected = [
        DiagnosticCode::IncludeWithoutMatch,
        DiagnosticCode::MissingVariable,
        DiagnosticCode::WrongType,
        DiagnosticCode::OutOfRange,
    ];
    assert_eq!(codes(&report), expected, "{report}");
}

#[test]
fn cyclic_and_too_deep_includes_are_faults() {
    let around = in_memory(&[
        ("main.kdl", "include \"b.kdl\""),
        ("b.kdl", "include \"main.kdl\""),
    ]);
    assert_eq!(codes(&around.unwrap_err()), [DiagnosticCode::IncludeCycle]);

    let mut files: Vec<(String, String)> = (0..20)
        .map(|index| {
            (
                format!("{index}.kdl"),
                format!("include \"{}.kdl\"", index + 1),
            )
        })
        .collect();
    files.push(("main.kdl".to_owned(), "include \"0.kdl\"".to_owned()));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (&**name, &**text))
        .collect();
    assert_eq!(
        codes(&in_memory(&files).unwrap_err()),
        [DiagnosticCode::IncludeTooDeep]
    );
}

#[test]
fn files_that_multiply_by_includes_are_a_fault() {
    let levels = ["a", "b", "c", "d", "e"];
    let mut files = vec![("main.kdl".to_owned(), "include \"a*.kdl\"".to_owned())];
    for (level, next) in levels.iter().zip(levels.iter().skip(1)) {
        let text = format!("include \"{next}*.kdl\"");
        files.extend((0..40).map(|number| (format!("{level}{number}.kdl"), text.clone())));
    }
    files.extend((0..40).map(|number| (format!("e{number}.kdl"), String::new())));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (&**name, &**text))
        .collect();
    assert_eq!(
        codes(&in_memory(&files).unwrap_err()),
        [DiagnosticCode::TooManyIncludes]
    );
}

#[test]
fn a_missing_or_too_large_file_is_a_fault() {
    let report = load(Path::new("no-such-file.kdl")).unwrap_err();
    assert_eq!(codes(&report), [DiagnosticCode::UnreadableFile]);
    assert!(report.to_string().contains("no-such-file.kdl"));

    let large = " ".repeat((16 << 20) + 1);
    let report = parse(&large, "x.kdl").unwrap_err();
    assert_eq!(codes(&report), [DiagnosticCode::FileTooLarge]);

    let many = "a;".repeat(2_000_001);
    let report = parse(&many, "x.kdl").unwrap_err();
    assert_eq!(codes(&report), [DiagnosticCode::FileTooLarge]);

    let mut part = vec![b' '; 16 << 20];
    part.splice(0..1, [0xff]);
    let mut files: BTreeMap<String, Vec<u8>> = ["1", "2", "3", "4"]
        .map(|name| (name.to_owned(), part.clone()))
        .into();
    files.insert("main.kdl".to_owned(), b"include \"?\"".to_vec());
    let report = load_from(Files::Memory(&files), "main.kdl").unwrap_err();
    let codes = codes(&report);
    assert_eq!(
        codes
            .iter()
            .filter(|code| **code == DiagnosticCode::FileTooLarge)
            .count(),
        1
    );
    assert_eq!(
        codes
            .iter()
            .filter(|code| **code == DiagnosticCode::NotUtf8)
            .count(),
        3
    );
}

#[test]
fn nesting_that_is_too_deep_is_a_fault_in_every_form() {
    for unit in ["a {", "/- a {", "a /-{", "(a)a{", "a;a{", "a 1 {\n"] {
        let report = parse(&unit.repeat(10_000), "x.kdl").unwrap_err();
        assert_eq!(codes(&report), [DiagnosticCode::NestingTooDeep], "{unit}");
    }
    let comments = format!("{}{}", "/*".repeat(10_000), "*/".repeat(10_000));
    assert!(parse(&comments, "x.kdl").is_ok());
}

#[test]
fn the_embedded_configuration_has_no_warnings() {
    let Loaded { model, warnings } = embedded().unwrap();
    assert!(warnings.is_empty(), "{warnings}");
    assert_eq!(model.listeners.len(), 1);
    assert_eq!(model.routes.len(), 2);
}

#[test]
fn a_hundred_faults_are_shown_and_the_rest_is_counted() {
    let report = parse(&"banana\n".repeat(20_000), "x.kdl").unwrap_err();

    let shown = report.to_string();
    assert_eq!(shown.matches("error[unknown-setting]").count(), 100);
    assert!(shown.ends_with("\nand 19900 more\n"));
    let json = report.to_json();
    assert_eq!(json["faults"].as_array().unwrap().len(), 100);
    assert_eq!(json["omitted"], 19_900);
}

#[test]
fn a_report_can_be_written_as_json() {
    let report = parse("limits {\n    max-heder-count 5\n}", "x.kdl").unwrap_err();

    let expected = serde_json::json!({
        "faults": [{
            "code": "unknown-setting",
            "severity": "error",
            "message": "unknown setting `max-heder-count` in `limits`",
            "file": "x.kdl",
            "line": 2,
            "column": 5,
            "length": 15,
            "label": "did you mean `max-header-count`?",
            "help": null,
            "related": [],
        }],
        "omitted": 0,
    });
    assert_eq!(report.to_json(), expected);
}

#[test]
fn more_connections_than_descriptors_are_warned_of() {
    let mut loaded = parse("limits { max-total-connections 1000 }", "x.kdl").unwrap();
    loaded.compare_with_descriptors(1100);
    assert!(loaded.warnings.is_empty());
    loaded.compare_with_descriptors(1099);
    assert_eq!(
        codes(&loaded.warnings),
        [DiagnosticCode::TooManyConnections]
    );
    assert!(
        loaded
            .warnings
            .to_string()
            .contains("set it to 999 or less")
    );

    let mut silent = parse("", "x.kdl").unwrap();
    silent.compare_with_descriptors(1024);
    assert_eq!(
        codes(&silent.warnings),
        [DiagnosticCode::TooManyConnections]
    );

    let mut tiny = parse("", "x.kdl").unwrap();
    tiny.compare_with_descriptors(64);
    let result = tiny.warnings.to_string();
    assert!(!result.contains("set it to"), "{result}");
    assert!(result.contains("raise the limit"), "{result}");

    // The limit in effect would be 75.
    let mut few = parse("limits { max-total-connections 70 }", "x.kdl").unwrap();
    few.compare_with_descriptors(170);
    assert!(few.warnings.is_empty());
    few.compare_with_descriptors(150);
    let result = few.warnings.to_string();
    assert!(result.contains("set it to 50 or less"), "{result}");
}

#[test]
fn a_configuration_without_listeners_or_routes_has_a_warning() {
    let listener = r#"listeners { listener "a" { address "127.0.0.1:1" } }"#;
    let route = r#"routes { route "a" { service-type "builtin"; builtin-handler "health" } }"#;
    for (text, reported) in [
        ("", "no listener"),
        (route, "no listener"),
        (listener, "no route"),
    ] {
        let mut loaded = parse(text, "x.kdl").unwrap();
        loaded.expect_to_serve();
        assert_eq!(codes(&loaded.warnings), [DiagnosticCode::NothingServed]);
        let result = loaded.warnings.to_string();
        assert!(
            result.contains("x.kdl: ") && result.contains(reported) && !result.contains(",-["),
            "{result}"
        );
    }
    let mut whole = parse(&format!("{listener}\n{route}"), "x.kdl").unwrap();
    whole.expect_to_serve();
    assert!(whole.warnings.is_empty());
    // The bundle adds the listeners of a node.
    let node = r#"control-plane {
    url "https://control.example.com"
    project "01a21e07-b733-79dc-9de3-99ff11013534"
    enrolment-token-file "/etc/proxyd/enrolment.token"
    data-dir "/var/lib/proxyd"
}"#;
    let mut node = parse(node, "x.kdl").unwrap();
    node.expect_to_serve();
    assert!(node.warnings.is_empty(), "{}", node.warnings);
}

#[test]
fn a_default_is_shown_without_a_line() {
    let mut silent = parse("listeners {}", "x.kdl").unwrap();
    silent.compare_with_descriptors(1024);
    let result = silent.warnings.to_string();
    assert!(
        result.contains("x.kdl: ") && result.contains("(nothing is written here"),
        "{result}"
    );
    let report = load(Path::new("no-such.kdl")).unwrap_err().to_string();
    assert!(report.contains("x no-such.kdl: "), "{report}");
}

#[test]
fn the_default_route_is_not_called_unreachable() {
    let text = |default| {
        format!(
            "listeners {{ listener \"a\" {{ address \"127.0.0.1:1\"; {default} }} }}
         routes {{
             route \"all\" {{ service-type \"builtin\"; builtin-handler \"health\"; priority 60 }}
             route \"rest\" {{ service-type \"builtin\"; builtin-handler \"not-found\" }}
         }}"
        )
    };
    let plain = parse(&text(""), "x.kdl").unwrap();
    assert_eq!(codes(&plain.warnings), [DiagnosticCode::UnreachableRoute]);
    let default = parse(&text("default-route \"rest\""), "x.kdl").unwrap();
    assert!(default.warnings.is_empty(), "{}", default.warnings);
}

#[test]
fn a_route_behind_one_for_every_listener_is_unreachable() {
    let found = |listeners: &str, conditions: &str| {
        let text = format!(
            "listeners {{
                 listener \"a\" {{ address \"127.0.0.1:1\" }}
                 listener \"b\" {{ address \"127.0.0.1:2\" }}
             }}
             routes {{
                 route \"all\" {{
                     service-type \"builtin\"; builtin-handler \"health\"
                     listeners {listeners}
                     priority 60
                 }}
                 route \"rest\" {{
                     service-type \"builtin\"; builtin-handler \"not-found\"
                     {conditions}
                 }}
             }}"
        );
        codes(&parse(&text, "x.kdl").unwrap().warnings)
    };
    let unreachable = [DiagnosticCode::UnreachableRoute];
    assert_eq!(found(r#""a" "b""#, ""), unreachable);
    assert_eq!(
        found(r#""b" "a""#, r#"matches { host "x.example" }"#),
        unreachable
    );
    assert_eq!(found(r#""a" "b""#, r#"listeners "b""#), unreachable);
    assert_eq!(found(r#""a""#, ""), []);
    assert_eq!(found(r#""a""#, r#"listeners "a" "b""#), []);
}

#[test]
fn a_control_plane_without_tls_off_loopback_is_allowed_by_name_only() {
    let faults = |url: &str, allow: &str| {
        let text = format!("control-plane {{\n    url \"{url}\"\n    {allow}\n}}\n");
        let report = parse(&text, "x.kdl").err();
        report.map(|report| report.faults()[0].code)
    };
    let plain = Some(DiagnosticCode::PlainControlPlane);
    for (url, allow, expected) in [
        ("http://control.example", "", plain),
        ("http://control.example", "allow-plain-http #false", plain),
        ("http://control.example", "allow-plain-http #true", None),
        ("http://127.0.0.1:8443", "", None),
        ("https://control.example", "", None),
    ] {
        assert_eq!(faults(url, allow), expected, "{url} {allow}");
    }
}

#[test]
fn environment_variables_are_part_of_values() {
    let folder = std::env::temp_dir().join(format!("proxy-config-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("variables.kdl");
    let text = r#"
        listeners { listener "main" { address "127.0.0.1:{$NO_SUCH_PORT:8080}"; via "{$NO_SUCH_FLAG:true}" } }
        routes {
            route "a" {
                respond 200 "{$CARGO_PKG_NAME} {$NO_SUCH_NAME:none}"
                rate-limit { requests-per-second "{$NO_SUCH_RATE:7}"; key "{$NO_SUCH_KEY:path}" }
            }
        }
    "#;
    std::fs::write(&path, text).unwrap();

    let loaded = load(&path);

    std::fs::remove_dir_all(&folder).unwrap();
    let model = loaded.unwrap().model;
    assert_eq!(model.listeners[0].address.to_string(), "127.0.0.1:8080");
    assert!(*model.listeners[0].via);
    let route = &model.routes[0];
    assert_eq!(route.policies.rate_limit.as_ref().unwrap().rate.events, 7);
    let Service::Respond(response) = &route.service else {
        unreachable!("the route responds");
    };
    assert_eq!(**response.body.as_ref().unwrap(), "proxy-config none");
}

#[test]
fn a_bundle_and_files_in_memory_have_no_environment() {
    let text = r#"routes { route "a" { respond 200 "{$CARGO_PKG_NAME}" } }"#;
    let report = in_memory(&[("main.kdl", text)]).unwrap_err();
    assert_eq!(codes(&report), [DiagnosticCode::MissingVariable]);
    let text = r#"routes { route "a" { respond 200 "{$CARGO_PKG_NAME:x}" } }"#;
    let files = BTreeMap::from([("main.kdl".to_owned(), text.as_bytes().to_vec())]);
    let report = load_bundle(Files::Memory(&files), "main.kdl").unwrap_err();
    assert_eq!(codes(&report), [DiagnosticCode::BundleReach]);
}

#[test]
fn text_that_looks_like_a_variable_is_a_warning() {
    let route = |value: &str| {
        let text = format!("routes {{ route \"a\" {{ respond 200 {value} }} }}");
        codes(&parse(&text, "x.kdl").unwrap().warnings)
    };
    let doubtful = [DiagnosticCode::ForeignNotation];
    assert_eq!(route("\"{$API-KEY}\""), doubtful);
    assert_eq!(route("#\"{$API-KEY}\"#"), []);
    assert_eq!(route("\"{$1} {$} {A-B}\""), []);
}

/// The codes of the faults of a route with these settings, each with a place and a help text.
fn faults_of_route(settings: &str) -> Vec<DiagnosticCode> {
    let text = format!(
        "routes {{ route \"a\" {{ upstream \"u\"; {settings} }} }}\n\
         upstreams {{ upstream \"u\" {{ target \"10.0.0.1:80\" }} }}\n"
    );
    let report = parse(&text, "x.kdl").unwrap_err();
    let faults = report.faults();
    assert!(
        faults.iter().all(|fault| fault.help.is_some()),
        "{faults:?}"
    );
    codes(&report)
}

#[test]
fn users_without_a_hash_and_captures_without_a_group_are_faults() {
    use DiagnosticCode::{BadValue, Conflict, DuplicateName, MissingSetting, UndefinedName};
    let hash = "$2y$04$abcdefghijklmnopqrstuu5Eib6dQmcaRkU2y9cEEtmnhcGHVBJfm";
    let captures = "rewrite { path-from-regex \"/b/$1\" }";
    let cases = [
        ("basic-auth { realm \"x\" }".to_owned(), MissingSetting),
        (
            "basic-auth { user \"ann\" \"secret\" }".to_owned(),
            BadValue,
        ),
        (
            "basic-auth { user \"ann\" \"$apr1$a$b\" }".to_owned(),
            BadValue,
        ),
        (captures.to_owned(), Conflict),
        (
            format!("{captures}; matches {{ path-prefix \"/a\" }}"),
            Conflict,
        ),
        (
            format!("{captures}; matches {{ path-regex \"^/a/[0-9]+x*$\" }}"),
            UndefinedName,
        ),
    ];
    for (settings, code) in cases {
        assert_eq!(faults_of_route(&settings), [code], "{settings}");
    }
    let twice = format!("basic-auth {{ user \"ann\" \"{hash}\"; user \"ann\" \"{hash}\" }}");
    let text = format!("routes {{ route \"a\" {{ respond 200; {twice} }} }}");
    assert_eq!(codes(&parse(&text, "x.kdl").unwrap_err()), [DuplicateName]);
}

#[test]
fn an_agent_behind_an_upstream_speaks_its_protocol() {
    for (agent, upstream, code) in [
        ("upstream \"u\"", "", DiagnosticCode::Conflict),
        (
            "upstream \"u\"; protocol \"ext-authz\"",
            "",
            DiagnosticCode::Conflict,
        ),
        (
            "upstream \"u\"; protocol \"forward-auth\"",
            "protocol \"h2\"",
            DiagnosticCode::Conflict,
        ),
        (
            "upstream \"u\"; unix-socket \"/run/a.sock\"; protocol \"forward-auth\"",
            "",
            DiagnosticCode::Conflict,
        ),
        (
            "upstream \"v\"; protocol \"forward-auth\"",
            "",
            DiagnosticCode::UndefinedName,
        ),
    ] {
        let text = format!(
            "routes {{ route \"a\" {{ upstream \"u\"; agents \"auth\" }} }}\n\
             agents {{ agent \"auth\" {{ failure-mode \"closed\"; {agent} }} }}\n\
             upstreams {{ upstream \"u\" {{ target \"10.0.0.1:80\"; {upstream} }} }}\n"
        );
        let report = parse(&text, "x.kdl").unwrap_err();
        assert_eq!(codes(&report), [code], "{agent}");
    }
}
