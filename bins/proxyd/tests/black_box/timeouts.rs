//! Timeouts for slow clients and upstreams.

use crate::support::{Config, METRICS, metric, post, reason, refusal, request, target};
use proxy_testkit::{End, Gate, RawClient, Upstream, get, ok};
use std::net::SocketAddr;

fn with_timeouts(upstream: &Upstream, timeouts: &str) -> Config {
    Config::to(upstream).listener(&format!("timeouts {{ {timeouts} }}"))
}

#[test]
fn a_slow_head_is_answered_408() {
    let upstream = Upstream::saying("");
    let proxyd = with_timeouts(&upstream, "header-ms 300").start();
    let mut client = proxyd.connect();

    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n");
    let response = client.response();

    let message = refusal(&response, 408, "TIMEOUT");
    assert!(
        message.starts_with("Timeout: request header after 300ms"),
        "{message}"
    );
    assert_eq!(response.fields.get("connection"), Some("close"));
    assert_eq!(reason(&proxyd, &response), "request_header_timeout");
    assert_eq!(client.end(), End::Closed);
}

#[test]
fn a_head_that_drips_is_timed_from_its_first_byte() {
    let upstream = Upstream::saying("");
    let proxyd = with_timeouts(&upstream, "header-ms 400").start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/", &[])).status, 200);

    client.send("GET / HTTP/1.1\r\n");
    client.set_response_timeout(std::time::Duration::from_millis(50));
    // Pauses between bytes are much shorter than the timeout of 400 ms.
    while client.peek().is_err() {
        client.send("X");
    }

    let response = client.response();
    refusal(&response, 408, "TIMEOUT");
}

#[test]
fn a_connection_without_a_byte_is_closed_without_a_response() {
    let upstream = Upstream::saying("");
    let proxyd = with_timeouts(&upstream, "header-ms 300").start();

    assert_eq!(proxyd.connect().end(), End::Closed);
}

#[test]
fn a_stalled_body_is_answered_408() {
    let upstream = Upstream::start(|served| {
        served.head();
        served.end();
    });
    let config = with_timeouts(&upstream, "body-idle-ms 300");
    let proxyd = config
        .route("metrics", &format!("priority 100; {METRICS}"))
        .start();
    let mut client = proxyd.connect();

    client.send(request("POST /", "Content-Length: 10\r\n", "half"));
    let response = client.response();

    let message = refusal(&response, 408, "TIMEOUT");
    assert!(
        message.starts_with("Timeout: request body after 300ms"),
        "{message}"
    );
    assert_eq!(reason(&proxyd, &response), "request_body_timeout");
    upstream.wait_for_ends(1);
    let mut scraper = proxyd.connect();
    let failures = metric_or_zero(&mut scraper, "proxy_upstream_failures_total{upstream=\"u\"");
    assert!(
        failures.abs() < f64::EPSILON,
        "the client was slow, not the upstream"
    );
}

