//! Behaviour above the memory limit.
#![expect(
    clippy::disallowed_methods,
    reason = "a test waits until no more is accepted"
)]

use crate::support::{BINARY, Config, reason, refusal};
use proxy_testkit::{Gate, Log, Proxyd, RawClient, Reload, Upstream, get, post};
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

/// The minimum of the setting, which every process exceeds.
const TOO_LITTLE: &str = "max-memory-bytes \"16MiB\"";

fn limited(upstream: &Upstream, limits: &str) -> Config {
    Config::to(upstream).top(&format!("limits {{ {limits} }}"))
}

/// Waits for an event or a record of the error log that begins with these words.
#[track_caller]
fn wait_for(log: &Log, words: &str) -> String {
    let record = log.find(0, |record| record.text("message").starts_with(words));
    record.text("level").to_owned()
}

fn admin(proxyd: &Proxyd, path: &str) -> proxy_testkit::Response {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    RawClient::connect(proxyd.admin_address()).ask(request)
}

/// Returns the value of a sample.
#[track_caller]
fn sample(proxyd: &Proxyd, name: &str) -> u64 {
    let page = admin(proxyd, "/metrics").text();
    let mut lines = page.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value
        .unwrap_or_else(|| panic!("no {name}"))
        .parse()
        .unwrap()
}

#[test]
fn connections_are_refused_while_memory_is_short() {
    let upstream = Upstream::saying("");
    let proxyd = limited(&upstream, "max-memory-bytes \"4GiB\"").start();
    let mut before = proxyd.connect();
    assert_eq!(before.ask(get("/", &[])).status, 200);
    assert_eq!(sample(&proxyd, "proxy_memory_shedding"), 0);

    assert_eq!(
        proxyd.reload(&limited(&upstream, TOO_LITTLE).kdl()),
        Reload::Applied
    );
    assert_eq!(wait_for(proxyd.stderr(), "memory limit exceeded"), "ERROR");
    assert_eq!(wait_for(proxyd.stdout(), "memory limit exceeded"), "ERROR");
    let response = proxyd.connect().response();

    let message = refusal(&response, 503, "SERVICE_UNAVAILABLE");
    assert_eq!(message, "Service unavailable: overloaded");
    assert_eq!(response.fields.get("retry-after"), Some("1"));
    assert_eq!(reason(&proxyd, &response), "memory_pressure");
    // Existing connections are still served.
    assert_eq!(before.ask(get("/", &[])).status, 200);
    assert_eq!(sample(&proxyd, "proxy_memory_shedding"), 1);
    assert_eq!(sample(&proxyd, "proxy_memory_limit_bytes"), 16 << 20);
    let memory = &admin(&proxyd, "/admin/stats").json()["memory"];
    assert_eq!(memory["shedding"], Value::Bool(true), "{memory}");
    assert_eq!(memory["limit_bytes"], 16 << 20, "{memory}");

    let enough = limited(&upstream, "max-memory-bytes \"4GiB\"").kdl();
    assert_eq!(proxyd.reload(&enough), Reload::Applied);
    assert_eq!(
        wait_for(proxyd.stderr(), "memory is below its limit"),
        "WARN"
    );
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
    assert_eq!(sample(&proxyd, "proxy_memory_shedding"), 0);
}

#[test]
fn a_refusal_for_lack_of_memory_leaves_a_limit_record() {
    let upstream = Upstream::saying("");
    let proxyd = limited(&upstream, TOO_LITTLE).start();
    assert_eq!(wait_for(proxyd.stdout(), "memory limit exceeded"), "ERROR");

    let response = proxyd.connect().response();

    let record = proxyd.limit_record(&response.correlation_id());
    assert_eq!(record.text("level"), "WARN");
    assert_eq!(record.text("setting"), "limits.max-memory-bytes");
    assert_eq!(record.number("limit"), Some(f64::from(16 << 20)));
    assert!(record.number("actual") > record.number("limit"));
    assert_eq!(record.text("client_ip"), "127.0.0.1");
    // A flood of refusals is folded, as for any limit.
    for _ in 0..20 {
        let response = proxyd.connect().response();
        drop(proxyd.error_record(&response.correlation_id()));
    }
    let records = proxyd.stdout().records();
    let records = records
        .iter()
        .filter(|it| it.has("actual") && !it.has("repeated"));
    assert!(records.count() < 20);
}

