//! The metrics page is valid for a scraper, with any names in the configuration.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

use agent_protocol::EventKind;
use proxy_errors::LimitType;
use proxy_telemetry::names::{self, METRICS};
use proxy_telemetry::{
    AgentDecision, Build, Format, Kind, Outcome, Process, Protocol, Registry, RegistrySettings,
    Scrape,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

const ODD: &str = "a\"b\\c\nd{e}=,f ünï";

/// A metric family as parsed by a scraper.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    help: String,
    samples: Vec<Sample>,
}

#[derive(Debug)]
struct Sample {
    suffix: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

type Labels<'a> = &'a [(&'a str, &'a str)];

fn page(format: Format) -> String {
    let registry = Registry::new(RegistrySettings {
        reasons: &["connect_refused", "waf"],
        max_series: 100,
    });
    let handles = fill(&registry);
    let scrape = Scrape {
        snapshot: &registry.snapshot(),
        process: &Process::read(),
        build: Build {
            version: "1.2.3",
            commit: "abc",
        },
        started: Duration::from_secs(1_700_000_000),
        uptime: Duration::from_millis(5_250),
    };
    let page = scrape.page(format);
    drop(handles);
    page
}

fn fill(registry: &Registry) -> impl Drop + use<> {
    for (worker, status) in [(0, 200), (1, 200), (1, 503)] {
        for route in ["api", ODD] {
            registry.route(worker, route).record(&Outcome {
                status,
                took: Duration::from_micros(1_500),
                bytes_in: 3,
                bytes_out: 1_000,
                failed: status == 503,
                aborted: false,
            });
        }
    }
    let worker = registry.worker(0);
    worker.requests_in_flight.add(2);
    worker.connections_active.add(3);
    worker.connections_idle.add(4);
    worker.connections_accepted.add(7);
    worker.handshakes_completed.add(1);
    worker.request(Protocol::Http11);
    worker.limit_met(LimitType::HeaderSize);
    worker.limit_met(LimitType::RequestRate);
    worker.failed(0);
    worker.failed(999);
    worker.blocked(1);
    let upstream = registry.upstream(0, "app");
    upstream.attempts.add(5);
    upstream.failed(0);
    upstream.failed(777);
    upstream.answered(Duration::from_secs(90));
    registry.target(0, "app", "10.0.0.1:80").requests.add(1);
    let agent = registry.agent(0, "waf");
    agent.decided(
        EventKind::RequestHeaders,
        AgentDecision::Block,
        Duration::from_millis(2),
    );
    agent.timed_out(EventKind::RequestBody);
    agent.failed(1);
    let reloads = registry.counter(&names::CONFIG_RELOADS_TOTAL, ["success"]);
    reloads.add(3);
    let generation = registry.gauge(&names::CONFIG_GENERATION, []);
    generation.set(4);
    let breaker = registry.gauge(&names::CIRCUIT_BREAKER_STATE, ["app", "api"]);
    breaker.set(1);
    vec![generation, breaker]
}

fn parse(page: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            name.clone_into(&mut current);
            assert!(!families.contains_key(name), "{name} twice");
            let family = Family {
                help: help.to_owned(),
                ..Family::default()
            };
            families.insert(current.clone(), family);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, current, "type without help");
            kind.clone_into(&mut families.get_mut(name).unwrap().kind);
        } else if line != "# EOF" {
            let sample = parse_sample(line, &current);
            families.get_mut(&current).unwrap().samples.push(sample);
        }
    }
    families
}

fn parse_sample(line: &str, family: &str) -> Sample {
    let rest = line.strip_prefix(family);
    let rest = rest.unwrap_or_else(|| panic!("{line} stands under {family}"));
    let end = rest.find(['{', ' ']).unwrap();
    let (suffix, rest) = rest.split_at(end);
    let (labels, value) = rest
        .strip_prefix('{')
        .map_or((BTreeMap::new(), rest), parse_labels);
    Sample {
        suffix: suffix.to_owned(),
        labels,
        value: value.strip_prefix(' ').unwrap().parse().unwrap(),
    }
}

