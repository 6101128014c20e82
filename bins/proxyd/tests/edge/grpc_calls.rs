//! Calls by a real gRPC client to a real gRPC server, in plaintext and over TLS.

use crate::support::{Authority, BINARY, GrpcService, Plain, block_on, caller, ready};
use bytes::Bytes;
use http::uri::PathAndQuery;
use proxy_testkit::{Launch, Proxyd, closed_port};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request};

/// A service, the proxy before it, and a client of the proxy.
struct Line {
    service: GrpcService,
    proxyd: Proxyd,
    grpc: Grpc<Channel>,
}

/// In plaintext, with these settings of the route and of the upstream.
async fn in_clear(route: &str, upstream: &str) -> Line {
    let service = GrpcService::start(None);
    let kdl = format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
        routes {{ route "all" {{ upstream "u"; {route} }} }}
        upstreams {{ upstream "u" {{ target "{}"; protocol "h2"; {upstream} }} }}
        system {{ worker-threads 1 }}
        "#,
        service.address
    );
    let proxyd = Launch::new(BINARY, &kdl).start();
    let grpc = caller(proxyd.address(), None).await;
    Line {
        service,
        proxyd,
        grpc,
    }
}

/// Over TLS on both sides.
async fn over_tls() -> Line {
    let authority = Authority::new("root");
    let service = GrpcService::start(Some(&authority.issue(&["up.test"])));
    let kdl = format!(
        r#"
        listeners {{ listener "main" {{
            address "127.0.0.1:0"
            protocol "https"
            tls {{ cert-file "site.crt"; key-file "site.key" }}
        }} }}
        routes {{ route "all" {{ upstream "u" }} }}
        upstreams {{ upstream "u" {{
            target "{}"
            protocol "h2"
            tls {{ sni "up.test"; ca-file "root.pem" }}
        }} }}
        system {{ worker-threads 1 }}
        "#,
        service.address
    );
    let launch = Launch::new(BINARY, &kdl);
    authority.write(launch.folder(), "root.pem");
    authority
        .issue(&["site.test"])
        .write(launch.folder(), "site");
    let proxyd = launch.start();
    let grpc = caller(proxyd.address(), Some(&authority)).await;
    Line {
        service,
        proxyd,
        grpc,
    }
}

fn method(name: &str) -> PathAndQuery {
    format!("/test.Echo/{name}").parse().unwrap()
}