/// Like [`metric`]; 0 if it was never counted.
fn metric_or_zero(client: &mut RawClient, name: &str) -> f64 {
    let page = client.ask(request("GET /metrics", "", "")).text();
    let lines = page.lines().filter(|line| line.starts_with(name));
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

#[test]
fn a_slow_body_is_not_cut_while_it_makes_progress() {
    let upstream = Upstream::echo();
    let proxyd = with_timeouts(&upstream, "body-idle-ms 2500").start();
    let mut client = proxyd.connect();
    client.set_response_timeout(std::time::Duration::from_millis(400));

    let piece = "x".repeat(512);
    client.send(request("POST /", "Content-Length: 4096\r\n", ""));
    for _ in 0..8 {
        // Waits 400 ms for a response that cannot arrive yet, 3.2 s in total.
        assert!(client.peek().is_err());
        client.send(&piece);
    }

    client.set_response_timeout(proxy_testkit::EVENT_TIMEOUT);
    assert_eq!(client.response().body.len(), 4096);
}

#[test]
fn a_body_that_drips_is_answered_408() {
    let upstream = Upstream::start(|served| {
        served.head();
        served.end();
    });
    let proxyd = with_timeouts(&upstream, "body-idle-ms 600").start();
    for framing in ["Content-Length: 100000", "Transfer-Encoding: chunked"] {
        let mut client = proxyd.connect();
        client.set_response_timeout(std::time::Duration::from_millis(50));

        client.send(request("POST /", &format!("{framing}\r\n"), ""));
        let piece = if framing.ends_with("chunked") {
            "1\r\nx\r\n"
        } else {
            "x"
        };
        // Pauses between chunks are much shorter than the timeout of 600 ms.
        while client.peek().is_err() {
            client.send(piece);
        }

        client.set_response_timeout(proxy_testkit::EVENT_TIMEOUT);
        let response = client.response();
        let message = refusal(&response, 408, "TIMEOUT");
        assert!(
            message.starts_with("Timeout: request body after 600ms"),
            "{message}"
        );
        assert_eq!(reason(&proxyd, &response), "request_body_timeout");
    }
}

#[test]
fn an_idle_connection_is_closed() {
    let upstream = Upstream::saying("");
    let proxyd = with_timeouts(&upstream, "keep-alive-ms 300").start();
    let mut client = proxyd.connect();

    assert_eq!(client.ask(get("/", &[])).status, 200);
    assert_eq!(client.end(), End::Closed);
}

#[test]
fn a_client_that_reads_nothing_is_aborted() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
        while served.send([0; 65536]) {}
        served.end();
    });
    let proxyd = with_timeouts(&upstream, "write-idle-ms 300").start();
    let mut client = RawClient::connect_with_small_buffer(proxyd.address(), 4096);

    client.send(get("/", &[("X-Correlation-Id", "deaf")]));
    let record = proxyd.access_record("deaf");

    assert_eq!(record.text("reason"), "client_write_timeout");
    assert_eq!(record.text("error_type"), "Timeout");
    assert!(record.number("bytes_out").unwrap() < 100_000_000.0);
    drop(client);
}

/// The kernel reports reads by a client only in large steps. This client reads the rest of a
/// buffer, and then so little at a time that nothing is reported.
#[test]
fn a_client_that_reads_too_slowly_is_aborted() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
        while served.send([0; 65536]) {}
        served.end();
    });
    let proxyd = with_timeouts(&upstream, "write-idle-ms 600").start();
    let mut client = RawClient::connect_with_small_buffer(proxyd.address(), 4096);

    client.send(get("/", &[("X-Correlation-Id", "sips")]));
    let log = proxyd.stdout();
    let mut sips = 0;
    while log.lines().iter().all(|line| !line.contains("sips")) {
        sips += 1;
        assert!(sips < 2_000, "still served");
        // Reads a byte, and pauses.
        client.exactly(1).unwrap();
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }

    let record = proxyd.access_record("sips");
    assert_eq!(record.text("reason"), "client_write_timeout");
}

#[test]
fn a_late_response_head_is_answered_504() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.end();
    });
    let proxyd = Config::to_with(&upstream, "timeouts { request-ms 300 }").start();

    let response = proxyd.connect().ask(get("/", &[]));

    let message = refusal(&response, 504, "TIMEOUT");
    assert!(
        message.starts_with("Timeout: response header after 300ms"),
        "{message}"
    );
    assert_eq!(reason(&proxyd, &response), "response_header_timeout");
    assert_eq!(
        proxyd
            .error_record(&response.correlation_id())
            .text("upstream"),
        "u"
    );
    upstream.wait_for_ends(1);
}

#[test]
fn the_time_of_a_route_replaces_that_of_its_upstream_for_the_response_head() {
    let gate = Gate::new();
    let waiting = gate.clone();
    let upstream = Upstream::start(move |served| {
        while served.request().is_some() {
            waiting.wait();
            served.send(ok("late"));
        }
    });
    let patient =
        "matches { path \"/patient\" }; upstream \"u\"; policies { timeouts { request-secs 60 } }";
    let proxyd = Config::to_with(&upstream, "timeouts { request-ms 300 }")
        .route("patient", patient)
        .start();
    let mut client = proxyd.connect();
    client.send(get("/patient", &[]));
    upstream.wait_for_requests(1);

    // Begins later and ends, so the first request has waited longer than the upstream's time.
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 504);
    gate.open();
    assert_eq!(client.response().text(), "late");
}

