//! Agent calls that are omitted or cancelled, because of other requests or the request's own
//! timeout.

use crate::stage::{ALL_EVENTS, AMPLE, Phase, Stage, all_events, wait_for_metric};
use crate::support::{Setup, reason, refusal};
use agent_protocol::{BodyMode, ErrorCode, ProxyMessage, Wants};
use proxy_agent::AgentOutcome;
use proxy_testkit::{AgentReply, FakeAgent, Gate, Proxyd, RawClient, Served, Upstream, ok};
use std::thread;

/// Selects the event of `phase`, in addition to request heads. The body of a response requires its
/// head.
fn only(phase: Phase) -> Wants {
    let body_mode = |body_phase| {
        if body_phase == phase {
            BodyMode::Buffered
        } else {
            BodyMode::None
        }
    };
    Wants {
        request_body: body_mode(Phase::RequestBody),
        response_headers: phase.is_response(),
        response_body: body_mode(Phase::ResponseBody),
        completion: false,
    }
}

/// Sends a response. If it is held, the part of `phase` waits for the gate.
fn send_held(served: &mut Served, gate: &Gate, phase: Phase, is_held: bool) {
    if is_held && phase == Phase::ResponseHeaders {
        gate.wait();
    }
    let response = ok("served");
    let (head, body) = response.split_at(response.len() - "served".len());
    served.send(head);
    if is_held && phase == Phase::ResponseBody {
        gate.wait();
    }
    served.send(body);
}

/// A request to `/held` that stops before a phase, while another request prevents a call of the
/// agent.
struct Held {
    phase: Phase,
    gate: Gate,
    _upstream: Upstream,
    _agent: FakeAgent,
    proxyd: Proxyd,
}

impl Held {
    /// Starts the proxy. The agent sends `to_others` for requests to paths other than `/held`.
    fn start(phase: Phase, to_others: AgentReply, settings: &str, top: &str) -> Self {
        let gate = Gate::new();
        let opened = gate.clone();
        let upstream = Upstream::start(move |served| {
            while let Some(request) = served.request() {
                let is_held = request.target == "/held";
                send_held(served, &opened, phase, is_held);
            }
        });
        let agent = FakeAgent::start(only(phase), move |event| match event {
            ProxyMessage::RequestHeaders(head) if head.target.to_str() != Some("/held") => {
                to_others.clone()
            }
            _ => AgentReply::allow(),
        });
        let settings = format!("{settings}; {AMPLE}; {ALL_EVENTS}");
        let proxyd = Setup::to(&upstream)
            .agent("waf", &agent, &settings)
            .top(top)
            .start();
        Self {
            phase,
            gate,
            _upstream: upstream,
            _agent: agent,
            proxyd,
        }
    }

    /// Sends the request up to the phase before.
    fn begin(&self) -> RawClient {
        let mut client = self.proxyd.connect();
        if self.phase == Phase::RequestHeaders {
            return client;
        }
        client.send("POST /held HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\n");
        if self.phase != Phase::RequestBody {
            client.send("body");
        }
        let asked_before = if self.phase == Phase::ResponseBody {
            Phase::ResponseHeaders
        } else {
            Phase::RequestHeaders
        };
        let event = asked_before.label();
        let allowed = format!(
            "proxy_agent_requests_total{{agent=\"waf\",event=\"{event}\",decision=\"allow\"}}"
        );
        wait_for_metric(&mut self.proxyd.connect(), &allowed, 1.0);
        client
    }

    /// Sends the rest, and checks the result.
    fn end(&self, mut client: RawClient, mode: &str, outcome: AgentOutcome) {
        let what = format!("{outcome:?} at {:?}, {mode}", self.phase);
        match self.phase {
            Phase::RequestHeaders => {
                client.send("POST /held HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nbody");
            }
            Phase::RequestBody => {
                client.send("body");
            }
            _ => self.gate.open(),
        }
        let response = client.response();
        let expected = outcome.reason().unwrap();
        if mode == "open" {
            assert_eq!(response.text(), "served", "{what}");
        } else {
            refusal(&response, expected.status().as_u16(), "AGENT");
            assert_eq!(reason(&self.proxyd, &response), expected.as_str(), "{what}");
        }
        let name = expected.as_str();
        let failed = format!("proxy_agent_failures_total{{agent=\"waf\",reason=\"{name}\"}}");
        wait_for_metric(&mut self.proxyd.connect(), &failed, 1.0);
    }
}

