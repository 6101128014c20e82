//! Decisions that end a request, at each phase. They do not depend on the failure mode.

use crate::stage::{AMPLE, Phase, Stage};
use crate::support::reason;
use agent_protocol::{Block, Challenge, Decision, Redirect};
use proxy_agent::AgentOutcome;
use proxy_testkit::AgentReply;
use std::thread;

/// Decisions, with their outcome and the status of the response.
fn decisions() -> Vec<(AgentOutcome, Decision, u16)> {
    vec![
        (AgentOutcome::Block, Decision::Block(Block::default()), 403),
        (
            AgentOutcome::Challenge,
            Decision::Challenge(Challenge {
                challenges: vec!["Basic realm=\"a\"".into()],
                headers: Vec::new(),
                body: None,
                reason: None,
            }),
            401,
        ),
        (
            AgentOutcome::Redirect,
            Decision::Redirect(Redirect {
                status: 303,
                location: "/elsewhere".into(),
                headers: Vec::new(),
                body: None,
            }),
            303,
        ),
    ]
}

fn play(phase: Phase, mode: &str) {
    let decisions = decisions();
    let replies = decisions
        .iter()
        .map(|(_, decision, _)| AgentReply::Decide(decision.clone()))
        .collect();
    let settings = format!("failure-mode \"{mode}\"; {AMPLE}");
    let stage = Stage::start(phase, replies, &settings);
    for (index, (outcome, decision, status)) in decisions.iter().enumerate() {
        let what = format!("{outcome:?} at {phase:?}, {mode}");
        stage.chosen.choose(index);
        let forwarded = stage.upstream.requests().len();

        let response = stage.ask();

        assert_eq!(response.status, *status, "{what}");
        assert!(!response.text().contains("served"), "{what}");
        let forwarded = stage.upstream.requests().len() - forwarded;
        assert_eq!(forwarded, usize::from(phase.is_response()), "{what}");
        let location = response.fields.get("location");
        let is_redirect = *outcome == AgentOutcome::Redirect;
        assert_eq!(location, is_redirect.then_some("/elsewhere"), "{what}");
        let challenge = response.fields.get("www-authenticate");
        let is_challenge = *outcome == AgentOutcome::Challenge;
        assert_eq!(challenge, is_challenge.then_some("Basic realm=\"a\""));
        if let Some(expected) = outcome.reason() {
            assert_eq!(reason(&stage.proxyd, &response), expected.as_str());
        }
        let record = stage.proxyd.access_record(&response.correlation_id());
        assert_eq!(record.text("agent_decision"), decision.name(), "{what}");
    }
    stage.chosen.clear();
    assert_eq!(stage.ask().text(), "served", "{phase:?} {mode}");
}

#[test]
fn a_decision_that_ends_a_request_does_so_at_each_phase() {
    thread::scope(|scope| {
        for phase in Phase::ASKED {
            for mode in ["closed", "open"] {
                scope.spawn(move || play(phase, mode));
            }
        }
    });
}