#[test]
fn the_time_for_the_response_begins_when_the_request_is_sent() {
    let upstream = Upstream::echo();
    let proxyd = Config::to_with(&upstream, "timeouts { request-ms 2000 }").start();
    let mut client = proxyd.connect();
    // Four of these pauses are longer than the timeout of the response.
    client.set_response_timeout(std::time::Duration::from_millis(600));

    client.send(request("POST /", "Content-Length: 4\r\n", ""));
    for _ in 0..4 {
        assert!(client.peek().is_err());
        client.send("x");
    }

    client.set_response_timeout(proxy_testkit::EVENT_TIMEOUT);
    assert_eq!(client.response().status, 200);
}

#[test]
fn a_stalled_response_is_aborted() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        served.end();
    });
    let proxyd = Config::to_with(&upstream, "timeouts { read-ms 2000 }").start();
    let mut client = proxyd.connect();

    client.send(get("/", &[]));
    let head = client.head();
    let (bytes, _) = client.rest().unwrap();

    assert_eq!((head.status, bytes.as_slice()), (200, b"half".as_slice()));
    let record = proxyd.access_record(&head.correlation_id());
    assert_eq!(record.text("reason"), "response_read_timeout");
    upstream.wait_for_ends(1);
}

#[test]
fn a_slow_connect_is_answered_504() {
    // The queue is full, and no connection in it is accepted.
    let (address, _queue) = full_queue();
    let proxyd = Config::new()
        .route("all", r#"upstream "u""#)
        .upstream(
            "u",
            &format!("target \"{address}\"; timeouts {{ connect-ms 300 }}"),
        )
        .start();

    let response = proxyd.connect().ask(get("/", &[]));

    let message = refusal(&response, 504, "TIMEOUT");
    assert!(
        message.starts_with("Timeout: connect after 300ms"),
        "{message}"
    );
    assert_eq!(reason(&proxyd, &response), "connect_timeout");
}

#[test]
fn a_route_has_its_own_connect_time() {
    let (address, _queue) = full_queue();
    let upstream = format!("target \"{address}\"; timeouts {{ connect-secs 60 }}");
    let proxyd = Config::new()
        .route("all", r#"upstream "u"; timeouts { connect-ms 300 }"#)
        .upstream("u", &upstream)
        .start();

    let response = proxyd.connect().ask(get("/", &[]));

    let message = refusal(&response, 504, "TIMEOUT");
    assert!(
        message.starts_with("Timeout: connect after 300ms"),
        "{message}"
    );
}

fn full_queue() -> (SocketAddr, Vec<std::net::TcpStream>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let time = std::time::Duration::from_millis(200);
    let connect = || std::net::TcpStream::connect_timeout(&address, time);
    let mut queue = Vec::new();
    while let Ok(stream) = connect() {
        queue.push(stream);
    }
    // Stays open until the test ends, like the waiting connections.
    std::mem::forget(listener);
    (address, queue)
}

#[test]
fn an_upstream_that_takes_no_body_is_answered_504() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let config = Config::to_with(&upstream, "timeouts { read-ms 300 }");
    let proxyd = config.top("limits { max-body-size-bytes \"1GB\" }").start();
    let mut client = proxyd.connect();

    client.send(request("POST /", "Content-Length: 500000000\r\n", ""));
    client.set_response_timeout(std::time::Duration::from_millis(100));
    // A proxy that stalls for a moment accepts more afterwards.
    while client.peek().is_err() {
        while client.send_some(&[0; 65536]).is_ok() {}
    }
    client.set_response_timeout(proxy_testkit::EVENT_TIMEOUT);
    let response = client.response();

    let message = refusal(&response, 504, "TIMEOUT");
    assert!(
        message.starts_with("Timeout: request to upstream after 300ms"),
        "{message}"
    );
    assert_eq!(reason(&proxyd, &response), "upstream_write_timeout");
    gate.open();
}

#[test]
fn a_route_timeout_cuts_the_whole_exchange() {
    let upstream = Upstream::start(|served| {
        let request = served.request();
        if request.is_some_and(|request| request.target == "/begun") {
            served.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            served.set_response_timeout(std::time::Duration::from_millis(50));
            while served.some().is_err() && served.send("1\r\nx\r\n") {}
        }
        served.end();
    });
    let proxyd = Config::through(&upstream, "timeouts { request-ms 400 }").start();

    let response = proxyd.connect().ask(get("/late", &[]));
    let message = refusal(&response, 504, "TIMEOUT");
    assert!(message.contains("after 400ms"), "{message}");
    assert_eq!(reason(&proxyd, &response), "request_timeout");

    let mut client = proxyd.connect();
    client.send(get("/begun", &[]));
    let head = client.head();
    let (bytes, _) = client.rest().unwrap();
    assert!(!bytes.ends_with(b"0\r\n\r\n"), "it must not look whole");
    let record = proxyd.access_record(&head.correlation_id());
    assert_eq!(record.text("reason"), "request_timeout");
}

#[test]
fn a_route_has_its_own_read_and_connect_times() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        served.end();
    });
    let proxyd = Config::new()
        .route("quick", r#"upstream "u"; timeouts { read-ms 2000 }"#)
        .upstream(
            "u",
            &format!("{}; timeouts {{ read-secs 60 }}", target(&upstream)),
        )
        .start();
    let mut client = proxyd.connect();

    client.send(get("/", &[]));
    let head = client.head();
    let _ = client.rest().unwrap();

    let record = proxyd.access_record(&head.correlation_id());
    assert_eq!(record.text("reason"), "response_read_timeout");
}

