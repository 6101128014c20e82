//! Completion phase: agents are informed of a request's end, but cannot change it.

use crate::stage::{AMPLE, Phase, Stage};
use proxy_testkit::AgentReply;
use std::thread;

/// Faults of an agent at the completion event.
fn invalid_replies() -> Vec<AgentReply> {
    vec![
        AgentReply::HangUp,
        AgentReply::Bytes(vec![0; 4]),
        AgentReply::Bytes(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
        AgentReply::Bytes(vec![0, 0, 0, 9, 0x20, b'{']),
        AgentReply::misnumbered(1, 4),
        AgentReply::misnumbered(1 << 40, 0),
    ]
}

fn has_completion(stage: &Stage) -> bool {
    let events = stage.agent.events();
    let mut phases = events.iter().filter_map(Phase::from_message);
    phases.any(|phase| phase == Phase::Completion)
}

fn play(misdeed: AgentReply) {
    let what = format!("{misdeed:?}");
    let settings = format!("failure-mode \"closed\"; {AMPLE}");
    let stage = Stage::start(Phase::Completion, vec![misdeed], &settings);
    stage.chosen.choose(0);

    let response = stage.ask();

    assert_eq!(response.text(), "served", "{what}");
    let record = stage.proxyd.access_record(&response.correlation_id());
    assert_eq!(record.text("agent_decision"), "allow", "{what}");
    let mut events = Phase::ASKED.len();
    while !has_completion(&stage) {
        events = stage.agent.wait_for_events(events + 1).len();
    }
    stage.chosen.clear();
    // Wrong bytes on a connection fail its current calls, but not later ones.
    let recovers = (0..10).any(|_| stage.ask().status == 200);
    assert!(recovers, "{what}");
    assert_eq!(stage.ask().status, 200, "{what}");
}

#[test]
fn an_agent_cannot_change_a_request_at_its_end() {
    thread::scope(|scope| {
        for misdeed in invalid_replies() {
            scope.spawn(move || play(misdeed));
        }
    });
}
