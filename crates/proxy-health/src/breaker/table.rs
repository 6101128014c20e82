//! The breaker's transitions as data, for the documentation and for a test that compares them with
//! the code.

use super::machine::{BreakerEvent, BreakerState};
use std::fmt::Write;

/// The condition of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BreakerCondition {
    /// Always.
    Always,
    /// With this failure there are fewer than `failure-threshold` in a row.
    FewFailures,
    /// With this failure there are `failure-threshold` in a row.
    ManyFailures,
    /// `timeout-seconds` have not passed since the breaker opened.
    BeforeTimeout,
    /// `timeout-seconds` have passed since the breaker opened.
    AfterTimeout,
    /// Fewer than `half-open-max-requests` probes are in flight.
    ProbeFree,
    /// `half-open-max-requests` probes are in flight.
    ProbesTaken,
    /// With this success there are fewer than `success-threshold`.
    FewSuccesses,
    /// With this success there are `success-threshold`.
    ManySuccesses,
}

/// One row of the transition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerTransition {
    /// State in which the event is accepted.
    pub from: BreakerState,
    /// Result of a request, or the passing of the timeout.
    pub event: BreakerEvent,
    /// Condition on the counts; several rows of an event differ by it.
    pub condition: BreakerCondition,
    /// State afterwards.
    pub to: BreakerState,
    /// Further effects, as a sentence without a full stop.
    pub effect: &'static str,
}

/// All transitions. For each state and event exactly one condition holds; an open breaker admits no
/// request, so none ends in that state.
pub const BREAKER_TRANSITIONS: &[BreakerTransition] = {
    use BreakerCondition as If;
    use BreakerEvent::{Abandoned, Failure, LateResult, Request, Success};
    use BreakerState::{Closed, HalfOpen, Open};
    &[
        row((Closed, Request, If::Always), Closed, "the request passes"),
        row(
            (Closed, Success, If::Always),
            Closed,
            "failures are counted from zero",
        ),
        row(
            (Closed, Failure, If::FewFailures),
            Closed,
            "the failure is counted",
        ),
        row(
            (Closed, Failure, If::ManyFailures),
            Open,
            "`timeout-seconds` begin",
        ),
        row(
            (Closed, Abandoned, If::Always),
            Closed,
            "nothing is counted",
        ),
        row(
            (Closed, LateResult, If::Always),
            Closed,
            "nothing is counted",
        ),
        row(
            (Open, Request, If::BeforeTimeout),
            Open,
            "the request is refused with 503 `CIRCUIT_BREAKER_OPEN`",
        ),
        row(
            (Open, Request, If::AfterTimeout),
            HalfOpen,
            "the request passes as the first probe",
        ),
        row((Open, LateResult, If::Always), Open, "nothing is counted"),
        row(
            (HalfOpen, Request, If::ProbeFree),
            HalfOpen,
            "the request passes as a probe",
        ),
        row(
            (HalfOpen, Request, If::ProbesTaken),
            HalfOpen,
            "the request is refused with 503 `CIRCUIT_BREAKER_OPEN`",
        ),
        row(
            (HalfOpen, Success, If::FewSuccesses),
            HalfOpen,
            "the success is counted, and the probe's place is free",
        ),
        row(
            (HalfOpen, Success, If::ManySuccesses),
            Closed,
            "failures are counted from zero",
        ),
        row(
            (HalfOpen, Failure, If::Always),
            Open,
            "`timeout-seconds` starts again",
        ),
        row(
            (HalfOpen, Abandoned, If::Always),
            HalfOpen,
            "nothing is counted, and the probe's place is free",
        ),
        row(
            (HalfOpen, LateResult, If::Always),
            HalfOpen,
            "nothing is counted",
        ),
    ]
};

const fn row(
    (from, event, condition): (BreakerState, BreakerEvent, BreakerCondition),
    to: BreakerState,
    effect: &'static str,
) -> BreakerTransition {
    BreakerTransition {
        from,
        event,
        condition,
        to,
        effect,
    }
}

impl BreakerEvent {
    const fn sentence(self) -> &'static str {
        match self {
            Self::Request => "a request comes",
            Self::Success => "a request succeeds",
            Self::Failure => "a request fails",
            Self::Abandoned => "a client leaves",
            Self::LateResult => "a request of an earlier state ends",
        }
    }
}

impl BreakerCondition {
    const fn sentence(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::FewFailures => "fewer than `failure-threshold` in a row",
            Self::ManyFailures => "`failure-threshold` in a row",
            Self::BeforeTimeout => "before `timeout-seconds` have passed",
            Self::AfterTimeout => "after `timeout-seconds`",
            Self::ProbeFree => "fewer than `half-open-max-requests` try",
            Self::ProbesTaken => "`half-open-max-requests` try",
            Self::FewSuccesses => "fewer than `success-threshold`",
            Self::ManySuccesses => "`success-threshold` reached",
        }
    }
}

/// The page on circuit breakers in `docs/reference`, as Markdown.
#[must_use]
pub fn breaker_reference_page() -> String {
    let mut page = String::from(
        "# Circuit breakers\n\n\
         One breaker for each route and upstream, and one for each agent. A request counts once, by its last \
         attempt: a failed connection, a timeout and a 5xx of the upstream are failures; a client that leaves is \
         neither failure nor success. The metric `proxy_circuit_breaker_state` is",
    );
    let states = BreakerState::ALL.map(|state| format!(" {} {}", state.metric(), state.name()));
    page.push_str(&states.join(","));
    page.push_str(".\n\n| state | when | if | next | effect |\n|---|---|---|---|---|\n");
    for transition in BREAKER_TRANSITIONS {
        let BreakerTransition {
            from,
            event,
            condition,
            to,
            effect,
        } = transition;
        let cells = [
            from.name(),
            event.sentence(),
            condition.sentence(),
            to.name(),
            effect,
        ];
        // Writing to a string does not fail.
        let _written = writeln!(page, "| {} |", cells.join(" | "));
    }
    page
}
