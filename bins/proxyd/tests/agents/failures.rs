//! Failing agents: every outcome, under both failure modes.
#![expect(
    clippy::disallowed_methods,
    reason = "a test measures how long a request takes"
)]

use crate::support::{Setup, allow_with, head_agent, metric, reason, refusal};
use agent_protocol::{Allow, Decision, ErrorCode, Metadata, ProxyMessage, Wants};
use proxy_testkit::{AgentReply, FakeAgent, Upstream, get, ok};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn upstream() -> Upstream {
    Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("served"));
        }
    })
}

/// Faults of an agent, with the status under `failure-mode "closed"` and the reason.
fn failures() -> Vec<(&'static str, AgentReply, u16, &'static str)> {
    [silences(), wrong_answers()].concat()
}

/// Faults of agents that send no decision.
fn silences() -> Vec<(&'static str, AgentReply, u16, &'static str)> {
    vec![
        ("says nothing", AgentReply::Silence, 504, "agent_timeout"),
        ("hangs up", AgentReply::HangUp, 503, "agent_unreachable"),
        (
            "has too much to do",
            AgentReply::Fail(ErrorCode::Overloaded),
            503,
            "agent_queue_full",
        ),
        (
            "sends half a frame",
            AgentReply::Bytes(vec![0, 0, 0, 9, 0x20, b'{']),
            504,
            "agent_timeout",
        ),
    ]
}

/// Faults of agents that send forbidden answers.
fn wrong_answers() -> Vec<(&'static str, AgentReply, u16, &'static str)> {
    let mut metadata = Metadata::default();
    for key in 0..30 {
        assert!(metadata.insert(&format!("k{key}"), &"x".repeat(1_000)));
    }
    let too_long = Decision::Allow(Allow {
        metadata,
        ..Allow::default()
    });
    vec![
        (
            "reports a failure",
            AgentReply::Fail(ErrorCode::Internal),
            500,
            "agent_bad_reply",
        ),
        (
            "is not an agent",
            AgentReply::Bytes(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
            500,
            "agent_bad_reply",
        ),
        (
            "sends an empty frame",
            AgentReply::Bytes(vec![0; 4]),
            500,
            "agent_bad_reply",
        ),
        (
            "answers another request",
            AgentReply::misnumbered(1 << 40, 0),
            500,
            "agent_bad_reply",
        ),
        (
            "answers another event",
            AgentReply::misnumbered(1, 7),
            500,
            "agent_bad_reply",
        ),
        (
            "answers too much",
            AgentReply::Decide(too_long),
            500,
            "agent_bad_reply",
        ),
        (
            "changes the framing",
            allow_with(&[("content-length", "7")]),
            500,
            "agent_bad_reply",
        ),
        (
            "changes the host",
            allow_with(&[("host", "b.test")]),
            500,
            "agent_bad_reply",
        ),
        (
            "claims a client",
            allow_with(&[("x-forwarded-for", "::1")]),
            500,
            "agent_bad_reply",
        ),
    ]
}

/// Returns the timeout of the agent, which is short if the expected failure is a timeout.
fn time(expected: &str) -> &'static str {
    if expected == "agent_timeout" {
        "timeout-ms 200"
    } else {
        "timeout-ms 30000"
    }
}

#[test]
fn a_failing_agent_that_is_closed_refuses_by_its_failure() {
    for (what, reply, status, expected) in failures() {
        let upstream = upstream();
        let agent = head_agent(move |_| reply.clone());
        let settings = format!("failure-mode \"closed\"; {}", time(expected));
        let proxyd = Setup::to(&upstream).agent("waf", &agent, &settings).start();

        let response = proxyd.connect().ask(get("/", &[]));

        assert_eq!(response.status, status, "{what}");
        refusal(&response, status, "AGENT");
        assert_eq!(reason(&proxyd, &response), expected, "{what}");
        assert!(upstream.requests().is_empty(), "{what}");
        let record = proxyd.access_record(&response.correlation_id());
        assert_eq!(record.text("agent_decision"), "failed", "{what}");
        let failed = format!("proxy_agent_failures_total{{agent=\"waf\",reason=\"{expected}\"}}");
        assert!(
            (metric(&mut proxyd.connect(), &failed) - 1.0).abs() < 0.1,
            "{what}"
        );
    }
}

