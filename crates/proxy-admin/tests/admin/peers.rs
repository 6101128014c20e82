//! Clients that send invalid or too much data, send slowly, or do not read.

use crate::support::{Admin, Answer};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn malformed_bytes_get_the_standard_error_body() {
    let admin = Admin::open();
    let cases = [
        ("GET /\r\n\r\n", "PARSE"),
        ("\u{1}\u{2}\u{3} garbage\r\n\r\n", "PARSE"),
        ("GET /status HTTP/1.1\r\n\r\n", "PARSE"),
        (
            "GET /status HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "PARSE",
        ),
        ("GET /status HTTP/1.1\r\nHost : a\r\n\r\n", "PARSE"),
        ("GET /status HTTP/1.1\nHost: a\n\n", "PARSE"),
        ("GET /status HTTP/9.9\r\nHost: a\r\n\r\n", "PARSE"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PARSE"),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "PARSE",
        ),
    ];
    for (request, code) in cases {
        let answer = admin.send(request).await;
        assert_eq!(answer.status, 400, "{request:?}");
        assert_eq!(answer.error_code(), code, "{request:?}");
        assert_eq!(answer.field("connection"), Some("close"), "{request:?}");
    }
    assert_eq!(admin.get("/health").await.status, 200);
}

#[tokio::test]
async fn an_id_before_malformed_bytes_is_kept() {
    let request = "GET / HTTP/1.1\r\nX-Correlation-Id: mine\r\nbroken line\r\n\r\n";
    let answer = Admin::open().send(request).await;

    assert_eq!(answer.status, 400);
    assert_eq!(answer.field("x-correlation-id"), Some("mine"));
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let admin = Admin::open();
    let long_value = format!("X-Long: {}\r\n", "v".repeat(5_000));
    let many = "X-Many: v\r\n".repeat(100);
    for (fields, limit) in [(long_value, "header_size"), (many, "header_count")] {
        let answer = admin.ask("GET", "/health", &fields).await;
        assert_eq!(answer.status, 429, "{answer:?}");
        assert_eq!(answer.error_code(), "LIMIT_EXCEEDED");
        let document = answer.json();
        let message = document["error"]["message"].as_str().unwrap();
        let beginning = format!("Limit exceeded: {limit} - Current value ");
        assert!(message.starts_with(&beginning), "{message}");
        assert!(message.contains(" exceeds limit "), "{message}");
    }
    let path = format!("/{}", "p".repeat(3_000));
    assert_eq!(admin.get(&path).await.error_code(), "LIMIT_EXCEEDED");
}

#[tokio::test]
async fn bodies_that_cannot_be_read_are_refused_as_all_other_errors_are() {
    let admin = Admin::open();
    let large = format!("Content-Length: 65537\r\n\r\n{}", " ".repeat(65_537));
    let malformed = "Transfer-Encoding: chunked\r\n\r\nzz\r\n".to_owned();
    for (fields, status, code) in [
        (large, 413, "LIMIT_EXCEEDED"),
        (malformed, 400, "REQUEST_VALIDATION"),
    ] {
        let answer = admin.ask("POST", "/admin/explain", &fields).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.error_code(), code);
    }
    for path in [
        "/admin/upstreams/%ff/targets/a",
        "/admin/upstreams/none/targets/a",
    ] {
        let answer = admin.ask("PATCH", path, "").await;
        assert_eq!(answer.error_code(), "ROUTE_NOT_FOUND", "{path}");
        let document = answer.json();
        let message = &document["error"]["message"];
        assert_eq!(message, "Not found: no such upstream or target", "{path}");
    }
}

#[tokio::test]
async fn requests_before_malformed_bytes_are_answered_first() {
    let admin = Admin::open();
    let mut stream = admin.connect().await;
    let good = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let both = format!("{good}{good}bad\r\n\r\n");
    stream.write_all(both.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();

    let statuses: Vec<_> = text
        .match_indices("HTTP/1.1 ")
        .map(|(at, _)| text.get(at + 9..at + 12).unwrap())
        .collect();
    assert_eq!(statuses, ["200", "200", "400"]);
}

#[tokio::test]
async fn a_body_is_neither_read_nor_waited_for() {
    let admin = Admin::open();
    let request = "GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nabc";
    let mut stream = admin.connect().await;
    stream.write_all(request.as_bytes()).await.unwrap();

    let answer = Answer::read_one(&mut stream).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_slow_head_times_out() {
    let admin = Admin::open();
    let mut stream = admin.connect().await;
    stream
        .write_all(b"GET /health HTTP/1.1\r\nHost: local")
        .await
        .unwrap();

    let answer = Answer::read_all(&mut stream).await;
    assert_eq!(answer.status, 408);
    assert_eq!(answer.error_code(), "TIMEOUT");
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_without_a_response() {
    let admin = Admin::open();
    let mut stream = admin.connect().await;
    let request = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    Answer::read_one(&mut stream).await;

    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn clients_that_hold_connections_block_no_other_client() {
    let admin = Admin::open();
    let mut held = Vec::new();
    for _ in 0..100 {
        let mut stream = admin.connect().await;
        stream
            .write_all(b"GET /health HTTP/1.1\r\nHost: lo")
            .await
            .unwrap();
        held.push(stream);
    }
    for _ in 0..3 {
        assert_eq!(admin.get("/health").await.status, 200);
    }
    let mut rest = Vec::new();
    let first = held[0].read_to_end(&mut rest);
    let ended = tokio::time::timeout(Duration::from_secs(20), first).await;
    assert!(ended.is_ok(), "the first one was held all the while");
}

#[tokio::test]
async fn an_answer_in_progress_is_finished_before_the_socket_closes() {
    let admin = Admin::open();
    let address = admin.address;
    let mut resting = admin.connect().await;
    let request = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    resting.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(Answer::read_one(&mut resting).await.status, 200);

    let ended = admin.begin_stop().await.unwrap();
    assert!(ended.is_ok());
    let mut rest = Vec::new();
    resting.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"");
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