#[test]
fn a_response_that_moves_is_not_cut_by_any_total() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n");
        served.set_response_timeout(std::time::Duration::from_millis(400));
        for _ in 0..8 {
            // Waits 3.2 s in total.
            assert!(served.some().is_err());
            served.send("x");
        }
    });
    let proxyd = Config::to_with(&upstream, "timeouts { read-ms 2500; request-ms 2500 }").start();

    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "xxxxxxxx");
}

#[test]
fn after_a_timeout_the_target_is_asked_on_a_new_connection() {
    let gate = Gate::new();
    let waiting = gate.clone();
    let upstream = Upstream::start(move |served| {
        while served.request().is_some() {
            if served.number() == 0 {
                waiting.wait();
            }
            served.send(ok(served.number().to_string()));
        }
    });
    let proxyd = Config::to_with(&upstream, "timeouts { request-ms 2000 }").start();
    let mut client = proxyd.connect();

    assert_eq!(client.ask(get("/", &[])).status, 504);
    gate.open();
    // The late response to the first request must not arrive.
    assert_eq!(client.ask(get("/", &[])).text(), "1");
}

#[test]
fn a_refused_upload_leaves_the_next_client_alone() {
    let upstream = Upstream::echo();
    let proxyd = with_timeouts(&upstream, "body-idle-ms 300").start();
    let mut slow = proxyd.connect();
    slow.send(request("POST /", "Content-Length: 10\r\n", "half"));
    assert_eq!(slow.response().status, 408);

    assert_eq!(proxyd.connect().ask(post("/", "whole")).text(), "whole");
}

#[test]
fn the_metrics_page_counts_timeouts() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.end();
    });
    let config = Config::to_with(&upstream, "timeouts { request-ms 200 }");
    let proxyd = config
        .route("metrics", &format!("priority 100; {METRICS}"))
        .start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/", &[])).status, 504);

    let name = "proxy_upstream_failures_total{upstream=\"u\",reason=\"response_header_timeout\"}";
    assert!((metric(&mut client, name) - 1.0).abs() < f64::EPSILON);
}

#[test]
fn a_client_that_reads_slowly_does_not_outlast_the_route_s_total() {
    let upstream = Upstream::answering(ok(vec![b'x'; 8_000_000]));
    let proxyd = Config::through(&upstream, "timeouts { request-ms 1000 }").start();
    let mut client = RawClient::connect_with_small_buffer(proxyd.address(), 4_096);

    client.send(get("/", &[]));
    // Every 50 ms, the client reads more than the required minimum.
    client.set_response_timeout(std::time::Duration::from_millis(50));
    let mut taken = 0;
    while client.discard(8_192).is_ok() && taken < 100 {
        pause_between_sips();
        taken += 1;
    }

    let record = proxyd.stdout().find(0, |record| record.has("status"));
    assert_eq!(record.text("reason"), "request_timeout");
    let took = record.number("duration_ms").unwrap();
    assert!((900.0..6_000.0).contains(&took), "{took}");
}

/// Pause of a slow client; the test does not wait for an event here.
fn pause_between_sips() {
    let (_never, receiver) = std::sync::mpsc::channel::<()>();
    let sipped = receiver.recv_timeout(std::time::Duration::from_millis(50));
    assert!(sipped.is_err());
}
