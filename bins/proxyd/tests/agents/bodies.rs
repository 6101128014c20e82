//! Agents that inspect request bodies.

use crate::support::{Setup, reason, refusal};
use agent_protocol::{Allow, BodyChunk, BodyMode, Decision, HeaderEdit, ProxyMessage, Wants};
use proxy_coding::{Coding, CompressionLevels, Encoder};
use proxy_testkit::{AgentReply, FakeAgent, Proxyd, Response, Upstream, ok};
use std::fmt::Write as _;

const SETTINGS: &str = "failure-mode \"closed\"; events \"request-body\"; timeout-ms 30000";

fn upstream() -> Upstream {
    Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("served"));
        }
    })
}

fn wants(request_body: BodyMode) -> Wants {
    Wants {
        request_body,
        ..Wants::default()
    }
}

/// Starts an agent that follows `script` for pieces of bodies, and allows all heads.
fn body_agent(
    mode: BodyMode,
    script: impl Fn(&BodyChunk<'static>) -> AgentReply + Send + Sync + 'static,
) -> FakeAgent {
    FakeAgent::start(wants(mode), move |event| match event {
        ProxyMessage::RequestBody(chunk) => script(chunk),
        _ => AgentReply::allow(),
    })
}

fn block_evil(chunk: &BodyChunk<'static>) -> AgentReply {
    let is_evil = chunk.data.as_bytes().windows(4).any(|at| at == b"evil");
    if is_evil {
        AgentReply::block()
    } else {
        AgentReply::allow()
    }
}

fn pieces(agent: &FakeAgent) -> Vec<BodyChunk<'static>> {
    let events = agent.events().into_iter();
    let pieces = events.filter_map(|event| match event {
        ProxyMessage::RequestBody(chunk) => Some(chunk),
        _ => None,
    });
    pieces.collect()
}

fn post(proxyd: &Proxyd, fields: &str, body: &[u8]) -> Response {
    let mut request = String::from("POST / HTTP/1.1\r\nHost: a.test\r\n");
    write!(request, "Content-Length: {}\r\n{fields}\r\n", body.len()).unwrap();
    let mut request = request.into_bytes();
    request.extend_from_slice(body);
    proxyd.connect().ask(request)
}

#[test]
fn an_agent_gets_all_of_a_buffered_body_which_is_forwarded_unchanged() {
    let upstream = upstream();
    let agent = body_agent(BodyMode::Buffered, block_evil);
    let proxyd = Setup::to(&upstream).agent("waf", &agent, SETTINGS).start();

    assert_eq!(post(&proxyd, "", b"all is well").status, 200);
    let response = post(&proxyd, "", b"this is evil");

    refusal(&response, 403, "WAF_BLOCKED");
    assert_eq!(reason(&proxyd, &response), "agent_blocked");
    let requests = upstream.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].body, b"all is well");
    assert_eq!(requests[0].fields.all("content-length"), ["11"]);
    let pieces = pieces(&agent);
    assert_eq!(pieces[0].data.as_bytes(), b"all is well");
    assert_eq!(
        (pieces[0].seq, pieces[0].last, pieces[0].truncated),
        (1, true, false)
    );
}

#[test]
fn an_agent_gets_all_of_a_chunked_body_which_then_has_a_length() {
    let upstream = upstream();
    let agent = body_agent(BodyMode::Buffered, |_| {
        let edit = HeaderEdit::set("x-scanned", "yes").unwrap();
        AgentReply::Decide(Decision::Allow(Allow {
            request_headers: vec![edit],
            ..Allow::default()
        }))
    });
    let proxyd = Setup::to(&upstream).agent("waf", &agent, SETTINGS).start();

    let request = "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    assert_eq!(proxyd.connect().ask(request).status, 200);

    assert_eq!(pieces(&agent)[0].data.as_bytes(), b"abcde");
    let request = upstream.last_request();
    assert_eq!(request.body, b"abcde");
    assert_eq!(request.fields.all("x-scanned"), ["yes"]);
}

