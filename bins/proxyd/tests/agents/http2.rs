//! Agents with HTTP/2 clients.

use crate::http2_client::{Answer, Http2, ask, get, send_all, send_some};
use crate::runtime::block_on;
use crate::stage::{AMPLE, Phase, Stage, wait_for_metric};
use agent_protocol::{Block, BodyData, Decision, ProxyMessage};
use proxy_testkit::{AgentReply, Proxyd};
use std::thread;

const BODY: &[u8] = b"this is the body";

/// Starts a proxy with HTTP/2, and an agent that sends this reply at `phase` once it is selected.
fn start(phase: Phase, reply: AgentReply, settings: &str, top: &str) -> Stage {
    let settings = format!("failure-mode \"closed\"; {settings}");
    Stage::start_with(phase, vec![reply], &settings, |setup| {
        setup.listener("h2c #true").top(top)
    })
}

async fn post(http: &mut Http2, target: &str) -> Answer {
    let (response, mut stream) = http.begin(ask("POST", target)).await;
    send_all(&mut stream, BODY).await.unwrap();
    Answer::read(response.await.unwrap()).await.unwrap()
}

fn record_of(proxyd: &Proxyd, path: &str) -> proxy_testkit::Record {
    let is_wanted =
        |record: &proxy_testkit::Record| record.text("path") == path && record.has("status");
    proxyd.stdout().find(0, is_wanted)
}

#[test]
fn an_agent_sees_every_phase_of_a_request_over_http2() {
    let stage = start(Phase::Completion, AgentReply::Silence, AMPLE, "");
    block_on(async {
        let mut http = Http2::prior_knowledge(stage.proxyd.address()).await;
        let answer = post(&mut http, "/a?b=c").await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, "served"));
    });

    let events = stage.agent.wait_for_events(5);
    let ProxyMessage::RequestHeaders(head) = &events[0] else {
        panic!("{events:?}");
    };
    assert_eq!(head.http_version, "HTTP/2");
    assert_eq!(head.target.to_str(), Some("/a?b=c"));
    assert_eq!(head.authority.to_str(), Some("a.test"));
    let ProxyMessage::RequestBody(body) = &events[1] else {
        panic!("{events:?}");
    };
    assert_eq!(body.data.as_bytes(), BODY);
    assert_eq!(stage.upstream.last_request().body, BODY);
    let ProxyMessage::Completion(end) = &events[4] else {
        panic!("{events:?}");
    };
    assert_eq!(end.status, Some(200));
}

#[test]
fn a_block_at_each_phase_ends_its_stream_alone() {
    for phase in Phase::ASKED {
        let stage = start(phase, AgentReply::block(), AMPLE, "");
        stage.chosen.choose(0);
        block_on(async {
            let mut http = Http2::prior_knowledge(stage.proxyd.address()).await;
            let answer = post(&mut http, "/blocked").await;
            assert_eq!(answer.status, 403, "{phase:?}");
            assert_eq!(answer.error_code(), "WAF_BLOCKED");
            stage.chosen.clear();
            assert_eq!(post(&mut http, "/").await.text(), "served", "{phase:?}");
        });
        let record = record_of(&stage.proxyd, "/blocked");
        assert_eq!(record.text("reason"), "agent_blocked", "{phase:?}");
        let forwarded = stage.upstream.requests().len();
        assert_eq!(forwarded, 1 + usize::from(phase.is_response()), "{phase:?}");
    }
}

#[test]
fn a_grpc_caller_gets_the_error_in_trailers() {
    let block = Decision::Block(Block {
        body: Some(BodyData::from(b"not here".to_vec())),
        ..Block::default()
    });
    let reply = AgentReply::Decide(block);
    let stage = start(Phase::RequestHeaders, reply, AMPLE, "");
    stage.chosen.choose(0);

    block_on(async {
        let mut http = Http2::prior_knowledge(stage.proxyd.address()).await;
        let call = |method: &str| {
            let mut request = ask(method, "/a.B/C");
            let kind = "application/grpc".parse().unwrap();
            request.headers_mut().insert("content-type", kind);
            request
        };
        let answer: Answer = http.ask(call("POST")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("grpc-status"), Some("7"));
        assert!(answer.body.is_empty());
        // gRPC has no calls by GET.
        let answer: Answer = http.ask(call("GET")).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (403, "not here"));
    });
}

