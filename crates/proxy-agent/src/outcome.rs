//! All outcomes of calling an agent, in one table.

use proxy_errors::Reason;
use std::fmt::Write;

/// The outcome of a call to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentOutcome {
    /// The agent allows.
    Allow,
    /// The agent blocks.
    Block,
    /// The agent redirects the client.
    Redirect,
    /// The agent requires credentials.
    Challenge,
    /// The agent does not answer within `timeout-ms`.
    Timeout,
    /// The agent's socket cannot be reached.
    Unreachable,
    /// The agent closes the connection.
    Closed,
    /// The agent's circuit breaker is open.
    BreakerOpen,
    /// `max-agent-queue-depth` calls have no answer.
    QueueFull,
    /// The agent is overloaded.
    Overloaded,
    /// The agent's answer is invalid.
    BadReply,
    /// The agent has an HTTP protocol, and answers 5xx.
    ServerError,
    /// The request's own timeout expired.
    RequestTimeout,
    /// The body exceeds the agent's inspection limit.
    Oversize,
    /// The body grows too much when it is decompressed.
    Decompression,
    /// The body is not of its coding.
    BadCoding,
}

/// The result of a call as reported to the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerResult {
    /// Counts as a success of the breaker.
    Success,
    /// Counts as a failure of the breaker.
    Failure,
    /// Not counted.
    Nothing,
}

/// The kind of an outcome: decides whether the failure mode and the breaker apply.
#[derive(Clone, Copy)]
enum OutcomeKind {
    /// The agent has decided.
    Decision,
    /// The agent has failed.
    Failure,
    /// The agent was not called.
    NotAsked,
    /// The request is refused for another reason than a decision or a failure of the agent.
    Refusal,
    /// The message is refused for its body. A response gets a 502 in place of the reason's status.
    BodyRefusal,
}

struct Row {
    name: &'static str,
    kind: OutcomeKind,
    reason: Option<Reason>,
    when: &'static str,
}

const fn row(
    name: &'static str,
    kind: OutcomeKind,
    reason: Option<Reason>,
    when: &'static str,
) -> Row {
    Row {
        name,
        kind,
        reason,
        when,
    }
}

impl AgentOutcome {
    /// Every outcome.
    pub const ALL: [Self; 16] = [
        Self::Allow,
        Self::Block,
        Self::Redirect,
        Self::Challenge,
        Self::Timeout,
        Self::Unreachable,
        Self::Closed,
        Self::BreakerOpen,
        Self::QueueFull,
        Self::Overloaded,
        Self::BadReply,
        Self::ServerError,
        Self::RequestTimeout,
        Self::Oversize,
        Self::Decompression,
        Self::BadCoding,
    ];

    /// The reason of the refusal; `None` if the request is not refused.
    #[must_use]
    pub fn reason(self) -> Option<Reason> {
        self.row().reason
    }

    /// Returns true if `failure-mode "open"` lets the request continue.
    #[must_use]
    pub fn obeys_failure_mode(self) -> bool {
        matches!(
            self.row().kind,
            OutcomeKind::Failure | OutcomeKind::NotAsked
        )
    }

    /// The result for the agent's breaker.
    #[must_use]
    pub fn breaker(self) -> BreakerResult {
        match self.row().kind {
            OutcomeKind::Decision => BreakerResult::Success,
            OutcomeKind::Failure => BreakerResult::Failure,
            OutcomeKind::NotAsked | OutcomeKind::Refusal | OutcomeKind::BodyRefusal => {
                BreakerResult::Nothing
            }
        }
    }

