//! Long bodies that are spliced through a kernel pipe.

use crate::support::{Config, request};
use proxy_testkit::{Proxyd, RawClient, Record, Served, Upstream, get};
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

const BODY_BYTES: usize = 3 * 1024 * 1024 + 17;

/// Body with bytes that depend on their position.
static BODY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    (0_u32..)
        .flat_map(u32::to_be_bytes)
        .take(BODY_BYTES)
        .collect()
});

fn head(length: usize) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")
}

/// Starts an upstream that sends the body to every client, in chunks of this size.
fn sending(piece: usize) -> Upstream {
    Upstream::start(move |served| {
        while served.request().is_some() {
            served.send(head(BODY_BYTES));
            if !BODY.chunks(piece).all(|piece| served.send(piece)) {
                return;
            }
        }
    })
}

/// Starts an upstream that sends this part of a long body, and then runs `then`.
fn beginning(sent: usize, then: impl Fn(&mut Served) + Send + Sync + 'static) -> Upstream {
    Upstream::start(move |served| {
        served.request();
        served.send(head(BODY_BYTES));
        served.send(&BODY[..sent]);
        then(served);
    })
}

/// Reads a million bytes of an incomplete long body; returns the request's access record.
#[track_caller]
fn a_million_bytes(proxyd: &Proxyd) -> Record {
    let mut client = proxyd.connect();
    client.send(get("/", &[]));
    let head = client.head();
    let (received, _) = client.rest().unwrap();
    assert!(
        received == BODY[..1_000_000],
        "{} bytes received",
        received.len()
    );
    proxyd.access_record(&head.correlation_id())
}

/// Returns the number of the process's pipe descriptors.
fn pipes(proxyd: &Proxyd) -> usize {
    proxyd.files_by_kind().get("pipe").copied().unwrap_or(0)
}

#[test]
fn a_long_body_arrives_unchanged_and_both_connections_stay_open() {
    for piece in [1_000_003, 65_536, 1_461] {
        let upstream = sending(piece);
        let proxyd = Config::to(&upstream).start();
        let before = pipes(&proxyd);
        let mut client = proxyd.connect();

        for _ in 0..5 {
            let response = client.ask(get("/", &[]));
            assert_eq!(response.status, 200);
            assert!(response.body == *BODY, "pieces of {piece}");
            let record = proxyd.access_record(&response.correlation_id());
            assert_eq!(record.number("bytes_out"), Some(3_145_745.0));
        }

        assert_eq!(upstream.connections(), 1);
        assert_eq!(
            pipes(&proxyd),
            before + 2,
            "one pipe is used again and again"
        );
    }
}

#[test]
fn a_short_or_chunked_body_needs_no_pipe() {
    let upstream = Upstream::start(|served| {
        while served.request().is_some() {
            served.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for _ in 0..64 {
                served.send(format!("10000\r\n{}\r\n", "x".repeat(0x10000)));
            }
            served.send("0\r\n\r\n");
            served.request();
            served.send(head(10_000));
            served.send(&BODY[..10_000]);
        }
    });
    let proxyd = Config::to(&upstream).start();
    let before = pipes(&proxyd);
    let mut client = proxyd.connect();

    assert_eq!(client.ask(get("/", &[])).body.len(), 64 * 0x10000);
    assert!(client.ask(get("/", &[])).body == BODY[..10_000]);

    assert_eq!(pipes(&proxyd), before);
}

