//! Agents that inspect responses, or are informed of the end of requests.

use crate::support::{Setup, reason, refusal};
use agent_protocol::{Allow, BodyMode, Decision, HeaderEdit, ProxyMessage, Wants};
use proxy_testkit::{AgentReply, FakeAgent, Upstream, get, ok};

const SETTINGS: &str = "failure-mode \"closed\"; events \"response-headers\"; timeout-ms 30000";

fn upstream() -> Upstream {
    Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("served"));
        }
    })
}

fn wants() -> Wants {
    Wants {
        response_headers: true,
        completion: true,
        response_body: BodyMode::None,
        request_body: BodyMode::None,
    }
}

fn on_response(reply: AgentReply) -> FakeAgent {
    FakeAgent::start(wants(), move |event| match event {
        ProxyMessage::ResponseHeaders(_) => reply.clone(),
        _ => AgentReply::allow(),
    })
}

#[test]
fn a_response_is_edited_and_its_end_is_an_event() {
    let upstream = upstream();
    let early = HeaderEdit::set("x-early", "1").unwrap();
    let late = [
        HeaderEdit::set("x-late", "1").unwrap(),
        HeaderEdit::remove("content-type").unwrap(),
    ];
    let agent = FakeAgent::start(wants(), move |event| {
        let edits = match event {
            ProxyMessage::ResponseHeaders(_) => late.to_vec(),
            _ => vec![early.clone()],
        };
        AgentReply::Decide(Decision::Allow(Allow {
            response_headers: edits,
            ..Allow::default()
        }))
    });
    let proxyd = Setup::to(&upstream).agent("waf", &agent, SETTINGS).start();

    let response = proxyd.connect().ask(get("/", &[]));

    assert_eq!((response.status, response.text().as_str()), (200, "served"));
    assert_eq!(response.fields.get("x-early"), Some("1"));
    assert_eq!(response.fields.get("x-late"), Some("1"));
    assert_eq!(response.fields.get("content-type"), None);
    let events = agent.wait_for_events(3);
    let (ProxyMessage::RequestHeaders(head), ProxyMessage::ResponseHeaders(answer)) =
        (&events[0], &events[1])
    else {
        panic!("{events:?}");
    };
    assert_eq!((head.id, head.seq), (answer.id, 0));
    assert_eq!((answer.seq, answer.status), (1, 200));
    assert_eq!(answer.upstream.as_deref(), Some("u"));
    assert!(answer.has_body);
    let ProxyMessage::Completion(end) = &events[2] else {
        panic!("{events:?}");
    };
    assert_eq!(
        (end.id, end.status, end.response_bytes),
        (head.id, Some(200), 6)
    );
}

#[test]
fn a_blocked_response_is_replaced() {
    let upstream = upstream();
    let agent = on_response(AgentReply::block());
    let proxyd = Setup::to(&upstream).agent("waf", &agent, SETTINGS).start();
    let mut client = proxyd.connect();

    let response = client.ask(get("/", &[]));

    refusal(&response, 403, "WAF_BLOCKED");
    assert_eq!(reason(&proxyd, &response), "agent_blocked");
    assert_eq!(upstream.requests().len(), 1);
    assert_eq!(client.ask(get("/", &[])).status, 403);
}

#[test]
fn a_failure_at_the_response_is_handled_by_the_failure_mode() {
    for (mode, status) in [("closed", 504), ("open", 200)] {
        let upstream = upstream();
        let agent = on_response(AgentReply::Silence);
        let settings = SETTINGS.replace("closed", mode).replace("30000", "300");
        let proxyd = Setup::to(&upstream).agent("waf", &agent, &settings).start();

        let response = proxyd.connect().ask(get("/", &[]));

        assert_eq!(response.status, status, "{mode}");
    }
}

#[test]
fn a_switch_of_protocols_that_an_agent_blocks_is_none() {
    let upstream = Upstream::start(|served| {
        while served.request().is_some() {
            served.send(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
            );
        }
    });
    let agent = on_response(AgentReply::block());
    let proxyd = Setup::to(&upstream).agent("waf", &agent, SETTINGS).start();
    let fields = [("Connection", "upgrade"), ("Upgrade", "websocket")];

    let response = proxyd.connect().ask(get("/", &fields));

    assert_eq!(response.status, 403);
}

const BODY_SETTINGS: &str = "failure-mode \"closed\"; events \"response-body\"; timeout-ms 30000";

/// Starts an agent that blocks responses with "evil" in the body.
fn on_body(response_body: BodyMode) -> FakeAgent {
    let wants = Wants {
        response_headers: true,
        response_body,
        ..Wants::default()
    };
    FakeAgent::start(wants, |event| match event {
        ProxyMessage::ResponseBody(chunk)
            if chunk.data.as_bytes().windows(4).any(|at| at == b"evil") =>
        {
            AgentReply::block()
        }
        _ => AgentReply::allow(),
    })
}

fn upstream_with_body(body: &'static str) -> Upstream {
    Upstream::start(move |served| {
        while served.request().is_some() {
            served.send(ok(body));
        }
    })
}

#[test]
fn a_body_of_a_response_is_seen_before_the_client_gets_a_byte() {
    for mode in [BodyMode::Buffered, BodyMode::Chunks] {
        for (body, status) in [("all is well", 200), ("this is evil", 403)] {
            let upstream = upstream_with_body(body);
            let agent = on_body(mode);
            let setup = Setup::to(&upstream).agent("waf", &agent, BODY_SETTINGS);
            let proxyd = setup.start();

            let response = proxyd.connect().ask(get("/", &[]));

            assert_eq!(response.status, status, "{body}");
            let is_whole = response.text() == body;
            assert_eq!(is_whole, status == 200, "{body}");
        }
    }
}

#[test]
fn a_response_larger_than_the_agent_may_see_is_refused_or_passes_as_written() {
    let large: &'static str = "x".repeat(3_000_000).leak();
    for (mode, status) in [("block", 502), ("pass", 200)] {
        let upstream = upstream_with_body(large);
        let agent = on_body(BodyMode::Buffered);
        let settings = format!("{BODY_SETTINGS}; on-oversize \"{mode}\"");
        let proxyd = Setup::to(&upstream).agent("waf", &agent, &settings).start();

        let response = proxyd.connect().ask(get("/", &[]));

        assert_eq!(response.status, status, "{mode}");
        if mode == "pass" {
            assert_eq!(response.body.len(), large.len());
            let events = agent.wait_for_events(3);
            let ProxyMessage::ResponseBody(chunk) = &events[2] else {
                panic!("a body");
            };
            assert!(chunk.truncated && chunk.last);
            assert_eq!(chunk.data.as_bytes().len(), 1 << 20);
        }
    }
}