    #[rustfmt::skip]
    fn row(self) -> Row {
        use OutcomeKind::{BodyRefusal, Decision, Failure, NotAsked, Refusal};
        match self {
            Self::Allow => row("allow", Decision, None, "the agent allows"),
            Self::Block => row("block", Decision, Some(Reason::AgentBlocked),
                "the agent blocks; it may give another status, headers and a body. It has blocked as soon as \
                 its answer says so: a body that is too large, stalls or breaks off is left out"),
            Self::Redirect => row("redirect", Decision, None,
                "the agent sends the client elsewhere: 301, 302, 303, 307 or 308; gRPC callers are blocked"),
            Self::Challenge => row("challenge", Decision, Some(Reason::AgentChallenge),
                "the agent requires credentials"),
            Self::Timeout => row("timeout", Failure, Some(Reason::AgentTimeout),
                "no answer within `timeout-ms`, which includes the handshake of a new connection, and the \
                 wait until the agent has read earlier events"),
            Self::Unreachable => row("unreachable", Failure, Some(Reason::AgentUnreachable),
                "the socket refuses, or has refused within the last second at most"),
            Self::Closed => row("closed", Failure, Some(Reason::AgentUnreachable),
                "the agent closes the connection before it answers; a request's head is sent once more, \
                 on another connection, if the first one had answered before"),
            Self::BreakerOpen => row("breaker open", NotAsked, Some(Reason::AgentBreakerOpen),
                "the agent's `circuit-breaker` is open; it is not asked"),
            Self::QueueFull => row("queue full", NotAsked, Some(Reason::AgentQueueFull),
                "`max-agent-queue-depth` calls have no answer yet, and no other client has at least two \
                 more of them; or another client with fewer takes the place of this one"),
            Self::Overloaded => row("overloaded", Failure, Some(Reason::AgentQueueFull),
                "the agent reports that it has too much to do"),
            Self::BadReply => row("bad reply", Failure, Some(Reason::AgentBadReply),
                "the answer does not deny and is malformed, larger than `max-agent-response-bytes`, for an event that \
                 awaits none, reports a failure, changes a field that no agent may change, or, in `ext-authz`, \
                 changes the query; or the agent asks for events that its `events` do not list"),
            Self::ServerError => row("server error", Failure, Some(Reason::AgentBadReply),
                "a `forward-auth` server answers 5xx; under `closed` its answer is the client's"),
            Self::RequestTimeout => row("request's time", Refusal, Some(Reason::RequestTimeout),
                "the route's `request-secs` is over before the agent's time"),
            Self::Oversize => row("oversize", BodyRefusal, Some(Reason::BodySizeLimit),
                "the body is larger than `max-body-inspection-bytes` or `max-agent-body-bytes`, and \
                 the agent's `on-oversize` is `block`"),
            Self::Decompression => row("decompression", BodyRefusal, Some(Reason::DecompressionLimit),
                "the body exceeds `max-decompression-ratio` or `max-decompressed-size-bytes`"),
            Self::BadCoding => row("bad coding", BodyRefusal, Some(Reason::BadContentEncoding),
                "the body is not of the coding that its head names, or, of a request, that coding is unknown or \
                 one of more than three"),
        }
    }
}

const PAGE_HEAD: &str = "\
# Outcomes of agent calls

<!-- Generated by `cargo xtask reference`; edit the table in `proxy-agent` instead. -->

An agent is asked about the head of a request, its body, the head of the response and its body, as its
`events` say; every row holds for each of them. Under `failure-mode \"closed\"` a failure of the agent refuses the request: nothing of it is
forwarded if it happens before the response, and the response is replaced if it happens then. Under
`failure-mode \"open\"` the request goes on without the agent, which gets no further event of it. The end
of a request is announced and not answered: no failure there has an effect.

The access log has the last agent that was asked in `agent`, its decision in `agent_decision` (`failed` or
`failed_open` for failures), the time spent on waiting for all agents in `agent_ms`, and the metadata of
all agents in `agent_metadata`. Decisions are
counted in `proxy_agent_requests_total`, failures in `proxy_agent_failures_total`, timeouts in
`proxy_agent_timeouts_total` too, refusals in `proxy_blocked_requests_total`.

| outcome | when | `closed` | `open` | breaker |
|---|---|---|---|---|
";

/// The page of outcomes as Markdown.
#[must_use]
pub fn outcomes_page() -> String {
    let mut page = PAGE_HEAD.to_owned();
    for outcome in AgentOutcome::ALL {
        let Row {
            name,
            kind,
            reason,
            when,
        } = outcome.row();
        let closed = reason.map_or_else(
            || "goes on as decided".to_owned(),
            |reason| refusal(outcome, kind, reason),
        );
        let open = if outcome.obeys_failure_mode() {
            "goes on"
        } else {
            "the same"
        };
        let breaker = match outcome.breaker() {
            BreakerResult::Success => "success",
            BreakerResult::Failure => "failure",
            BreakerResult::Nothing => "–",
        };
        // Writing into a String cannot fail.
        writeln!(page, "| {name} | {when} | {closed} | {open} | {breaker} |").unwrap_or_default();
    }
    page
}

/// Status and reason of a refusal.
fn refusal(outcome: AgentOutcome, kind: OutcomeKind, reason: Reason) -> String {
    let status = reason.status().as_u16();
    let reason = reason.as_str();
    if outcome == AgentOutcome::ServerError {
        return format!("the server's, `{reason}`");
    }
    if matches!(kind, OutcomeKind::BodyRefusal) {
        return format!("{status} (502 if it is a response's), `{reason}`");
    }
    format!("{status}, `{reason}`")
}