#[test]
fn requests_pass_a_failing_agent_with_failure_mode_open() {
    for (what, reply, _, expected) in failures() {
        let upstream = upstream();
        let agent = head_agent(move |_| reply.clone());
        let settings = format!("failure-mode \"open\"; {}", time(expected));
        let proxyd = Setup::to(&upstream).agent("waf", &agent, &settings).start();

        let response = proxyd.connect().ask(get("/", &[]));

        assert_eq!(response.status, 200, "{what}");
        assert_eq!(upstream.requests().len(), 1, "{what}");
        let record = proxyd.access_record(&response.correlation_id());
        assert_eq!(record.text("agent_decision"), "failed_open", "{what}");
        let failed = format!("proxy_agent_failures_total{{agent=\"waf\",reason=\"{expected}\"}}");
        assert!(
            (metric(&mut proxyd.connect(), &failed) - 1.0).abs() < 0.1,
            "{what}"
        );
    }
}

#[test]
fn an_agent_that_is_not_there_is_unreachable() {
    let upstream = upstream();
    for (mode, status) in [("closed", 503), ("open", 200)] {
        let settings = format!("failure-mode \"{mode}\"");
        let proxyd = Setup::to(&upstream)
            .agent_at("waf", "/nonexistent/agent.sock", &settings)
            .start();
        let mut client = proxyd.connect();
        for _ in 0..3 {
            assert_eq!(client.ask(get("/", &[])).status, status);
        }
    }
}

#[test]
fn an_agent_that_asks_for_events_it_may_not_have_is_not_used() {
    let upstream = upstream();
    let wants = Wants {
        response_headers: true,
        ..Wants::default()
    };
    let agent = FakeAgent::start(wants, |_| AgentReply::allow());
    let proxyd = Setup::to(&upstream)
        .agent("waf", &agent, "failure-mode \"closed\"")
        .start();

    let response = proxyd.connect().ask(get("/", &[]));

    assert_eq!(response.status, 500);
    assert_eq!(reason(&proxyd, &response), "agent_bad_reply");
}

#[test]
fn an_agent_takes_no_more_than_its_time_and_less_if_the_request_has_less() {
    let upstream = upstream();
    let agent = head_agent(|_| AgentReply::Silence);
    let proxyd = Setup::to(&upstream)
        .route("upstream \"u\"; policies { timeouts { request-secs 1 } }")
        .agent("waf", &agent, "failure-mode \"open\"; timeout-ms 60000")
        .start();
    let began = Instant::now();

    let response = proxyd.connect().ask(get("/", &[]));

    refusal(&response, 504, "TIMEOUT");
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(reason(&proxyd, &response), "request_timeout");
}

#[test]
fn a_late_answer_is_skipped_and_the_connection_continues() {
    let upstream = upstream();
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = Arc::clone(&is_slow);
    let agent = FakeAgent::start(Wants::default(), move |event| match event {
        ProxyMessage::Cancel(cancel) => AgentReply::misnumbered(cancel.id.get(), 0),
        ProxyMessage::RequestHeaders(_) if slow.swap(false, Ordering::Relaxed) => {
            AgentReply::Silence
        }
        _ => AgentReply::allow(),
    });
    let proxyd = Setup::to(&upstream)
        .agent("waf", &agent, "failure-mode \"closed\"; timeout-ms 2000")
        .start();
    let mut client = proxyd.connect();

    assert_eq!(client.ask(get("/", &[])).status, 504);
    // The event and the cancellation. The agent answers the cancelled event late, against the
    // protocol.
    agent.wait_for_events(2);
    assert_eq!(client.ask(get("/", &[])).status, 200);
    assert_eq!(agent.connections(), 1);
    let timeouts = "proxy_agent_timeouts_total{agent=\"waf\",event=\"request_headers\"}";
    assert!((metric(&mut client, timeouts) - 1.0).abs() < 0.1);
}