fn text(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// Every kind of call, one after the other.
async fn every_kind(grpc: &mut Grpc<Channel>) {
    unary_responses(grpc).await;
    streamed_responses(grpc).await;
    ping_pong(grpc).await;
}

async fn unary_responses(grpc: &mut Grpc<Channel>) {
    let answer = ready(grpc)
        .await
        .unary(Request::new(text("one")), method("Unary"), Plain);
    assert_eq!(answer.await.unwrap().into_inner(), "one");

    let many = tokio_stream::iter((0..500).map(|_| text("many ")));
    let answer = ready(grpc)
        .await
        .client_streaming(Request::new(many), method("Join"), Plain);
    assert_eq!(answer.await.unwrap().into_inner().len(), 2500);
}

async fn streamed_responses(grpc: &mut Grpc<Channel>) {
    let wanted = Bytes::copy_from_slice(&500_u32.to_be_bytes());
    let answer = ready(grpc)
        .await
        .server_streaming(Request::new(wanted), method("Count"), Plain);
    let mut messages = answer.await.unwrap().into_inner();
    for number in 0..500_u64 {
        let message = messages.message().await.unwrap().unwrap();
        assert_eq!(message, number.to_be_bytes()[..]);
    }
    assert_eq!(messages.message().await.unwrap(), None);
}

/// Each message is answered before the next is sent.
async fn ping_pong(grpc: &mut Grpc<Channel>) {
    let (sender, receiver) = mpsc::channel(1);
    let asked = Request::new(ReceiverStream::new(receiver));
    let answer = ready(grpc).await.streaming(asked, method("Chat"), Plain);
    let mut messages = answer.await.unwrap().into_inner();
    for number in 0..100_u32 {
        let ball = Bytes::copy_from_slice(&number.to_be_bytes());
        sender.send(ball.clone()).await.unwrap();
        assert_eq!(messages.message().await.unwrap(), Some(ball));
    }
    drop(sender);
    assert_eq!(messages.message().await.unwrap(), None);
    assert!(messages.trailers().await.unwrap().is_some());
}

#[test]
fn every_kind_of_call_passes_in_clear() {
    block_on(async {
        let mut line = in_clear("", "").await;
        every_kind(&mut line.grpc).await;
    });
}

#[test]
fn every_kind_of_call_passes_over_tls_on_both_sides() {
    block_on(async {
        let mut line = over_tls().await;
        every_kind(&mut line.grpc).await;
    });
}

#[test]
fn calls_at_once_share_a_connection_and_do_not_wait_for_each_other() {
    block_on(async {
        let mut line = in_clear("", "").await;
        let watch = ready(&mut line.grpc).await.server_streaming(
            Request::new(text("first")),
            method("Watch"),
            Plain,
        );
        let mut messages = watch.await.unwrap().into_inner();
        assert_eq!(messages.message().await.unwrap(), Some(text("first")));
        let calls = (0..50).map(|_| {
            let mut grpc = line.grpc.clone();
            tokio::spawn(async move {
                let call =
                    ready(&mut grpc)
                        .await
                        .unary(Request::new(text("x")), method("Unary"), Plain);
                call.await.unwrap().into_inner()
            })
        });
        for call in calls.collect::<Vec<_>>() {
            assert_eq!(call.await.unwrap(), "x");
        }
    });
}

#[test]
fn metadata_passes_both_ways() {
    block_on(async {
        let mut line = in_clear("", "").await;
        let mut request = Request::new(text("x"));
        let bytes = MetadataValue::from_bytes(&[0, 255, 10, 13]);
        let asked = request.metadata_mut();
        asked.insert("x-in", "there and back".parse().unwrap());
        asked.insert_bin("trace-bin", bytes.clone());
        asked.append("x-twice", "1".parse().unwrap());
        asked.append("x-twice", "2".parse().unwrap());

        let answer = ready(&mut line.grpc)
            .await
            .unary(request, method("Unary"), Plain);
        let answer = answer.await.unwrap();
        let reported = answer.metadata();
        assert_eq!(reported.get("x-out").unwrap(), "there and back");
        assert_eq!(reported.get_bin("trace-bin").unwrap(), &bytes);
        assert!(reported.contains_key("x-correlation-id"));
        let seen = line.service.calls.entries().pop().unwrap();
        assert_eq!(seen.get("te").unwrap(), "trailers");
        assert_eq!(seen.get("content-type").unwrap(), "application/grpc");
        assert_eq!(seen.get_all("x-twice").iter().count(), 2);
    });
}

#[test]
fn a_status_is_forwarded_unchanged() {
    block_on(async {
        let mut line = in_clear("", "").await;
        let call =
            ready(&mut line.grpc)
                .await
                .unary(Request::new(text("x")), method("Fail"), Plain);
        let status = call.await.unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!(status.message(), "100 % of the blätter\nare gone");
        assert_eq!(status.metadata().get("x-why").unwrap(), "because");

        let call =
            ready(&mut line.grpc)
                .await
                .unary(Request::new(text("x")), method("Nothing"), Plain);
        assert_eq!(call.await.unwrap_err().code(), Code::Unimplemented);
    });
}

#[test]
fn our_own_failures_are_statuses_too() {
    block_on(async {
        let mut line = in_clear("policies { timeouts { request-ms 3000 } }", "").await;
        let call =
            ready(&mut line.grpc)
                .await
                .unary(Request::new(text("x")), method("Hang"), Plain);
        let status = call.await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded);
        let id = status.metadata().get("x-correlation-id").unwrap();
        let record = line.proxyd.error_record(id.to_str().unwrap());
        assert_eq!(record.text("reason"), "request_timeout");
        assert_eq!(line.service.given_up.wait_for(1), ["Hang"]);

        let large = vec![Bytes::from(vec![0; 100_000]); 200];
        let call = ready(&mut line.grpc).await.client_streaming(
            Request::new(tokio_stream::iter(large)),
            method("Join"),
            Plain,
        );
        let status = call.await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    });
    let kdl = format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
        routes {{ route "all" {{ upstream "u"; matches {{ path-prefix "/test.Echo" }} }} }}
        upstreams {{ upstream "u" {{ target "{}"; protocol "h2" }} }}
        "#,
        closed_port()
    );
    let proxyd = Launch::new(BINARY, &kdl).start();
    block_on(async {
        let mut grpc = caller(proxyd.address(), None).await;
        let call = ready(&mut grpc)
            .await
            .unary(Request::new(text("x")), method("Unary"), Plain);
        assert_eq!(call.await.unwrap_err().code(), Code::Unavailable);
        let nowhere = PathAndQuery::from_static("/other.Service/Method");
        let call = ready(&mut grpc)
            .await
            .unary(Request::new(text("x")), nowhere, Plain);
        let status = call.await.unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented);
        assert!(!status.message().is_empty());
        assert!(status.metadata().contains_key("x-correlation-id"));
    });
}

