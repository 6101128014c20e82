//! Every example agent passes `agent check`, and ends as a service does.

use crate::asking::{Asked, Asking};
use crate::jwt;
use crate::process::AgentProcess;
use agent_check::{Settings, check};
use agent_protocol::{AgentMessage, Header};
use std::time::Duration;

fn passes(agent: &AgentProcess, headers: Vec<Header<'static>>) {
    let report = check(&Settings {
        socket: agent.socket(),
        timeout: Duration::from_secs(5),
        headers,
    });
    assert_eq!(report.failed, 0, "{report}");
    assert!(report.passed > 20, "{report}");
}

#[test]
fn the_agent_of_the_rust_kit_passes_the_check() {
    let agent = AgentProcess::program(env!("CARGO_BIN_EXE_guard-agent"), &[]);
    passes(&agent, Vec::new());
}

#[test]
fn the_agent_of_the_python_kit_passes_the_check() {
    passes(&AgentProcess::python("python/minimal.py", &[]), Vec::new());
}

#[test]
fn the_list_agent_passes_the_check() {
    let lists = tempfile::tempdir().unwrap();
    let folder = lists.path().to_str().unwrap();
    passes(
        &AgentProcess::python("lists/lists.py", &[folder]),
        Vec::new(),
    );
}

#[test]
fn the_firewall_passes_the_check() {
    passes(&AgentProcess::python("waf/waf.py", &[]), Vec::new());
    let with_responses = AgentProcess::python("waf/waf.py", &["--responses"]);
    passes(&with_responses, Vec::new());
}

#[test]
fn the_token_agent_passes_the_check_with_and_without_a_token() {
    let issuer = jwt::Issuer::new("key-1");
    let agent = issuer.agent();
    passes(&agent, Vec::new());
    let token = format!("Bearer {}", issuer.token(&jwt::Issuer::claims()));
    passes(&agent, vec![Header::new("authorization", token).unwrap()]);
}

#[test]
fn an_agent_that_is_stopped_drains_its_connections_first() {
    let agents = [
        AgentProcess::program(env!("CARGO_BIN_EXE_guard-agent"), &[]),
        AgentProcess::python("python/minimal.py", &[]),
    ];
    for agent in agents {
        let mut asking = Asking::connect(&agent.socket());
        asking.ask(&Asked::get("/"));
        agent.terminate();
        assert!(matches!(asking.receive(), Some(AgentMessage::Drain(_))));
        assert!(!agent.socket().exists());
        asking.ask(&Asked::get("/"));
        drop(asking);
        assert_eq!(agent.wait(), Some(0));
    }
}