const OTHER: &str = "GET /other HTTP/1.1\r\nHost: a.test\r\n\r\n";

fn play_breaker(phase: Phase, mode: &str) {
    let settings = format!(
        "failure-mode \"{mode}\"; circuit-breaker {{ failure-threshold 1; timeout-seconds 600 }}"
    );
    let failure = AgentReply::Fail(ErrorCode::Internal);
    let held = Held::start(phase, failure, &settings, "");
    let client = held.begin();

    held.proxyd.connect().ask(OTHER);

    held.end(client, mode, AgentOutcome::BreakerOpen);
}

fn play_queue(phase: Phase, mode: &str) {
    let settings = format!("failure-mode \"{mode}\"");
    let top = "limits { max-agent-queue-depth 1 }";
    let held = Held::start(phase, AgentReply::Silence, &settings, top);
    let client = held.begin();

    let mut other = held.proxyd.connect();
    other.send(OTHER);
    let depth = "proxy_agent_queue_depth{agent=\"waf\"}";
    wait_for_metric(&mut held.proxyd.connect(), depth, 1.0);

    held.end(client, mode, AgentOutcome::QueueFull);
}

fn play_request_time(phase: Phase, mode: &str) {
    let settings = format!("failure-mode \"{mode}\"; {AMPLE}");
    let stage = Stage::start_with(phase, vec![AgentReply::Silence], &settings, |setup| {
        setup.route("upstream \"u\"; policies { timeouts { request-secs 2 } }")
    });
    stage.chosen.choose(0);

    let response = stage.ask();

    refusal(&response, 504, "TIMEOUT");
    let expected = AgentOutcome::RequestTimeout.reason().unwrap();
    let what = format!("{phase:?} {mode}");
    assert_eq!(
        reason(&stage.proxyd, &response),
        expected.as_str(),
        "{what}"
    );
}

/// Tests every phase under both failure modes, at the same time.
fn everywhere(play: impl Fn(Phase, &str) + Copy + Send + Sync) {
    thread::scope(|scope| {
        for phase in Phase::ASKED {
            for mode in ["closed", "open"] {
                scope.spawn(move || play(phase, mode));
            }
        }
    });
}

#[test]
fn a_breaker_that_opens_in_the_middle_of_a_request_counts_at_its_next_phase() {
    everywhere(play_breaker);
}

#[test]
fn a_queue_that_fills_in_the_middle_of_a_request_counts_at_its_next_phase() {
    everywhere(play_queue);
}

#[test]
fn the_time_of_the_request_ends_a_call_at_each_phase_whatever_the_failure_mode() {
    everywhere(play_request_time);
}

#[test]
fn a_failure_that_is_passed_over_takes_no_event_from_other_agents() {
    for phase in Phase::ASKED {
        let other = FakeAgent::start(all_events(), |_| AgentReply::allow());
        let reply = AgentReply::Fail(ErrorCode::Internal);
        let settings = format!("failure-mode \"open\"; {AMPLE}");
        let stage = Stage::start_with(phase, vec![reply], &settings, |setup| {
            let settings = format!("failure-mode \"closed\"; {AMPLE}; {ALL_EVENTS}");
            setup.agent("other", &other, &settings)
        });
        stage.chosen.choose(0);

        assert_eq!(stage.ask().text(), "served", "{phase:?}");

        let events = other.wait_for_events(5);
        let phases: Vec<_> = events.iter().filter_map(Phase::from_message).collect();
        let all = [&Phase::ASKED[..], &[Phase::Completion]].concat();
        assert_eq!(phases, all, "{phase:?}");
    }
}
