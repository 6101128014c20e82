//! Either side disconnects, or responds, before the other has finished.

use crate::support::{Config, METRICS, metric, refusal, request};
use proxy_testkit::{End, Gate, RawClient, Upstream, get};

#[test]
fn a_client_that_leaves_takes_its_upstream_request_along() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.end();
    });
    let config = Config::to(&upstream).route("metrics", &format!("priority 100; {METRICS}"));
    let proxyd = config.start();
    let mut client = proxyd.connect();
    client.send(get("/", &[("X-Correlation-Id", "gone")]));
    upstream.wait_for_requests(1);

    client.reset();

    upstream.wait_for_ends(1);
    let record = proxyd.access_record("gone");
    assert_eq!(record.number("status"), Some(499.0));
    assert_eq!(record.text("reason"), "client_aborted");
    let mut scraper = proxyd.connect();
    let aborts = metric(&mut scraper, "proxy_client_aborts_total{route=\"all\"}");
    assert!((aborts - 1.0).abs() < f64::EPSILON);
    let page = scraper.ask(request("GET /metrics", "", "")).text();
    let blamed = page
        .lines()
        .filter(|line| line.starts_with("proxy_upstream_failures_total{"))
        .any(|line| !line.ends_with(" 0"));
    assert!(
        !blamed,
        "a client that leaves is not a failure of the upstream"
    );
}

#[test]
fn a_client_that_ends_its_side_before_the_answer_has_left() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.end();
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();
    client.send(get("/", &[("X-Correlation-Id", "gone")]));
    upstream.wait_for_requests(1);

    client.finish();

    upstream.wait_for_ends(1);
    assert_eq!(proxyd.access_record("gone").number("status"), Some(499.0));
}

#[test]
fn a_client_that_leaves_during_a_response_is_logged_with_the_sent_bytes() {
    let upstream = Upstream::start(|served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome");
        served.end();
    });
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();
    client.send(get("/", &[]));
    let head = client.head();
    assert_eq!(client.exactly(4).unwrap(), b"some");

    client.reset();

    upstream.wait_for_ends(1);
    let record = proxyd.access_record(&head.correlation_id());
    assert_eq!(record.number("status"), Some(200.0));
    assert_eq!(record.text("reason"), "client_aborted");
    assert_eq!(record.number("bytes_out"), Some(4.0));
}

#[test]
fn a_client_that_leaves_during_its_upload_leaves_no_whole_request() {
    for fields in ["Content-Length: 10\r\n", "Transfer-Encoding: chunked\r\n"] {
        let upstream = Upstream::start(|served| {
            if let Some(mut request) = served.head() {
                assert!(served.body(&mut request).is_none());
            }
        });
        let proxyd = Config::to(&upstream).start();
        let mut client = proxyd.connect();
        let named = format!("X-Correlation-Id: gone\r\n{fields}");
        client.send(request("POST /", &named, "4\r\nha"));
        upstream.wait_for_requests(1);

        client.reset();

        upstream.wait_for_ends(1);
        let record = proxyd.access_record("gone");
        assert_eq!(record.number("status"), Some(499.0));
        assert_eq!(record.text("reason"), "client_aborted");
    }
}

/// Continues sending its body after the response, as real clients do.
fn goes_on(client: &mut RawClient, pieces: usize) {
    let piece = vec![0; 65536];
    for _ in 0..pieces {
        if client.send_some(&piece).is_err() {
            break;
        }
    }
}

#[test]
fn an_early_answer_reaches_a_client_that_is_still_sending() {
    let upstream = Upstream::start(|served| {
        served.head();
        served.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
        served.end();
    });
    let config = Config::to(&upstream).top("limits { max-body-size-bytes \"1GB\" }");
    let proxyd = config.start();
    let mut client = proxyd.connect();

    client.send(request("POST /", "Content-Length: 100000000\r\n", ""));
    goes_on(&mut client, 40);
    let response = client.response();

    assert_eq!((response.status, response.text().as_str()), (403, "no"));
}

#[test]
fn an_early_answer_that_closes_reaches_a_client_that_is_still_sending() {
    let upstream = Upstream::start(|served| {
        served.head();
        served.send("HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno");
        // Closed with unread bytes: the proxy gets a reset.
    });
    let config = Config::to(&upstream).top("limits { max-body-size-bytes \"1GB\" }");
    let proxyd = config.start();

    for _ in 0..10 {
        let mut client = proxyd.connect();
        client.send(request("POST /", "Content-Length: 100000000\r\n", ""));
        goes_on(&mut client, 40);
        let response = client.response();

        assert_eq!((response.status, response.text().as_str()), (403, "no"));
    }
}

#[test]
fn our_own_early_answer_reaches_a_client_that_is_still_sending() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream)
        .top("limits { max-body-size-bytes 10 }")
        .start();

    for _ in 0..10 {
        let mut client = proxyd.connect();
        client.send(request("POST /", "Content-Length: 1000000\r\n", ""));
        // The response is sent long before the last of these.
        goes_on(&mut client, 15);

        refusal(&client.response(), 413, "LIMIT_EXCEEDED");
    }
}

#[test]
fn a_connection_with_an_unread_body_is_not_used_again() {
    let upstream = Upstream::echo();
    let proxyd = Config::to(&upstream)
        .top("limits { max-body-size-bytes 10 }")
        .start();
    let mut client = proxyd.connect();

    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send(request("POST /", "Content-Length: 1000\r\n", smuggled));
    refusal(&client.response(), 413, "LIMIT_EXCEEDED");
    client.finish();

    assert_eq!(client.end(), End::Closed);
    assert!(upstream.requests().is_empty());
}

#[test]
fn an_upstream_that_closes_during_an_upload_is_answered_502() {
    let gate = Gate::new();
    let wait = gate.clone();
    let upstream = Upstream::start(move |served| {
        served.head();
        wait.wait();
        served.reset();
    });
    let config = Config::to(&upstream).top("limits { max-body-size-bytes \"1GB\" }");
    let proxyd = config.start();
    let mut client = proxyd.connect();

    client.send(request("POST /", "Content-Length: 1000000\r\n", "begin"));
    upstream.wait_for_requests(1);
    gate.open();
    let response = client.response();

    refusal(&response, 502, "UPSTREAM_ERROR");
}