#[test]
fn each_chunk_of_an_inspected_body_may_be_refused() {
    let upstream = upstream();
    let agent = body_agent(BodyMode::Chunks, block_evil);
    let proxyd = Setup::to(&upstream).agent("waf", &agent, SETTINGS).start();
    let mut body = vec![b'x'; 200_000];

    assert_eq!(post(&proxyd, "", &body).status, 200);
    let seen = pieces(&agent);
    assert_eq!(seen.len(), 4);
    let whole: Vec<u8> = seen
        .iter()
        .flat_map(|one| one.data.as_bytes().to_vec())
        .collect();
    assert_eq!(whole, body);
    assert!(seen[3].last && !seen[2].last);
    body[150_000..150_004].copy_from_slice(b"evil");
    assert_eq!(post(&proxyd, "", &body).status, 403);
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn a_request_without_a_body_has_no_event_for_one() {
    let upstream = upstream();
    let agent = body_agent(BodyMode::Buffered, block_evil);
    let proxyd = Setup::to(&upstream).agent("waf", &agent, SETTINGS).start();

    assert_eq!(
        proxyd.connect().ask(proxy_testkit::get("/", &[])).status,
        200
    );
    assert_eq!(agent.events().len(), 1);
}

#[test]
fn a_body_larger_than_the_agent_may_see_is_refused_or_passes_as_written() {
    for (setting, limit) in [
        ("max-body-inspection-bytes", 1_000),
        ("max-agent-body-bytes", 500),
    ] {
        for (mode, status) in [("block", 413), ("pass", 200)] {
            let upstream = upstream();
            let agent = body_agent(BodyMode::Buffered, block_evil);
            let settings = format!("{SETTINGS}; on-oversize \"{mode}\"");
            let proxyd = Setup::to(&upstream)
                .agent("waf", &agent, &settings)
                .top(&format!("limits {{ {setting} {limit} }}"))
                .start();
            let body = vec![b'x'; 100_000];

            let response = post(&proxyd, "", &body);

            assert_eq!(response.status, status, "{setting} {mode}");
            if mode == "block" {
                refusal(&response, 413, "LIMIT_EXCEEDED");
                let record = proxyd.error_record(&response.correlation_id());
                assert_eq!(record.text("setting"), format!("limits.{setting}"));
                assert!(upstream.requests().is_empty());
            } else {
                assert_eq!(upstream.last_request().body, body);
                let seen = pieces(&agent);
                assert_eq!(seen[0].data.as_bytes().len(), limit);
                assert!(seen[0].truncated && seen[0].last);
            }
            let small = vec![b'x'; limit];
            assert_eq!(post(&proxyd, "", &small).status, 200, "{setting} {mode}");
        }
    }
}

#[test]
fn a_body_that_is_announced_too_large_is_refused_before_it_is_sent() {
    let upstream = upstream();
    let agent = body_agent(BodyMode::Buffered, block_evil);
    let proxyd = Setup::to(&upstream)
        .agent("waf", &agent, SETTINGS)
        .top("limits { max-body-inspection-bytes 1000 }")
        .start();
    let mut client = proxyd.connect();

    client.send(
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n",
    );

    let message = refusal(&client.response(), 413, "LIMIT_EXCEEDED");
    let error_message = "Limit exceeded: body_size - Current value 1001 exceeds limit 1000";
    assert_eq!(message, error_message);
}

/// Compresses `plain`.
fn gzip(plain: &[u8]) -> Vec<u8> {
    let levels = CompressionLevels {
        gzip: 6,
        brotli: 4,
        zstd: 3,
    };
    let mut encoder = Encoder::new(Coding::Gzip, levels).unwrap();
    let mut bytes = encoder.push(plain).unwrap().to_vec();
    bytes.extend_from_slice(&encoder.finish().unwrap());
    bytes
}

#[test]
fn a_compressed_body_is_decompressed_for_the_agent_and_the_target() {
    let upstream = upstream();
    let agent = body_agent(BodyMode::Buffered, |_| AgentReply::allow());
    let proxyd = Setup::to(&upstream).agent("waf", &agent, SETTINGS).start();
    let body = gzip(b"an evil word");

    assert_eq!(
        post(&proxyd, "Content-Encoding: gzip\r\n", &body).status,
        200
    );

    let seen = pieces(&agent);
    assert_eq!(seen[0].data.as_bytes(), b"an evil word");
    assert!(seen[0].decoded);
    let request = upstream.last_request();
    assert_eq!(request.body, b"an evil word");
    assert!(!request.fields.has("content-encoding"));
}

#[test]
fn a_body_that_grows_beyond_its_limits_is_refused_though_larger_ones_pass() {
    for (limit, body) in [
        ("max-decompressed-size-bytes 1024", gzip(&[b'x'; 2_000])),
        ("max-decompression-ratio 2.0", gzip(&[b'x'; 2_000])),
    ] {
        let upstream = upstream();
        let agent = body_agent(BodyMode::Buffered, |_| AgentReply::allow());
        let settings = format!("{SETTINGS}; on-oversize \"pass\"");
        let proxyd = Setup::to(&upstream)
            .agent("waf", &agent, &settings)
            .top(&format!("limits {{ {limit} }}"))
            .start();

        let response = post(&proxyd, "Content-Encoding: gzip\r\n", &body);

        assert_eq!(response.status, 413, "{limit}");
        assert_eq!(reason(&proxyd, &response), "decompression_limit", "{limit}");
        assert!(upstream.requests().is_empty(), "{limit}");
    }
}

#[test]
fn a_body_that_is_not_of_its_coding_is_refused() {
    let upstream = upstream();
    let agent = body_agent(BodyMode::Buffered, |_| AgentReply::allow());
    let proxyd = Setup::to(&upstream).agent("waf", &agent, SETTINGS).start();

    let response = post(&proxyd, "Content-Encoding: gzip\r\n", b"not gzip at all");

    assert_eq!(response.status, 400);
    assert_eq!(reason(&proxyd, &response), "bad_content_encoding");
}

#[test]
fn a_failure_at_the_body_is_handled_by_the_failure_mode() {
    for (mode, status) in [("closed", 504), ("open", 200)] {
        let upstream = upstream();
        let agent = body_agent(BodyMode::Buffered, |_| AgentReply::Silence);
        let settings = format!("failure-mode \"{mode}\"; events \"request-body\"; timeout-ms 200");
        let proxyd = Setup::to(&upstream).agent("waf", &agent, &settings).start();

        assert_eq!(post(&proxyd, "", b"body").status, status, "{mode}");
        assert_eq!(upstream.requests().len(), usize::from(mode == "open"));
    }
}