#[test]
fn waiting_requests_are_refused_when_memory_is_short() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let queue = "max-in-flight-requests 1; max-queue-wait-secs 60";
    let proxyd = limited(&upstream, queue).start();
    let mut first = proxyd.connect();
    first.send(get("/", &[]));
    upstream.wait_for_requests(1);
    let mut waits = proxyd.connect();
    waits.send(get("/", &[]));
    crate::support::pause(&mut waits, 300);

    let short = limited(&upstream, &format!("{queue}; {TOO_LITTLE}")).kdl();
    assert_eq!(proxyd.reload(&short), Reload::Applied);

    let response = waits.response();
    refusal(&response, 503, "SERVICE_UNAVAILABLE");
    assert_eq!(reason(&proxyd, &response), "memory_pressure");
    gate.open();
    assert_eq!(first.response().status, 200);
}

#[test]
fn a_share_of_the_memory_is_a_limit_in_bytes() {
    let upstream = Upstream::saying("");
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.unwrap().trim().strip_suffix(" kB").unwrap();
    let machine: u64 = kib.parse::<u64>().unwrap() * 1024;
    let limit = |limits: &str| {
        let proxyd = limited(&upstream, limits).start();
        sample(&proxyd, "proxy_memory_limit_bytes")
    };

    let half = limit("max-memory-percent 50.0");
    assert!(half > 0 && half <= machine / 2, "{half} of {machine}");
    // The test cannot know the group's limit, but half of it is half of the whole.
    let whole = limit("max-memory-percent 100.0");
    assert!(whole.abs_diff(half * 2) <= 2, "{half} of {whole}");
    assert_eq!(
        limit("max-memory-percent 100.0; max-memory-bytes \"17MiB\""),
        17 << 20
    );
}

/// Returns the sum of the worst case, as `--test --verbose` prints it.
fn printed_sum(proxyd: &Proxyd) -> u64 {
    let output = Command::new(BINARY)
        .args(["--test", "--verbose", "--config"])
        .arg(proxyd.config())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text
        .lines()
        .find(|line| line.trim().starts_with("together"));
    let words = line.unwrap_or_else(|| panic!("{text}")).split_whitespace();
    words.rev().nth(1).unwrap().parse().unwrap()
}

#[test]
fn peers_at_their_worst_stay_within_the_printed_sum() {
    const HELD: usize = 256 << 10;
    let large = "word ".repeat(200_000);
    let length = large.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{large}"
    );
    let upstream = Upstream::answering(head);
    let policies = "buffer-requests #true; buffer-responses #true; compression";
    let limits = format!(
        "limits {{ max-total-connections 500; max-connections-per-client 500; \
         max-in-flight-requests 200; max-in-flight-requests-per-worker 200; \
         max-body-buffer-bytes {HELD}; max-body-size-bytes {HELD} }}"
    );
    let proxyd = Config::through(&upstream, policies).top(&limits).start();
    let sum = printed_sum(&proxyd);
    let before = proxyd.rss_bytes();
    let mut clients: Vec<RawClient> = Vec::new();
    // Uploads without their last byte.
    let body = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {HELD}\r\n\r\n{}",
        "a".repeat(HELD - 1)
    );
    for _ in 0..150 {
        let mut client = proxyd.connect();
        client.send(&body);
        clients.push(client);
    }
    // Compressed responses that no client reads.
    for _ in 0..45 {
        let mut client = RawClient::connect_with_small_buffer(proxyd.address(), 4_096);
        client.send(get("/", &[("Accept-Encoding", "zstd")]));
        clients.push(client);
    }
    // Heads without an end.
    let long = "b".repeat(4_000);
    for _ in 0..300 {
        let mut client = proxyd.connect();
        client.send(format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX-A: {long}\r\nX-B: {long}"
        ));
        clients.push(client);
    }
    upstream.wait_for_requests(45);
    // All bodies have arrived when this much memory is in use.
    while proxyd.rss_bytes() < before + 150 * HELD as u64 {
        assert!(proxyd.peak_rss_bytes() < sum);
    }
    let mut last = proxyd.connect();
    assert_eq!(last.ask(get("/", &[])).status, 200);

    let peak = proxyd.peak_rss_bytes();
    assert!(peak < sum, "{peak} of {sum}");
    drop(clients);
}

