//! Failing agents at each phase, under both failure modes.

use crate::stage::{AMPLE, Phase, Stage, wait_for_metric};
use crate::support::{reason, refusal};
use agent_protocol::{Allow, Decision, ErrorCode, HeaderEdit, Metadata};
use proxy_agent::AgentOutcome;
use proxy_testkit::{AgentReply, Response};
use std::thread;

/// Name of a fault, its row in the table of outcomes, and the agent's reply.
type Failure = (&'static str, AgentOutcome, AgentReply);

/// Faults that are recognized at once.
fn prompt(phase: Phase) -> Vec<Failure> {
    let overloaded = AgentReply::Fail(ErrorCode::Overloaded);
    let mut failures = vec![
        ("hangs up", AgentOutcome::Closed, AgentReply::HangUp),
        ("has too much to do", AgentOutcome::Overloaded, overloaded),
    ];
    let bad = [malformed(), forbidden_edits(phase)].concat();
    let bad = bad.into_iter();
    failures.extend(bad.map(|(what, reply)| (what, AgentOutcome::BadReply, reply)));
    failures
}

/// Faults that are recognized only by a timeout.
fn silent() -> Vec<Failure> {
    let half_a_frame = AgentReply::Bytes(vec![0, 0, 0, 9, 0x20, b'{']);
    vec![
        ("says nothing", AgentOutcome::Timeout, AgentReply::Silence),
        ("sends half a frame", AgentOutcome::Timeout, half_a_frame),
    ]
}

fn malformed() -> Vec<(&'static str, AgentReply)> {
    let mut metadata = Metadata::default();
    for key in 0..30 {
        assert!(metadata.insert(&format!("k{key}"), &"x".repeat(1_000)));
    }
    let too_long = Decision::Allow(Allow {
        metadata,
        ..Allow::default()
    });
    vec![
        ("reports a failure", AgentReply::Fail(ErrorCode::Internal)),
        (
            "is not an agent",
            AgentReply::Bytes(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
        ),
        ("sends an empty frame", AgentReply::Bytes(vec![0; 4])),
        (
            "sends a frame of no known type",
            AgentReply::Bytes(vec![0, 0, 0, 3, 0x7f, b'{', b'}']),
        ),
        (
            "answers another request",
            AgentReply::misnumbered(1 << 40, 0),
        ),
        ("answers another event", AgentReply::misnumbered(1, 77)),
        ("answers too much", AgentReply::Decide(too_long)),
    ]
}

/// Edits of fields that agents may not change, or of a head that was already sent.
fn forbidden_edits(phase: Phase) -> Vec<(&'static str, AgentReply)> {
    let set = |name, value| vec![HeaderEdit::set(name, value).unwrap()];
    let of_request = |edits| {
        AgentReply::Decide(Decision::Allow(Allow {
            request_headers: edits,
            ..Allow::default()
        }))
    };
    let of_response = |edits| {
        AgentReply::Decide(Decision::Allow(Allow {
            response_headers: edits,
            ..Allow::default()
        }))
    };
    let framing = of_response(set("content-length", "7"));
    let mut edits = vec![("changes the framing of the response", framing)];
    if phase.is_response() {
        let late = of_request(set("x-late", "1"));
        edits.push(("edits a request that has gone", late));
        return edits;
    }
    edits.extend([
        (
            "changes the framing",
            of_request(set("transfer-encoding", "chunked")),
        ),
        ("changes the host", of_request(set("host", "b.test"))),
        ("claims a client", of_request(set("x-forwarded-for", "::1"))),
    ]);
    edits
}

/// Tests `failures` in sequence, on one proxy with this failure mode.
fn play(phase: Phase, mode: &str, failures: &[Failure], time: &str) {
    let replies = failures.iter().map(|(_, _, reply)| reply.clone()).collect();
    let settings = format!("failure-mode \"{mode}\"; {time}");
    let stage = Stage::start(phase, replies, &settings);
    for (index, (what, outcome, _)) in failures.iter().enumerate() {
        let what = format!("an agent that {what} at {phase:?}, {mode}");
        let earlier = failures.get(..index).unwrap();
        let alike = earlier
            .iter()
            .filter(|(_, other, _)| other.reason() == outcome.reason());
        stage.chosen.choose(index);
        let forwarded = stage.upstream.requests().len();

        let response = stage.ask();

        let forwarded = stage.upstream.requests().len() - forwarded;
        let is_forwarded = mode == "open" || phase.is_response();
        assert_eq!(forwarded, usize::from(is_forwarded), "{what}");
        if mode == "open" {
            assert_eq!(response.text(), "served", "{what}");
            assert_eq!(decision(&stage, &response), "failed_open", "{what}");
        } else {
            check_refusal(&stage, &response, *outcome, &what);
        }
        check_counts(&stage, phase, *outcome, alike.count() + 1);
    }
    // The agent is called again after its recovery. Half a frame would corrupt the next answer on
    // its connection.
    stage.chosen.clear();
    let is_allowed = |_| decision(&stage, &stage.ask()) == "allow";
    assert!((0..3).any(is_allowed), "{phase:?} {mode}");
    if mode == "open" {
        check_silence(&stage, phase);
    }
}

fn decision(stage: &Stage, response: &Response) -> String {
    let record = stage.proxyd.access_record(&response.correlation_id());
    record.text("agent_decision").to_owned()
}

#[track_caller]
fn check_refusal(stage: &Stage, response: &Response, outcome: AgentOutcome, what: &str) {
    let expected = outcome.reason().unwrap();
    assert_eq!(response.status, expected.status().as_u16(), "{what}");
    refusal(response, response.status, "AGENT");
    assert_eq!(reason(&stage.proxyd, response), expected.as_str(), "{what}");
    assert_eq!(decision(stage, response), "failed", "{what}");
}

/// Checks that exactly `count` failures with the same reason are counted.
#[track_caller]
fn check_counts(stage: &Stage, phase: Phase, outcome: AgentOutcome, count: usize) {
    let count = f64::from(u32::try_from(count).unwrap());
    let reason = outcome.reason().unwrap().as_str();
    let mut client = stage.proxyd.connect();
    let failed = format!("proxy_agent_failures_total{{agent=\"waf\",reason=\"{reason}\"}}");
    wait_for_metric(&mut client, &failed, count);
    if outcome == AgentOutcome::Timeout {
        let event = phase.label();
        let late = format!("proxy_agent_timeouts_total{{agent=\"waf\",event=\"{event}\"}}");
        wait_for_metric(&mut client, &late, count);
    }
}

/// Checks that an agent that failed receives no further event of the request: only the last request
/// reaches later phases.
#[track_caller]
fn check_silence(stage: &Stage, phase: Phase) {
    let is_later =
        |event: &_| Phase::from_message(event).is_some_and(|event_phase| phase < event_phase);
    let events = stage.agent.events();
    let later = events.iter().filter(|event| is_later(event)).count();
    let after = Phase::ASKED.iter().filter(|asked| phase < **asked).count();
    // The end of the last request may be reported during the count.
    assert!(later == after || later == after + 1, "{events:?}");
}

/// Tests all failures at `phase`, under both failure modes at the same time.
fn play_all(phase: Phase) {
    thread::scope(|scope| {
        for mode in ["closed", "open"] {
            scope.spawn(move || play(phase, mode, &prompt(phase), AMPLE));
            for failure in silent() {
                scope.spawn(move || play_silence(phase, mode, failure));
            }
        }
    });
}

fn play_silence(phase: Phase, mode: &str, failure: Failure) {
    play(phase, mode, &[failure], "timeout-ms 2500");
}

#[test]
fn a_failure_at_the_head_of_a_request_has_its_row_of_the_table() {
    play_all(Phase::RequestHeaders);
}

#[test]
fn a_failure_at_the_body_of_a_request_has_its_row_of_the_table() {
    play_all(Phase::RequestBody);
}

#[test]
fn a_failure_at_the_head_of_a_response_has_its_row_of_the_table() {
    play_all(Phase::ResponseHeaders);
}

#[test]
fn a_failure_at_the_body_of_a_response_has_its_row_of_the_table() {
    play_all(Phase::ResponseBody);
}