#[test]
fn a_deadline_is_passed_on_and_kept() {
    block_on(async {
        let mut line = in_clear("", "").await;
        let mut request = Request::new(text("x"));
        request.set_timeout(Duration::from_secs(2));
        let status = ready(&mut line.grpc)
            .await
            .unary(request, method("Hang"), Plain)
            .await
            .unwrap_err();
        // Client, proxy and server all enforce it; tonic reports it as cancelled.
        let late = [Code::DeadlineExceeded, Code::Cancelled];
        assert!(late.contains(&status.code()), "{status:?}");
        assert_eq!(line.service.given_up.wait_for(1), ["Hang"]);
        let seen = line.service.calls.entries().pop().unwrap();
        assert!(seen.contains_key("grpc-timeout"));
    });
}

#[test]
fn a_caller_that_gives_up_is_known_to_the_server() {
    block_on(async {
        let mut line = in_clear("", "").await;
        let mut other = line.grpc.clone();
        let hanging = tokio::spawn(async move {
            let call =
                ready(&mut other)
                    .await
                    .unary(Request::new(text("x")), method("Hang"), Plain);
            drop(call.await);
        });
        line.service.calls.wait_for(1);
        hanging.abort();
        assert_eq!(line.service.given_up.wait_for(1), ["Hang"]);

        let watch = ready(&mut line.grpc).await.server_streaming(
            Request::new(text("x")),
            method("Watch"),
            Plain,
        );
        let mut messages = watch.await.unwrap().into_inner();
        assert!(messages.message().await.unwrap().is_some());
        drop(messages);
        assert_eq!(line.service.given_up.wait_for(2), ["Hang", "Watch"]);
        // The connection stays open.
        let call =
            ready(&mut line.grpc)
                .await
                .unary(Request::new(text("x")), method("Unary"), Plain);
        assert_eq!(call.await.unwrap().into_inner(), "x");
    });
}

#[test]
fn a_large_message_passes_both_ways() {
    block_on(async {
        let mut line = over_tls().await;
        let large: Vec<u8> = (0..1_048_576_u32).flat_map(u32::to_be_bytes).collect();
        let large = Bytes::from(large);
        let call =
            ready(&mut line.grpc)
                .await
                .unary(Request::new(large.clone()), method("Unary"), Plain);
        assert!(call.await.unwrap().into_inner() == large);
    });
}

#[test]
fn a_stream_outlives_its_timeouts_while_the_caller_sends() {
    block_on(async {
        let mut line = in_clear("", "timeouts { read-ms 2500; request-ms 2500 }").await;
        let (sender, receiver) = mpsc::channel(1);
        let request = Request::new(ReceiverStream::new(receiver));
        let call = ready(&mut line.grpc)
            .await
            .streaming(request, method("JoinLate"), Plain);
        let mut messages = call.await.unwrap().into_inner();
        let mut pace = tokio::time::interval(Duration::from_millis(400));
        for _ in 0..8 {
            pace.tick().await;
            sender.send(text("x")).await.unwrap();
        }
        drop(sender);
        let joined = messages.message().await.unwrap();
        assert_eq!(joined, Some(text("xxxxxxxx")));
    });
}