/// Opens uploads of `bytes` each without their last byte, and sends as much as the proxy accepts.
fn open_uploads(proxyd: &Proxyd, count: usize, bytes: usize) -> Vec<TcpStream> {
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {bytes}\r\n\r\n");
    let upload = [head.into_bytes(), vec![b'a'; bytes - 1]].concat();
    let clients = (0..count).map(|_| TcpStream::connect(proxyd.address()).unwrap());
    let mut clients: Vec<_> = clients.map(|client| (client, 0)).collect();
    for (client, _) in &clients {
        client.set_nonblocking(true).unwrap();
    }
    let mut sent_at = Instant::now();
    // Refused uploads end; admitted ones wait for their last byte.
    while sent_at.elapsed() < Duration::from_secs(1) {
        for (client, sent) in &mut clients {
            if let Ok(more @ 1..) = client.write(&upload[*sent..upload.len().min(*sent + 65_536)]) {
                *sent += more;
                sent_at = Instant::now();
            }
        }
    }
    clients.into_iter().map(|(client, _)| client).collect()
}

#[test]
fn buffered_uploads_stay_under_the_limit_and_small_ones_are_served() {
    const UPLOAD_BYTES: usize = 10_000_000;
    let upstream = Upstream::echo();
    let limits = "limits { max-memory-bytes 100000000; max-body-buffer-bytes \"64MiB\"; \
                  max-body-size-bytes \"64MiB\"; max-connections-per-client 4000 }";
    for uploads in [30, 300, 3_000] {
        let proxyd = Config::through(&upstream, "buffer-requests #true")
            .top(limits)
            .start();

        let clients = open_uploads(&proxyd, uploads, UPLOAD_BYTES);

        let small = "small ".repeat(2_000);
        assert_eq!(proxyd.connect().ask(post("/", &small)).text(), small);
        let peak = proxyd.peak_rss_bytes();
        assert!(peak < 110_000_000, "{peak}");
        assert_eq!(sample(&proxyd, "proxy_memory_shedding"), 0);
        let refused = proxyd.stdout().find(0, |record| {
            record.text("reason") == "memory_pressure" && record.number("status").is_some()
        });
        assert_eq!(refused.number("status"), Some(503.0));
        let refused = sample(&proxyd, "proxy_errors_total{reason=\"memory_pressure\"}");
        drop(clients);

        let dropped_at = Instant::now();
        let large = "large ".repeat(UPLOAD_BYTES / 6);
        while proxyd.connect().ask(post("/", &large)).status != 200 {
            assert!(dropped_at.elapsed() < Duration::from_secs(5));
        }
        println!(
            "{uploads} uploads: {} MB at the peak, {refused} refused, {:?} until one of 10 MB is accepted",
            peak / 1_000_000,
            dropped_at.elapsed()
        );
    }
}

#[test]
fn memory_of_closed_connections_is_released() {
    let upstream = Upstream::saying("");
    let proxyd = limited(
        &upstream,
        "max-memory-bytes \"64MiB\"; max-connections-per-client 5000; \
         max-header-size-bytes 65536; max-header-value-bytes 65536",
    )
    .start();
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX-A: {}", "b".repeat(60_000));
    let mut clients = Vec::new();
    while sample(&proxyd, "proxy_memory_shedding") == 0 {
        assert!(clients.len() < 4_000);
        for _ in 0..100 {
            let mut client = TcpStream::connect(proxyd.address()).unwrap();
            // The proxy may have refused the upload.
            drop(client.write_all(head.as_bytes()));
            clients.push(client);
        }
    }

    drop(clients);

    wait_for(proxyd.stderr(), "memory is below its limit");
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
}

#[test]
fn a_response_in_chunks_of_one_byte_needs_memory_by_its_length() {
    const BYTES: usize = 500_000;
    let gate = Gate::new();
    let opened = gate.clone();
    let upstream = Upstream::start(move |served| {
        if served.request().is_some() {
            served.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            served.send("1\r\na\r\n".repeat(BYTES));
            opened.wait();
            served.send("0\r\n\r\n");
        }
    });
    let proxyd = Config::through(&upstream, "buffer-responses #true").start();
    let before = proxyd.rss_bytes();
    let mut clients: Vec<_> = (0..8).map(|_| proxyd.connect()).collect();
    for client in &mut clients {
        client.send(get("/", &[]));
    }
    upstream.wait_for_requests(8);
    crate::support::pause(&mut clients[0], 1_000);

    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().text().len(), BYTES);
    }

    let grown = proxyd.peak_rss_bytes() - before;
    assert!(grown < 40_000_000, "{grown}");
}
