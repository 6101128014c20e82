//! Streaming: data is forwarded as it arrives, with buffers of limited size.

use crate::support::{Config, kernel_buffers, request};
use proxy_testkit::{Gate, RawClient, Upstream, get};

const MIB: usize = 1 << 20;
const DOWNLOAD: usize = 200 * MIB;
const PIECE: &[u8] = &[0; 65536];

#[test]
fn a_response_reaches_the_client_piece_by_piece() {
    let (first, second) = (Gate::new(), Gate::new());
    let gates = [first.clone(), second.clone()];
    let upstream = Upstream::start(move |served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n");
        served.send("Transfer-Encoding: chunked\r\n\r\n");
        for (gate, event) in gates.iter().zip(["one", "two"]) {
            gate.wait();
            served.send(format!("3\r\n{event}\r\n"));
        }
        served.send("0\r\n\r\n");
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    client.send(get("/events", &[]));
    assert_eq!(client.head().status, 200);
    first.open();
    assert_eq!(client.exactly(8).unwrap(), b"3\r\none\r\n");
    second.open();
    assert_eq!(client.exactly(13).unwrap(), b"3\r\ntwo\r\n0\r\n\r\n");
}

#[test]
fn a_request_reaches_the_upstream_piece_by_piece() {
    let (arrived, seen) = (Gate::new(), Gate::new());
    let gates = (arrived.clone(), seen.clone());
    let upstream = Upstream::start(move |served| {
        served.head();
        gates.0.open();
        assert_eq!(served.exactly(8).unwrap(), b"3\r\none\r\n");
        gates.1.open();
        assert_eq!(served.exactly(13).unwrap(), b"3\r\ntwo\r\n0\r\n\r\n");
        served.send(proxy_testkit::ok("done"));
        served.end();
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    client.send(request("POST /", "Transfer-Encoding: chunked\r\n", ""));
    arrived.wait();
    client.send("3\r\none\r\n");
    seen.wait();
    client.send("3\r\ntwo\r\n0\r\n\r\n");
    assert_eq!(client.response().text(), "done");
}

#[test]
fn an_answer_may_overtake_the_request_it_answers() {
    // Both directions at the same time, as for gRPC streams, here through HTTP/1.1 tunnels.
    let upstream = Upstream::start(|served| {
        served.head();
        served.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while let Ok(bytes) = served.some() {
            served.send(&bytes);
            if bytes.ends_with(b"0\r\n\r\n") {
                break;
            }
        }
        served.end();
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    client.send(request("POST /", "Transfer-Encoding: chunked\r\n", ""));
    assert_eq!(client.head().status, 200);
    for word in ["ping", "pong"] {
        let chunk = format!("4\r\n{word}\r\n");
        client.send(&chunk);
        assert_eq!(client.exactly(chunk.len()).unwrap(), chunk.as_bytes());
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.exactly(5).unwrap(), b"0\r\n\r\n");
}

#[test]
fn a_slow_client_slows_its_upstream_down_and_costs_no_memory() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {DOWNLOAD}\r\n\r\n"
        ));
        for _ in 0..DOWNLOAD / PIECE.len() {
            if !served.send(PIECE) {
                return;
            }
        }
        served.end();
    });
    let proxyd = Config::to(&upstream).start();
    let before = proxyd.rss_bytes();
    let mut client = RawClient::connect_with_small_buffer(proxyd.address(), 65536);

    client.send(get("/", &[]));
    let head = client.head();
    client.discard(DOWNLOAD).unwrap();

    let grown = proxyd.peak_rss_bytes().saturating_sub(before);
    assert!(grown < 16 << 20, "grew by {grown} bytes");
    let record = proxyd.access_record(&head.correlation_id());
    assert_eq!(record.number("bytes_out"), Some(209_715_200.0));
}

#[test]
fn many_clients_that_read_nothing_cost_little_memory() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {DOWNLOAD}\r\n\r\n"
        ));
        while served.send(PIECE) {}
    });
    let proxyd = Config::to(&upstream).start();
    let before = proxyd.rss_bytes();

    let mut clients: Vec<RawClient> = (0..20)
        .map(|_| RawClient::connect_with_small_buffer(proxyd.address(), 4096))
        .collect();
    for client in &mut clients {
        client.send(get("/", &[]));
        let mut head = client.head();
        if head.status != 200 {
            client.body(&mut head);
            panic!("{} {}", head.text(), proxyd.stdout().lines().join("\n"));
        }
    }
    let other = Upstream::saying("");
    // Other requests first, so that every buffer is allocated.
    for _ in 0..50 {
        let _ = RawClient::connect(other.address()).ask(get("/", &[]));
    }

    let grown = proxyd.peak_rss_bytes().saturating_sub(before);
    assert!(grown < 40 << 20, "20 stalled downloads hold {grown} bytes");
}

#[test]
fn slow_clients_share_the_budget_of_large_reads() {
    const CLIENTS: usize = 300;
    const READS: usize = 25;
    let upstream = Upstream::start(|served| {
        served.request();
        served.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {DOWNLOAD}\r\n\r\n"
        ));
        while served.send(PIECE) {}
    });
    let proxyd = Config::to(&upstream)
        .top("system { worker-threads 1 }\nlimits { max-connections-per-client 1000 }")
        .start();
    let before = proxyd.rss_bytes();

    let mut clients: Vec<RawClient> = (0..CLIENTS)
        .map(|_| RawClient::connect_with_small_buffer(proxyd.address(), 65536))
        .collect();
    for client in &mut clients {
        client.send(get("/", &[]));
    }
    for _ in 0..READS {
        for client in &mut clients {
            client.discard(65536).unwrap();
        }
    }

    let grown = proxyd.peak_rss_bytes().saturating_sub(before);
    // Large reads use 32 MiB, and some of them also hold their former buffer; each has 16 KiB
    // besides. A busy machine delays the thread that returns freed pages.
    assert!(
        grown < 128 << 20,
        "{CLIENTS} slow downloads hold {grown} bytes"
    );
}

#[test]
fn a_slow_upstream_slows_its_client_down_and_costs_no_memory() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let config = Config::to(&upstream).top("limits { max-body-size-bytes \"1GB\" }");
    let proxyd = config.start();
    let before = proxyd.rss_bytes();
    let mut client = proxyd.connect();
    let held = kernel_buffers() + 8 * MIB;
    let length = held + 16 * MIB;

    client.send(request(
        "POST /",
        &format!("Content-Length: {length}\r\n"),
        "",
    ));
    client.set_response_timeout(std::time::Duration::from_millis(300));
    let mut sent = 0;
    while let Ok(count) = client.send_some(PIECE) {
        sent += count;
    }
    assert!(sent < held, "{sent} bytes were taken from the client");
    gate.open();
    client.set_response_timeout(proxy_testkit::EVENT_TIMEOUT);
    while sent < length {
        sent += client
            .send_some(&PIECE[..PIECE.len().min(length - sent)])
            .unwrap();
    }

    assert_eq!(client.response().text(), length.to_string());
    let grown = proxyd.peak_rss_bytes().saturating_sub(before);
    assert!(grown < 16 << 20, "grew by {grown} bytes");
}
