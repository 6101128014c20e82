//! Decisions of agents that end a request.

use crate::support::{Setup, head_agent, metric, reason, refusal};
use agent_protocol::{Block, BodyData, Challenge, Decision, Header, Redirect};
use proxy_testkit::{AgentReply, FakeAgent, Proxyd, Upstream, get, ok};

fn upstream() -> Upstream {
    Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("served"));
        }
    })
}

fn started(decision: Decision) -> (Upstream, FakeAgent, Proxyd) {
    let upstream = upstream();
    let agent = head_agent(move |_| AgentReply::Decide(decision.clone()));
    let proxyd = Setup::to(&upstream)
        .agent("waf", &agent, "failure-mode \"closed\"")
        .start();
    (upstream, agent, proxyd)
}

#[test]
fn a_blocked_request_is_answered_403_and_its_reason_is_for_the_log_alone() {
    let (upstream, _agent, proxyd) = started(Decision::Block(Block {
        reason: Some("rule 942100".to_owned()),
        ..Block::default()
    }));
    let mut client = proxyd.connect();

    let response = client.ask(get("/", &[]));

    let message = refusal(&response, 403, "WAF_BLOCKED");
    assert!(!message.contains("942100"), "{message}");
    assert!(upstream.requests().is_empty());
    let record = proxyd.error_record(&response.correlation_id());
    assert!(record.text("message").contains("rule 942100"));
    assert_eq!(reason(&proxyd, &response), "agent_blocked");
    let record = proxyd.access_record(&response.correlation_id());
    assert_eq!(record.text("agent_decision"), "block");
    let blocked = metric(
        &mut client,
        "proxy_blocked_requests_total{reason=\"agent_blocked\"}",
    );
    assert!((blocked - 1.0).abs() < 0.1);
    let decided =
        "proxy_agent_requests_total{agent=\"waf\",event=\"request_headers\",decision=\"block\"}";
    assert!((metric(&mut client, decided) - 1.0).abs() < 0.1);
    let timed = "proxy_agent_duration_seconds_count{agent=\"waf\",event=\"request_headers\"}";
    assert!((metric(&mut client, timed) - 1.0).abs() < 0.1);
}

#[test]
fn a_block_may_have_its_own_status_headers_and_body() {
    let (_upstream, _agent, proxyd) = started(Decision::Block(Block {
        status: Some(451),
        headers: vec![
            Header::new("content-type", "text/plain").unwrap(),
            Header::new("x-law", "1").unwrap(),
        ],
        body: Some(BodyData::from(b"not here".to_vec())),
        reason: None,
    }));

    let response = proxyd.connect().ask(get("/", &[]));

    assert_eq!(
        (response.status, response.text().as_str()),
        (451, "not here")
    );
    assert_eq!(response.fields.get("content-type"), Some("text/plain"));
    assert_eq!(response.fields.get("x-law"), Some("1"));
    assert!(!response.correlation_id().is_empty());
}

#[test]
fn a_challenge_is_answered_401_with_its_schemes() {
    let (_upstream, _agent, proxyd) = started(Decision::Challenge(Challenge {
        challenges: vec!["Bearer realm=\"a\"".into(), "Basic realm=\"b\"".into()],
        headers: Vec::new(),
        body: None,
        reason: None,
    }));

    let response = proxyd.connect().ask(get("/", &[]));

    refusal(&response, 401, "AUTHENTICATION_FAILED");
    assert_eq!(
        response.fields.all("www-authenticate"),
        ["Bearer realm=\"a\"", "Basic realm=\"b\""]
    );
    assert_eq!(reason(&proxyd, &response), "agent_challenge");
}

#[test]
fn a_redirect_sends_the_client_elsewhere() {
    let (upstream, _agent, proxyd) = started(Decision::Redirect(Redirect {
        status: 303,
        location: "https://login.test/?to=%2F".into(),
        headers: vec![Header::new("set-cookie", "state=1").unwrap()],
        body: None,
    }));

    let response = proxyd.connect().ask(get("/", &[]));

    assert_eq!(response.status, 303);
    assert_eq!(
        response.fields.get("location"),
        Some("https://login.test/?to=%2F")
    );
    assert_eq!(response.fields.get("set-cookie"), Some("state=1"));
    assert!(response.body.is_empty());
    assert!(upstream.requests().is_empty());
    let record = proxyd.access_record(&response.correlation_id());
    assert_eq!(record.text("agent_decision"), "redirect");
}

#[test]
fn the_agents_after_one_that_refuses_are_not_asked() {
    let upstream = upstream();
    let first = head_agent(|_| AgentReply::block());
    let second = head_agent(|_| AgentReply::allow());
    let proxyd = Setup::to(&upstream)
        .agent("one", &first, "failure-mode \"closed\"")
        .agent("two", &second, "failure-mode \"closed\"")
        .start();

    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 403);
    assert!(second.events().is_empty());
}