fn parse_labels(mut rest: &str) -> (BTreeMap<String, String>, &str) {
    let mut labels = BTreeMap::new();
    loop {
        let (name, after) = rest.split_once("=\"").unwrap();
        let (value, after) = parse_value(after);
        assert!(labels.insert(name.to_owned(), value).is_none());
        if let Some(end) = after.strip_prefix('}') {
            return (labels, end);
        }
        rest = after.strip_prefix(',').unwrap();
    }
}

fn parse_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(match characters.next().unwrap().1 {
                'n' => '\n',
                same @ ('"' | '\\') => same,
                other => panic!("unknown escape {other}"),
            }),
            other => value.push(other),
        }
    }
    panic!("open string: {text}");
}

fn owned(labels: Labels<'_>) -> BTreeMap<String, String> {
    let labels = labels.iter().copied();
    labels.map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
}

fn value(families: &BTreeMap<String, Family>, name: &str, labels: Labels<'_>) -> Option<f64> {
    let mut samples = families[name].samples.iter();
    Some(samples.find(|sample| sample.labels == owned(labels))?.value)
}

#[test]
fn every_metric_of_the_table_has_its_family() {
    let families = parse(&page(Format::Prometheus));

    let names: BTreeSet<_> = families.keys().map(String::as_str).collect();
    assert_eq!(names, METRICS.iter().map(|metric| metric.name).collect());
    for metric in METRICS {
        let family = &families[metric.name];
        assert_eq!(family.kind, metric.kind.name(), "{}", metric.name);
        assert_eq!(family.help, metric.help);
        for sample in &family.samples {
            let mut names: BTreeSet<_> = metric.labels.iter().copied().collect();
            if sample.suffix == "_bucket" {
                names.insert("le");
            }
            let found: BTreeSet<_> = sample.labels.keys().map(String::as_str).collect();
            assert_eq!(found, names, "{}", metric.name);
        }
    }
}

#[test]
fn no_series_is_repeated() {
    for (name, family) in parse(&page(Format::Prometheus)) {
        let mut seen = BTreeSet::new();
        for Sample { suffix, labels, .. } in family.samples {
            let text = format!("{name}{suffix} {labels:?}");
            assert!(seen.insert(text.clone()), "{text}");
        }
    }
}

