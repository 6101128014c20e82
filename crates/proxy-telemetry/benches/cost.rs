//! Cost of counting and logging one request: `cost record|count|access|idle N` does the work N
//! times, for callgrind; without arguments it measures the time of each.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark reads the clock and talks on the terminal"
)]

use proxy_telemetry::{
    AccessFormat, AccessLogRequest, AccessRecord, Build, Destination, EscapedFields, Format,
    LogCounters, LogWriter, Outcome, Process, Protocol, Registry, RegistrySettings, RouteTable,
    Scrape,
};
use std::env;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const REPEAT: u64 = 2_000_000;
const ROUNDS: usize = 5;
const ROUTES: usize = 10_000;

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["record", n] => record(number(n)),
        ["count", n] => count(number(n)),
        ["access", n] => access(number(n)),
        ["idle", n] => idle(number(n)),
        _ => {
            report("record", record);
            report("count", count);
            report("access", access);
            scrape();
        }
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(REPEAT)
}

fn report(name: &str, repeat: fn(u64)) {
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| time(repeat)).collect();
    times.sort_unstable();
    if let Some(median) = times.get(ROUNDS / 2) {
        let each = median.as_nanos() / u128::from(REPEAT);
        println!("{name}: {each} ns each, median of {ROUNDS} rounds of {REPEAT}");
    }
}

fn time(repeat: fn(u64)) -> Duration {
    let begun = Instant::now();
    repeat(REPEAT);
    begun.elapsed()
}

/// The loop of [`record`] without its work.
fn idle(repeat: u64) {
    for number in 0..repeat {
        black_box(outcome(number));
    }
}

/// Counts finished requests.
fn record(repeat: u64) {
    let registry = registry();
    let metrics = registry.route(0, "api");
    for number in 0..repeat {
        metrics.record(&black_box(outcome(number)));
    }
    black_box(registry.snapshot());
}

/// Counts requests as a worker does: begun, attempted, answered, finished.
fn count(repeat: u64) {
    let registry = Arc::new(registry());
    let worker = registry.worker(0);
    let upstream = registry.upstream(0, "app");
    let routes = RouteTable::new(Arc::clone(&registry), 0, ["api"].map(Arc::from).into());
    for number in 0..repeat {
        worker.requests_in_flight.add(1);
        worker.request(black_box(Protocol::Http11));
        upstream.attempts.add(1);
        routes
            .route(black_box(Some(0_usize)))
            .record(&black_box(outcome(number)));
        worker.requests_in_flight.sub(1);
    }
    black_box(registry.snapshot());
}

/// Writes access records to the null device, so that the thread's system calls are included.
fn access(repeat: u64) {
    let null = Destination::File(PathBuf::from("/dev/null"));
    let Ok(log) = LogWriter::start(&null, LogCounters::default(), |_| ()) else {
        return;
    };
    let format = AccessFormat::default();
    let routes = EscapedFields::from_routes(["api"]);
    let targets = EscapedFields::from_targets("app", ["10.0.0.1:8080"]);
    let mut worker = log.worker();
    for number in 0..repeat {
        let facts = AccessLogRequest {
            method: b"GET",
            host: Some(b"www.example.com"),
            path: b"/api/v1/customers/4711/orders?page=2&sort=date",
            user_agent: None,
            referer: None,
        };
        let record = AccessRecord {
            at: Duration::from_micros(1_700_000_000_000_000 + 16 * number),
            correlation_id: b"0190163d-8694-739b-aea5-966c26f8ad90",
            route: routes.get(0),
            target: targets.get(0),
            client_ip: b"192.0.2.123",
            status: 200,
            took: Duration::from_micros(1_234 + number % 1000),
            bytes_in: 0,
            bytes_out: 10_240,
            protocol: Protocol::Http11,
            reason: None,
            error_type: None,
            retries: 0,
            retry_cause: None,
            is_retry_refused: false,
            queued: None,
            connecting: None,
            upstream_took: Some(Duration::from_micros(1_100)),
            cache: None,
            trace_id: None,
            agent: None,
        };
        if let Some(access_head) = worker.access_head(&black_box(facts), &format) {
            worker.access(&black_box(record), access_head);
        }
    }
    drop(worker);
    black_box(log.close(Duration::from_secs(10)));
}

/// Measures a scrape of many routes.
fn scrape() {
    let registry = registry();
    for route in 0..ROUTES {
        for worker in 0..2 {
            registry
                .route(worker, &format!("route-{route}"))
                .record(&outcome(7));
        }
    }
    let begun = Instant::now();
    let snapshot = registry.snapshot();
    let merged = begun.elapsed();
    let scrape = Scrape {
        snapshot: &snapshot,
        process: &Process::read(),
        build: Build {
            version: "0",
            commit: "0",
        },
        started: Duration::ZERO,
        uptime: Duration::ZERO,
    };
    let page = scrape.page(Format::Prometheus);
    let written = begun.elapsed().saturating_sub(merged);
    let bytes = page.len();
    println!("scrape of {ROUTES} routes: merged in {merged:?}, {bytes} bytes in {written:?}");
}

fn registry() -> Registry {
    Registry::new(RegistrySettings {
        reasons: &["connect_refused"],
        max_series: ROUTES,
    })
}

fn outcome(number: u64) -> Outcome {
    Outcome {
        status: 200,
        took: Duration::from_nanos(1_000_000 + number % 4_000_000),
        bytes_in: 0,
        bytes_out: 100,
        failed: false,
        aborted: false,
    }
}
