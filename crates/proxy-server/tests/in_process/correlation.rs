//! Correlation IDs in responses, logs and upstream requests.

use crate::support::{Config, refusal};
use proxy_testkit::{Upstream, closed_port, get};

#[test]
fn a_client_s_correlation_id_is_kept_everywhere() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    let longest = "a".repeat(128);
    for id in ["x", "Order_17.retry-2", longest.as_str()] {
        let response = proxyd.connect().ask(get("/", &[("X-Correlation-ID", id)]));

        assert_eq!(response.correlation_id(), id);
        let seen = upstream.requests().pop().unwrap();
        assert_eq!(seen.fields.get("x-correlation-id"), Some(id));
        assert_eq!(proxyd.access_record(id).text("correlation_id"), id);
    }
}

#[test]
fn a_request_without_one_is_named_by_a_uuid_of_version_7() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();
    let mut client = proxyd.connect();

    let first = client.ask(get("/", &[])).correlation_id();
    let second = client.ask(get("/", &[])).correlation_id();

    assert_ne!(first, second);
    assert_eq!(first.len(), 36);
    assert_eq!(&first[14..15], "7", "{first}");
    assert!("89ab".contains(&first[19..20]), "{first}");
    // The time is the prefix, so that IDs sort by it.
    assert!(first[..13] <= second[..13]);
    let seen = upstream.requests();
    assert_eq!(seen[0].fields.get("x-correlation-id"), Some(first.as_str()));
}

#[test]
fn an_id_that_could_do_harm_is_replaced() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    let too_long = "a".repeat(129);
    for id in ["", "a b", "a/b", "<script>", "a\"b", "ä", too_long.as_str()] {
        let response = proxyd.connect().ask(get("/", &[("X-Correlation-Id", id)]));

        assert_ne!(response.correlation_id(), id);
        assert_eq!(response.correlation_id().len(), 36);
        let seen = upstream.requests().pop().unwrap();
        assert_eq!(
            seen.fields.get("x-correlation-id"),
            Some(response.correlation_id().as_str())
        );
    }
}

#[test]
fn the_proxy_s_own_errors_bear_the_client_s_id() {
    let config = Config::new().route("gone", r#"upstream "u"; matches { path "/gone" }"#);
    let config = config.upstream("u", &format!("target \"{}\"", closed_port()));
    let proxyd = config.start();

    for (path, status, code) in [
        ("/gone", 502, "UPSTREAM_ERROR"),
        ("/", 404, "ROUTE_NOT_FOUND"),
    ] {
        let response = proxyd
            .connect()
            .ask(get(path, &[("X-Correlation-Id", "mine")]));

        refusal(&response, status, code);
        assert_eq!(response.correlation_id(), "mine");
    }
    assert_eq!(proxyd.error_record("mine").text("correlation_id"), "mine");
}

#[test]
fn requests_that_cannot_be_read_are_answered_with_an_id_too() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    for bytes in [
        "GARBAGE\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nBad Name: 1\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: a\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n",
    ] {
        let mut client = proxyd.connect();
        let response = client.ask(bytes);

        refusal(&response, 400, "PARSE");
        assert_eq!(response.correlation_id().len(), 36);
        assert_eq!(response.fields.get("connection"), Some("close"));
        let _ = client.end();
        let record = proxyd.access_record(&response.correlation_id());
        assert_eq!(record.number("status"), Some(400.0));
    }
    assert!(upstream.requests().is_empty());
}

#[test]
fn an_id_that_could_be_read_before_the_fault_is_kept() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    let text = "GET / HTTP/1.1\r\nHost: a\r\nX-Correlation-Id: mine\r\nBad Name: 1\r\n\r\n";
    let response = proxyd.connect().ask(text);

    assert_eq!(response.correlation_id(), "mine");
}

#[test]
fn an_upstream_cannot_rename_the_request() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nX-Correlation-Id: theirs\r\nContent-Length: 0\r\n\r\n",
    );
    let proxyd = Config::to(&upstream).start();

    let response = proxyd
        .connect()
        .ask(get("/", &[("X-Correlation-Id", "mine")]));

    assert_eq!(response.correlation_id(), "mine");
}
