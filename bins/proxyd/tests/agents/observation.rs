//! Metrics and access log of agents.

use crate::stage::wait_for_metric;
use crate::support::{Setup, head, head_agent};
use agent_protocol::{Allow, Decision, ErrorCode, Metadata};
use proxy_testkit::{AgentReply, Proxyd, RawClient, Upstream, get, ok};
use serde_json::{Value, json};

fn upstream() -> Upstream {
    Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("served"));
        }
    })
}

const AMPLE: &str = "failure-mode \"closed\"; timeout-ms 30000";

/// Allows the request, with entries for the access log and later agents.
fn reply_with_metadata(entries: &[(&str, &str)]) -> AgentReply {
    let mut metadata = Metadata::default();
    for (key, value) in entries {
        assert!(metadata.insert(key, value));
    }
    AgentReply::Decide(Decision::Allow(Allow {
        metadata,
        ..Allow::default()
    }))
}

#[test]
fn metadata_of_agents_is_in_the_access_log() {
    let upstream = upstream();
    let first = head_agent(|_| reply_with_metadata(&[("country", "CH"), ("score", "7")]));
    let second = head_agent(|_| reply_with_metadata(&[("user", "an\n\"n")]));
    let third = head_agent(|_| AgentReply::allow());
    let proxyd = Setup::to(&upstream)
        .agent("lists", &first, AMPLE)
        .agent("auth", &second, AMPLE)
        .agent("waf", &third, AMPLE)
        .start();

    let response = proxyd.connect().ask(get("/", &[]));

    let id = response.correlation_id();
    let lines = proxyd.stdout();
    let found = lines.find(0, |record| {
        record.text("correlation_id") == id && record.has("agent_metadata")
    });
    assert_eq!(found.text("agent"), "waf");
    let line = lines.lines().into_iter().find(|line| line.contains(&id));
    let record: Value = serde_json::from_str(&line.unwrap()).unwrap();
    let reported = json!({
        "auth": {"user": "an\n\"n"},
        "lists": {"country": "CH", "score": "7"},
    });
    assert_eq!(record["agent_metadata"], reported);
    assert_eq!(head(&third, 0).metadata.len(), 2);
}

fn admin(proxyd: &Proxyd, path: &str) -> Value {
    RawClient::connect(proxyd.admin_address())
        .ask(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        .json()
}

#[test]
fn the_admin_interface_and_the_metrics_show_the_state_of_agents() {
    let upstream = upstream();
    let well = head_agent(|_| AgentReply::allow());
    let ill = head_agent(|_| AgentReply::Fail(ErrorCode::Internal));
    let breaker = "circuit-breaker { failure-threshold 1; timeout-seconds 600 }";
    let proxyd = Setup::to(&upstream)
        .agent("well", &well, AMPLE)
        .agent("ill", &ill, &format!("{AMPLE}; {breaker}"))
        .start();
    let mut client = proxyd.connect();
    let state = "proxy_circuit_breaker_state{component=\"ill\",route=\"\"}";
    let page = client.ask(get("/metrics", &[])).text();
    assert!(page.contains(&format!("{state} 0")), "{page}");

    assert_eq!(client.ask(get("/", &[])).status, 500);
    assert_eq!(client.ask(get("/", &[])).status, 503);

    wait_for_metric(&mut client, state, 1.0);
    let document = admin(&proxyd, "/admin/agents");
    let expected = json!({
        "protocol": "native",
        "unix_socket": ill.path(),
        "failure_mode": "closed",
        "circuit_breaker": "open",
        "queue_depth": 0,
        "max_queue_depth": 100,
        "decisions": 0,
        "timeouts": 0,
        "failures": {"agent_bad_reply": 1, "agent_breaker_open": 1},
    });
    assert_eq!(document["agents"]["ill"], expected);
    let well = &document["agents"]["well"];
    assert_eq!(well["decisions"], 2);
    assert_eq!(well["circuit_breaker"], Value::Null);
    let printed = proxyd.stderr().find(0, |record| {
        record.text("message") == "an agent's circuit breaker has opened"
    });
    assert_eq!(printed.text("agent"), "ill");
    let changes =
        "proxy_circuit_breaker_transitions_total{component=\"ill\",route=\"\",state=\"open\"}";
    wait_for_metric(&mut client, changes, 1.0);
}