#[test]
fn a_breaker_stops_calling_an_agent_that_fails_and_tries_again() {
    let upstream = upstream();
    let is_ill = Arc::new(AtomicBool::new(true));
    let ill = Arc::clone(&is_ill);
    let agent = head_agent(move |_| {
        if ill.load(Ordering::Relaxed) {
            AgentReply::Fail(ErrorCode::Internal)
        } else {
            AgentReply::allow()
        }
    });
    let settings =
        "failure-mode \"closed\"; circuit-breaker { failure-threshold 2; timeout-seconds 3 }";
    let proxyd = Setup::to(&upstream).agent("waf", &agent, settings).start();
    let mut client = proxyd.connect();
    let mut statuses = |count| -> Vec<u16> {
        (0..count)
            .map(|_| client.ask(get("/", &[])).status)
            .collect()
    };

    assert_eq!(statuses(4), [500, 500, 503, 503]);
    assert_eq!(agent.events().len(), 2, "the agent is left alone");
    is_ill.store(false, Ordering::Relaxed);
    let end = Instant::now() + Duration::from_secs(20);
    while statuses(1) != [200] {
        assert!(Instant::now() < end);
    }
    assert_eq!(statuses(3), [200; 3]);
}

#[test]
fn no_more_calls_wait_for_an_agent_than_its_queue_allows() {
    let upstream = upstream();
    let agent = head_agent(|_| AgentReply::Silence);
    let proxyd = Setup::to(&upstream)
        .agent("waf", &agent, "failure-mode \"closed\"; timeout-ms 60000")
        .top("limits { max-agent-queue-depth 2 }")
        .start();
    let mut waiting: Vec<_> = (0..2).map(|_| proxyd.connect()).collect();
    for client in &mut waiting {
        client.send(get("/", &[]));
    }
    agent.wait_for_events(2);

    let response = proxyd.connect().ask(get("/", &[]));

    assert_eq!(response.status, 503);
    assert_eq!(response.fields.get("retry-after"), Some("1"));
    assert_eq!(reason(&proxyd, &response), "agent_queue_full");
    let depth = "proxy_agent_queue_depth{agent=\"waf\"}";
    assert!((metric(&mut proxyd.connect(), depth) - 2.0).abs() < 0.1);
    // Calls of clients that disconnect are cancelled.
    drop(waiting);
    let end = Instant::now() + Duration::from_secs(20);
    while metric(&mut proxyd.connect(), depth) > 0.5 {
        assert!(Instant::now() < end);
    }
}

#[test]
fn a_full_queue_of_an_agent_leaves_limit_records_under_both_modes() {
    for (mode, status) in [("closed", 503), ("open", 200)] {
        let upstream = upstream();
        let agent = head_agent(|_| AgentReply::Silence);
        let settings = format!("failure-mode \"{mode}\"; timeout-ms 60000");
        let proxyd = Setup::to(&upstream)
            .agent("waf", &agent, &settings)
            .top("limits { max-agent-queue-depth 1 }")
            .start();
        let mut waiting = proxyd.connect();
        waiting.send(get("/", &[]));
        agent.wait_for_events(1);

        let mut client = proxyd.connect();
        let response = client.ask(get("/", &[]));

        assert_eq!(response.status, status);
        let record = proxyd.limit_record(&response.correlation_id());
        assert_eq!(record.text("level"), "WARN");
        assert_eq!(record.text("limit_type"), "queue_depth");
        assert_eq!(record.text("setting"), "limits.max-agent-queue-depth");
        assert_eq!(record.number("limit"), Some(1.0));
        assert_eq!(record.number("actual"), Some(2.0));
        // A flood is folded, as for any limit.
        for _ in 0..20 {
            let response = client.ask(get("/", &[]));
            assert_eq!(response.status, status);
            drop(proxyd.access_record(&response.correlation_id()));
        }
        let records = proxyd.stdout().records();
        let records = records
            .iter()
            .filter(|it| it.has("actual") && !it.has("repeated"));
        assert!(records.count() < 20, "{mode}");
        drop(waiting);
    }
}