#[test]
fn a_timeout_at_each_phase_ends_its_stream_alone() {
    thread::scope(|scope| {
        for phase in Phase::ASKED {
            scope.spawn(move || time_out_at(phase));
        }
    });
}

fn time_out_at(phase: Phase) {
    let stage = start(phase, AgentReply::Silence, "timeout-ms 2500", "");
    stage.chosen.choose(0);
    block_on(async {
        let mut http = Http2::prior_knowledge(stage.proxyd.address()).await;
        let answer = post(&mut http, "/silent").await;
        assert_eq!(answer.status, 504, "{phase:?}");
        assert_eq!(answer.error_code(), "AGENT");
        stage.chosen.clear();
        assert_eq!(post(&mut http, "/").await.text(), "served", "{phase:?}");
    });
    let record = record_of(&stage.proxyd, "/silent");
    assert_eq!(record.text("reason"), "agent_timeout", "{phase:?}");
}

#[test]
fn a_reset_during_an_agent_call_releases_all_permits() {
    let top = "limits { max-agent-queue-depth 1; max-in-flight-requests 2 }";
    for (index, phase) in Phase::ASKED.into_iter().enumerate() {
        let stage = start(phase, AgentReply::Silence, AMPLE, top);
        stage.chosen.choose(0);
        block_on(async {
            let mut http = Http2::prior_knowledge(stage.proxyd.address()).await;
            let (response, mut stream) = http.begin(ask("POST", "/reset")).await;
            send_all(&mut stream, BODY).await.unwrap();
            stage.agent.wait_for_events(index + 1);
            stream.send_reset(h2::Reason::CANCEL);
            drop(response);
            let events = stage.agent.wait_for_events(index + 2);
            let last = events.last().unwrap();
            assert!(
                matches!(last, ProxyMessage::Cancel(_)),
                "{phase:?}: {last:?}"
            );
            stage.chosen.clear();
            assert_eq!(post(&mut http, "/").await.text(), "served", "{phase:?}");
        });
        let record = record_of(&stage.proxyd, "/reset");
        assert_eq!(record.text("reason"), "client_aborted", "{phase:?}");
        assert_eq!(record.number("status"), Some(499.0), "{phase:?}");
        let mut client = stage.proxyd.connect();
        wait_for_metric(&mut client, "proxy_agent_queue_depth{agent=\"waf\"}", 0.0);
        // The only request in flight is that for the metrics.
        wait_for_metric(&mut client, "proxy_requests_in_flight", 1.0);
    }
}

#[test]
fn a_reset_during_an_inspected_body_releases_all_permits() {
    let top = "limits { max-in-flight-requests 2 }";
    let stage = start(Phase::RequestBody, AgentReply::Silence, AMPLE, top);
    block_on(async {
        let mut http = Http2::prior_knowledge(stage.proxyd.address()).await;
        let (response, mut stream) = http.begin(ask("POST", "/reset")).await;
        send_some(&mut stream, BODY).await;
        stage.agent.wait_for_events(1);
        stream.send_reset(h2::Reason::CANCEL);
        drop(response);
        let record = record_of(&stage.proxyd, "/reset");
        assert_eq!(record.text("reason"), "client_aborted");
        assert_eq!(post(&mut http, "/").await.text(), "served");
        assert_eq!(http.ask(get("/")).await.text(), "served");
    });
    assert!(
        stage
            .upstream
            .requests()
            .iter()
            .all(|one| one.target == "/")
    );
    let mut client = stage.proxyd.connect();
    wait_for_metric(&mut client, "proxy_requests_in_flight", 1.0);
}

#[test]
fn streams_of_one_connection_have_concurrent_agent_calls() {
    let stage = start(Phase::RequestBody, AgentReply::Silence, AMPLE, "");
    stage.chosen.choose(0);
    block_on(async {
        let mut http = Http2::prior_knowledge(stage.proxyd.address()).await;
        let mut waiting = Vec::new();
        for _ in 0..3 {
            let (response, mut stream) = http.begin(ask("POST", "/slow")).await;
            send_all(&mut stream, BODY).await.unwrap();
            waiting.push(response);
        }
        stage.agent.wait_for_events(6);
        stage.chosen.clear();
        // Three streams wait for the agent; a fourth is served.
        assert_eq!(post(&mut http, "/").await.text(), "served");
        drop(waiting);
    });
}