#[test]
fn numbers_arrive_under_their_names() {
    let families = parse(&page(Format::Prometheus));

    let cases: &[(&str, Labels<'_>, f64)] = &[
        (
            "proxy_requests_total",
            &[("route", "api"), ("status", "200")],
            2.0,
        ),
        (
            "proxy_requests_total",
            &[("route", ODD), ("status", "503")],
            1.0,
        ),
        ("proxy_request_failures_total", &[("route", "api")], 1.0),
        ("proxy_sent_bytes_total", &[("route", "api")], 3000.0),
        ("proxy_requests_in_flight", &[], 2.0),
        ("proxy_active_requests", &[], 2.0),
        ("proxy_open_connections", &[], 7.0),
        ("proxy_connections_active", &[], 3.0),
        (
            "proxy_requests_by_protocol_total",
            &[("protocol", "HTTP/1.1")],
            1.0,
        ),
        ("proxy_header_size_exceeded_total", &[], 1.0),
        ("proxy_rate_limit_exceeded_total", &[], 1.0),
        ("proxy_body_size_exceeded_total", &[], 0.0),
        ("proxy_errors_total", &[("reason", "connect_refused")], 1.0),
        ("proxy_errors_total", &[("reason", "other")], 1.0),
        ("proxy_blocked_requests_total", &[("reason", "waf")], 1.0),
        (
            "proxy_upstream_failures_total",
            &[("upstream", "app"), ("reason", "connect_refused")],
            1.0,
        ),
        (
            "proxy_upstream_failures_total",
            &[("upstream", "app"), ("reason", "other")],
            1.0,
        ),
        (
            "proxy_agent_requests_total",
            &[
                ("agent", "waf"),
                ("event", "request_headers"),
                ("decision", "block"),
            ],
            1.0,
        ),
        ("proxy_config_reloads_total", &[("result", "success")], 3.0),
        ("proxy_config_generation", &[], 4.0),
        (
            "proxy_circuit_breaker_state",
            &[("component", "app"), ("route", "api")],
            1.0,
        ),
        ("proxy_uptime_seconds", &[], 5.25),
        ("process_start_time_seconds", &[], 1_700_000_000.0),
        (
            "proxy_build_info",
            &[("version", "1.2.3"), ("commit", "abc")],
            1.0,
        ),
    ];
    for (name, labels, expected) in cases {
        let found = value(&families, name, labels);
        assert_eq!(found, Some(*expected), "{name} {labels:?}");
    }
    assert!(value(&families, "proxy_memory_usage_bytes", &[]) > Some(0.0));
}

#[test]
fn histograms_are_cumulative_and_agree_with_their_count() {
    let families = parse(&page(Format::Prometheus));

    let family = &families["proxy_request_duration_seconds"];
    let of_route = family
        .samples
        .iter()
        .filter(|sample| sample.labels["route"] == "api");
    let (buckets, rest): (Vec<_>, Vec<_>) = of_route.partition(|s| s.suffix == "_bucket");
    let bounds: Vec<f64> = buckets
        .iter()
        .map(|bucket| bucket.labels["le"].parse().unwrap())
        .collect();
    let counts: Vec<_> = buckets.iter().map(|bucket| bucket.value).collect();

    assert!(bounds.is_sorted() && bounds.last() == Some(&f64::INFINITY));
    assert!(counts.is_sorted());
    let at = bounds.iter().position(|bound| *bound >= 0.0015).unwrap();
    assert_eq!((counts[at - 1], counts[at]), (0.0, 3.0));
    let [sum, count] = rest.as_slice() else {
        panic!("{rest:?}");
    };
    assert_eq!(
        (sum.suffix.as_str(), count.suffix.as_str()),
        ("_sum", "_count")
    );
    assert!((sum.value - 0.0045).abs() < 3e-6, "{sum:?}");
    assert_eq!(Some(&count.value), counts.last());
}

#[test]
fn a_gauge_without_an_owner_is_not_shown() {
    let registry = Registry::new(RegistrySettings {
        reasons: &[],
        max_series: 100,
    });
    let held = registry.gauge(&names::UPSTREAM_TARGET_HEALTHY, ["app", "10.0.0.1:80"]);
    held.set(1);
    let gone = registry.gauge(&names::UPSTREAM_TARGET_HEALTHY, ["app", "10.0.0.2:80"]);
    drop(gone);

    let scrape = Scrape {
        snapshot: &registry.snapshot(),
        process: &Process::default(),
        build: Build {
            version: "",
            commit: "",
        },
        started: Duration::ZERO,
        uptime: Duration::ZERO,
    };
    let families = parse(&scrape.page(Format::Prometheus));

    let samples = &families["proxy_upstream_target_healthy"].samples;
    let [sample] = samples.as_slice() else {
        panic!("{samples:?}");
    };
    let expected = owned(&[("upstream", "app"), ("target", "10.0.0.1:80")]);
    assert_eq!((&sample.labels, sample.value), (&expected, 1.0));
    assert!(families["proxy_memory_usage_bytes"].samples.is_empty());
}

#[test]
fn openmetrics_names_families_without_total_and_ends() {
    let page = page(Format::OpenMetrics);

    assert!(page.ends_with("\n# EOF\n"));
    let families = parse(&page);
    for metric in METRICS {
        let family = metric.name.strip_suffix("_total").unwrap_or(metric.name);
        let samples = &families[family].samples;
        if metric.kind == Kind::Counter {
            assert!(samples.iter().all(|sample| sample.suffix == "_total"));
        }
    }
}

#[test]
fn promtool_accepts_the_metrics() {
    let promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = promtool else {
        eprintln!("skipped: promtool is not installed");
        return;
    };
    let page = page(Format::Prometheus);
    let mut input = promtool.stdin.take().unwrap();
    input.write_all(page.as_bytes()).unwrap();
    drop(input);

    let output = promtool.wait_with_output().unwrap();

    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
