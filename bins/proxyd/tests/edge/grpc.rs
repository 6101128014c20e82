//! gRPC: deadlines, trailers, and errors in gRPC's form.

use crate::support::{Answer, Http2, Http2Upstream, ask, block_on, start};
use bytes::Bytes;
use h2::Reason;
use http::{Request, Response};
use proxy_testkit::closed_port;
use std::net::SocketAddr;

fn to(target: SocketAddr, route: &str) -> String {
    format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
        routes {{ route "all" {{ upstream "u"; {route} }} }}
        upstreams {{ upstream "u" {{ targets {{ target "{target}" }}; protocol "h2" }} }}
        system {{ worker-threads 1 }}
        "#
    )
}

/// A call with these fields.
fn call(fields: &[(&'static str, &'static str)]) -> Request<()> {
    let mut request = ask("POST", "/pkg.Service/Method");
    let headers = request.headers_mut();
    headers.insert("content-type", "application/grpc".parse().unwrap());
    headers.insert("te", "trailers".parse().unwrap());
    for (name, value) in fields {
        headers.insert(*name, value.parse().unwrap());
    }
    request
}

/// The status and the message of a response without a body.
fn status_and_message(answer: &Answer) -> (&str, &str) {
    assert_eq!(answer.status, 200);
    assert!(answer.body.is_empty());
    let text = |name| answer.header(name).unwrap();
    (text("grpc-status"), text("grpc-message"))
}

/// The microseconds of a `grpc-timeout`.
fn micros(value: &str) -> u64 {
    let (number, unit) = value.split_at(value.len() - 1);
    let number: u64 = number.parse().unwrap();
    match unit {
        "n" => number / 1_000,
        "u" => number,
        "m" => number * 1_000,
        "S" => number * 1_000_000,
        other => panic!("{other} is not a unit of a short time"),
    }
}

#[test]
fn a_call_has_its_trailers() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let (body, _) = request.read().await.unwrap();
        let fields = &[("content-type", "application/grpc")];
        request.reply_with(fields, body, &[("grpc-status", "0"), ("x-more", "yes")]);
    });
    let proxyd = start(&to(upstream.address, ""), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let (response, mut body) = http.begin(call(&[])).await;
        body.send_data(Bytes::from_static(b"message"), true)
            .unwrap();
        let answer = Answer::read(response.await.unwrap()).await.unwrap();
        assert_eq!(answer.text(), "message");
        assert_eq!(answer.trailers["grpc-status"], "0");
        assert_eq!(answer.trailers["x-more"], "yes");
    });
    assert_eq!(upstream.requests.entries()[0].headers["te"], "trailers");
}

#[test]
fn an_error_without_a_message_passes_unchanged() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let mut refusal = Response::new(());
        refusal.headers_mut().insert("grpc-status", 5.into());
        request.respond.send_response(refusal, true).unwrap();
    });
    let proxyd = start(&to(upstream.address, ""), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let answer = http.ask(call(&[])).await;
        assert_eq!(answer.header("grpc-status"), Some("5"));
        assert!(answer.body.is_empty());
    });
}

#[test]
fn a_callers_deadline_ends_its_call() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let reset = std::future::poll_fn(|cx| request.respond.poll_reset(cx)).await;
        assert_eq!(reset.unwrap(), Reason::CANCEL);
    });
    let proxyd = start(&to(upstream.address, ""), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let answer = http.ask(call(&[("grpc-timeout", "2000m")])).await;
        assert_eq!(status_and_message(&answer).0, "4");
        let id = answer.header("x-correlation-id").unwrap();
        assert_eq!(proxyd.error_record(id).text("reason"), "request_timeout");
    });
    let seen = upstream.requests.entries().pop().unwrap();
    let left = micros(seen.headers["grpc-timeout"].to_str().unwrap());
    assert!((1..2_000_000).contains(&left), "{left}");
}

#[test]
fn a_routes_deadline_overrides_a_later_one_of_the_caller() {
    let upstream = Http2Upstream::start(|mut request| async move {
        drop(std::future::poll_fn(|cx| request.respond.poll_reset(cx)).await);
    });
    let route = "policies { timeouts { request-ms 2000 } }";
    let proxyd = start(&to(upstream.address, route), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let answer = http.ask(call(&[("grpc-timeout", "1H")])).await;
        assert_eq!(status_and_message(&answer).0, "4");
    });
    let seen = upstream.requests.entries().pop().unwrap();
    assert!(micros(seen.headers["grpc-timeout"].to_str().unwrap()) < 2_000_000);
}

#[test]
fn an_invalid_deadline_is_left_alone() {
    let upstream = Http2Upstream::start(|request| async { request.reply("hello") });
    let proxyd = start(&to(upstream.address, ""), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let answer = http.ask(call(&[("grpc-timeout", "soon")])).await;
        assert_eq!(answer.text(), "hello");
        // The header has no meaning for other requests.
        let mut request = ask("POST", "/");
        request
            .headers_mut()
            .insert("grpc-timeout", "0m".parse().unwrap());
        assert_eq!(http.ask(request).await.text(), "hello");
    });
    let seen = upstream.requests.entries();
    assert_eq!(seen[0].headers["grpc-timeout"], "soon");
    assert_eq!(seen[1].headers["grpc-timeout"], "0m");
}

#[test]
fn a_target_that_cannot_be_reached_is_unavailable() {
    let proxyd = start(&to(closed_port(), ""), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let answer = http.ask(call(&[])).await;
        let (status, message) = status_and_message(&answer);
        assert_eq!(status, "14");
        assert!(!message.is_empty());
        assert_eq!(answer.header("content-type"), Some("application/grpc"));
    });
}

#[test]
fn grpc_web_callers_get_the_error_in_a_body() {
    let proxyd = start(&to(closed_port(), ""), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let mut request = call(&[]);
        let kind = "application/grpc-web+proto".parse().unwrap();
        request.headers_mut().insert("content-type", kind);
        let answer = http.ask(request).await;
        assert_eq!(answer.status, 502);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("grpc-status"), None);
    });
}

#[test]
fn a_truncated_call_ends_with_trailers() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let mut send = request
            .respond
            .send_response(Response::new(()), false)
            .unwrap();
        send.send_data(Bytes::from_static(b"some"), false).unwrap();
        if request.head.headers.contains_key("grpc-timeout") {
            drop(std::future::poll_fn(|cx| send.poll_reset(cx)).await);
            return;
        }
        drop(request.body.data().await);
        send.send_reset(Reason::INTERNAL_ERROR);
    });
    let proxyd = start(&to(upstream.address, ""), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let late = http.ask(call(&[("grpc-timeout", "300m")])).await;
        assert_eq!(late.text(), "some");
        assert_eq!(late.trailers["grpc-status"], "4");

        let (response, mut body) = http.begin(call(&[])).await;
        let mut response = response.await.unwrap().into_body();
        assert_eq!(response.data().await.unwrap().unwrap(), "some");
        body.send_data(Bytes::new(), true).unwrap();
        assert!(response.data().await.is_none());
        let trailers = response.trailers().await.unwrap().unwrap();
        assert_eq!(trailers["grpc-status"], "14");
        let message = "Upstream error: response failed";
        assert_eq!(trailers["grpc-message"], message, "no name of an upstream");
        assert!(!trailers.contains_key("content-type"));
    });
}