#[test]
fn an_answer_above_the_limit_leaves_a_limit_record_under_both_modes() {
    let answers = wrong_answers();
    let (_, reply, ..) = answers
        .iter()
        .find(|(what, ..)| *what == "answers too much")
        .unwrap();
    for (mode, status) in [("closed", 500), ("open", 200)] {
        let upstream = upstream();
        let reply = reply.clone();
        let agent = head_agent(move |_| reply.clone());
        let settings = format!("failure-mode \"{mode}\"; timeout-ms 30000");
        let proxyd = Setup::to(&upstream).agent("waf", &agent, &settings).start();

        let response = proxyd.connect().ask(get("/", &[]));

        assert_eq!(response.status, status);
        let record = proxyd.limit_record(&response.correlation_id());
        assert_eq!(record.text("limit_type"), "buffer_size");
        assert_eq!(record.text("setting"), "limits.max-agent-response-bytes");
        assert_eq!(record.number("limit"), Some(10_240.0));
        assert!(record.number("actual") > record.number("limit"), "{mode}");
    }
}

#[test]
fn a_client_that_fills_the_queue_of_an_agent_leaves_room_for_others() {
    let upstream = upstream();
    let agent = head_agent(|head| {
        if head.target.to_str() == Some("/slow") {
            AgentReply::Silence
        } else {
            AgentReply::allow()
        }
    });
    let proxyd = Setup::to(&upstream)
        .agent("waf", &agent, "failure-mode \"closed\"; timeout-ms 60000")
        .listener("trusted-proxies \"127.0.0.0/8\"")
        .top("limits { max-agent-queue-depth 4 }")
        .start();
    let from = |address| [("X-Forwarded-For", address)];
    let mut waiting: Vec<_> = (0..4).map(|_| proxyd.connect()).collect();
    for (count, client) in waiting.iter_mut().enumerate() {
        client.send(get("/slow", &from("192.0.2.1")));
        agent.wait_for_events(count + 1);
    }

    for _ in 0..3 {
        let other = proxyd.connect().ask(get("/", &from("192.0.2.2")));
        assert_eq!(other.status, 200, "{}", other.text());
    }

    // The newest call was cancelled in favour of the first call of another client.
    let displaced = waiting.last_mut().unwrap().response();
    assert_eq!(displaced.status, 503);
    assert_eq!(reason(&proxyd, &displaced), "agent_queue_full");
    let events = agent.events();
    let cancels = events
        .iter()
        .filter(|one| matches!(one, ProxyMessage::Cancel(_)));
    assert_eq!(cancels.count(), 1);
}

#[test]
fn a_flood_of_answers_ends_its_connection_alone() {
    let upstream = upstream();
    let agent = head_agent(|head| {
        let AgentReply::Bytes(answer) = AgentReply::misnumbered(head.id.get(), head.seq) else {
            panic!("these are bytes");
        };
        AgentReply::Bytes(answer.repeat(10_000))
    });
    let proxyd = Setup::to(&upstream)
        .agent("waf", &agent, "failure-mode \"closed\"")
        .start();
    let mut client = proxyd.connect();

    // The first answer is a decision. Further ones close the connection.
    for _ in 0..5 {
        let status = client.ask(get("/", &[])).status;
        assert!(status == 200 || status == 500, "{status}");
    }
    assert!(1 < agent.connections());
}

#[test]
fn an_answer_larger_than_the_limit_is_refused() {
    let upstream = upstream();
    for (limit, status) in [(2_000, 500), (4_000, 200)] {
        let value: &'static str = "x".repeat(3_000).leak();
        let agent = head_agent(move |_| allow_with(&[("x-large", value)]));
        let proxyd = Setup::to(&upstream)
            .agent("waf", &agent, "failure-mode \"closed\"")
            .top(&format!("limits {{ max-agent-response-bytes {limit} }}"))
            .start();

        assert_eq!(
            proxyd.connect().ask(get("/", &[])).status,
            status,
            "{limit}"
        );
    }
}