#[test]
fn a_head_request_for_a_long_body_waits_for_none() {
    let upstream = Upstream::start(|served| {
        while served.request().is_some() {
            served.send(head(BODY_BYTES));
        }
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        client.send(request("HEAD /", "", ""));
        assert_eq!(client.response_to_head().status, 200);
    }
}

#[test]
fn a_truncated_long_body_is_not_completed() {
    let upstream = beginning(1_000_000, |_| {});
    let proxyd = Config::to(&upstream).start();

    let record = a_million_bytes(&proxyd);

    assert_eq!(record.text("reason"), "response_truncated");
    assert_eq!(record.number("bytes_out"), Some(1_000_000.0));
}

#[test]
fn a_stalled_long_body_times_out() {
    let upstream = beginning(1_000_000, |served| {
        served.end();
    });
    let proxyd = Config::to_with(&upstream, "timeouts { read-ms 2000 }").start();

    let record = a_million_bytes(&proxyd);

    assert_eq!(record.text("reason"), "response_read_timeout");
    upstream.wait_for_ends(1);
}

#[test]
fn a_client_that_leaves_a_long_body_takes_its_upstream_request_along() {
    let upstream = beginning(1_000_000, |served| {
        served.end();
    });
    let proxyd = Config::to(&upstream).start();
    let before = pipes(&proxyd);
    let mut client = proxyd.connect();
    client.send(get("/", &[]));
    let head = client.head();
    client.discard(1_000_000).unwrap();

    client.reset();

    upstream.wait_for_ends(1);
    let record = proxyd.access_record(&head.correlation_id());
    assert_eq!(record.text("reason"), "client_aborted");
    assert_eq!(record.number("bytes_out"), Some(1_000_000.0));
    assert!(pipes(&proxyd) <= before + 2);
}

#[test]
fn bytes_after_a_long_body_are_not_delivered() {
    let upstream = Upstream::start(move |served| {
        served.request();
        served.send(head(BODY_BYTES));
        served.send(&*BODY);
        served.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
        served.end();
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    for connections in 1..=2 {
        let response = client.ask(get("/", &[]));
        assert!(response.body == *BODY);
        assert_eq!(upstream.connections(), connections);
    }
}

#[test]
fn an_upload_continues_during_its_long_response() {
    let upstream = Upstream::start(move |served| {
        let mut request = served.head().unwrap();
        served.send(head(BODY_BYTES));
        served.send(&BODY[..BODY_BYTES / 2]);
        served.body(&mut request);
        assert!(request.body == *BODY);
        served.send(&BODY[BODY_BYTES / 2..]);
        served.end();
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    client.send(request(
        "POST /",
        &format!("Content-Length: {BODY_BYTES}\r\n"),
        "",
    ));
    let mut head = client.head();
    client.send(&*BODY);
    client.body(&mut head);

    assert!(head.body == *BODY);
}

#[test]
fn more_stalled_downloads_than_pipes_all_complete_and_leave_no_pipe() {
    const CLIENTS: usize = 80;
    let upstream = sending(65_536);
    let proxyd = Config::to(&upstream)
        .top("system { worker-threads 1 }")
        .start();
    let before = pipes(&proxyd);
    let mut clients: Vec<RawClient> = (0..CLIENTS)
        .map(|_| RawClient::connect_with_small_buffer(proxyd.address(), 4096))
        .collect();
    for client in &mut clients {
        client.send(get("/", &[]));
    }
    upstream.wait_for_requests(CLIENTS);

    let mut heads: Vec<_> = clients.iter_mut().map(RawClient::head).collect();
    let most = pipes(&proxyd);
    assert!(most <= before + 2 * 32, "{most} ends of pipes");
    for (client, head) in clients.iter_mut().zip(&mut heads) {
        client.body(head);
        assert!(head.body == *BODY);
    }
    let looks = (0..200).map(|_| {
        thread::park_timeout(Duration::from_millis(50));
        pipes(&proxyd)
    });
    assert!(looks.into_iter().any(|found| found == before));
}

#[test]
fn without_files_left_for_a_pipe_a_long_body_is_copied() {
    let upstream = Upstream::start(|served| {
        for length in [10, BODY_BYTES] {
            served.request();
            served.send(head(length));
            served.send(&BODY[..length]);
        }
        served.end();
    });
    let proxyd = Config::to(&upstream).start();
    let before = pipes(&proxyd);
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/", &[])).body.len(), 10);

    proxyd.limit_open_files(1);
    let response = client.ask(get("/", &[]));

    assert!(response.body == *BODY);
    assert_eq!(pipes(&proxyd), before);
}
