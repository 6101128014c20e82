//! Everything that may come of asking an agent, in one table.

use proxy_errors::Reason;
use std::fmt::Write;

/// What may come of asking an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentOutcome {
    /// It allows.
    Allow,
    /// It blocks.
    Block,
    /// It redirects the client.
    Redirect,
    /// It requires credentials.
    Challenge,
    /// It does not answer within `timeout-ms`.
    Timeout,
    /// Its socket cannot be reached.
    Unreachable,
    /// It closes the connection.
    Closed,
    /// Its circuit breaker is open.
    BreakerOpen,
    /// `max-agent-queue-depth` calls have no answer.
    QueueFull,
    /// It has too much to do.
    Overloaded,
    /// Its answer is wrong.
    BadReply,
    /// The request's own time is over.
    RequestTimeout,
    /// The body is larger than it may see.
    Oversize,
    /// The body grows too much when it is decompressed.
    Decompression,
    /// The body is not of its coding.
    BadCoding,
}

/// What a breaker is told of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerResult {
    /// A success.
    Success,
    /// A failure.
    Failure,
    /// Nothing.
    Nothing,
}

struct Row {
    name: &'static str,
    when: &'static str,
    reason: Option<Reason>,
    obeys_failure_mode: bool,
    breaker: BreakerResult,
}

impl AgentOutcome {
    /// Every outcome.
    pub const ALL: [Self; 15] = [
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
        Self::RequestTimeout,
        Self::Oversize,
        Self::Decompression,
        Self::BadCoding,
    ];

    /// The reason for which the request is refused; `None` if it is not.
    #[must_use]
    pub fn reason(self) -> Option<Reason> {
        self.row().reason
    }

    /// Whether `failure-mode "open"` lets the request go on.
    #[must_use]
    pub fn obeys_failure_mode(self) -> bool {
        self.row().obeys_failure_mode
    }

    /// What the agent's breaker is told.
    #[must_use]
    pub fn breaker(self) -> BreakerResult {
        self.row().breaker
    }

    #[expect(clippy::too_many_lines, reason = "one row for each outcome")]
    fn row(self) -> Row {
        use BreakerResult::{Failure, Nothing, Success};
        let decided = |name, when, reason| Row {
            name,
            when,
            reason,
            obeys_failure_mode: false,
            breaker: Success,
        };
        let failed = |name, when, reason, breaker| Row {
            name,
            when,
            reason: Some(reason),
            obeys_failure_mode: true,
            breaker,
        };
        let refused = |name, when, reason| Row {
            name,
            when,
            reason: Some(reason),
            obeys_failure_mode: false,
            breaker: Nothing,
        };
        match self {
            Self::Allow => decided("allow", "the agent allows", None),
            Self::Block => decided(
                "block",
                "the agent blocks; it may give another status, headers and a body",
                Some(Reason::AgentBlocked),
            ),
            Self::Redirect => decided(
                "redirect",
                "the agent sends the client elsewhere: 301, 302, 303, 307 or 308; gRPC callers are \
                 blocked",
                None,
            ),
            Self::Challenge => decided(
                "challenge",
                "the agent requires credentials",
                Some(Reason::AgentChallenge),
            ),
            Self::Timeout => failed(
                "timeout",
                "no answer within `timeout-ms`, which for a new connection includes the handshake",
                Reason::AgentTimeout,
                Failure,
            ),
            Self::Unreachable => failed(
                "unreachable",
                "the socket refuses, or has refused within the last second at most",
                Reason::AgentUnreachable,
                Failure,
            ),
            Self::Closed => failed(
                "closed",
                "the agent closes the connection before it answers; a request's head is sent once more, \
                 on another connection, if the first one had answered before",
                Reason::AgentUnreachable,
                Failure,
            ),
            Self::BreakerOpen => failed(
                "breaker open",
                "the agent's `circuit-breaker` is open; it is not asked",
                Reason::AgentBreakerOpen,
                Nothing,
            ),
            Self::QueueFull => failed(
                "queue full",
                "`max-agent-queue-depth` calls have no answer yet; it is not asked",
                Reason::AgentQueueFull,
                Nothing,
            ),
            Self::Overloaded => failed(
                "overloaded",
                "the agent reports that it has too much to do, or does not read its events",
                Reason::AgentQueueFull,
                Failure,
            ),
            Self::BadReply => failed(
                "bad reply",
                "the answer is malformed, larger than `max-agent-response-bytes`, for an event that \
                 awaits none, reports a failure, or changes a field that no agent may change; or the \
                 agent asks for events that its `events` do not list",
                Reason::AgentBadReply,
                Failure,
            ),
            Self::RequestTimeout => refused(
                "request's time",
                "the route's `request-secs` is over before the agent's time",
                Reason::RequestTimeout,
            ),
            Self::Oversize => refused(
                "oversize",
                "the body is larger than `max-body-inspection-bytes` or `max-agent-body-bytes`, and \
                 the agent's `on-oversize` is `block`",
                Reason::BodySizeLimit,
            ),
            Self::Decompression => refused(
                "decompression",
                "the body exceeds `max-decompression-ratio` or `max-decompressed-size-bytes`",
                Reason::DecompressionLimit,
            ),
            Self::BadCoding => refused(
                "bad coding",
                "the body is not of the coding that its head names",
                Reason::BadContentEncoding,
            ),
        }
    }
}

const PAGE_HEAD: &str = "\
# What comes of asking an agent

<!-- Generated by `cargo xtask reference`; edit the table in `proxy-agent` instead. -->

An agent is asked about the head of a request, its body, the head of the response and its body, as its
`events` say. Under `failure-mode \"closed\"` a failure of the agent refuses the request: nothing of it is
forwarded if it happens before the response, and the response is replaced if it happens then. Under
`failure-mode \"open\"` the request goes on without the agent, which gets no further event of it. The end
of a request is told and not answered: no failure there has an effect.

The access log has the last agent that was asked in `agent`, its decision in `agent_decision` (`failed` or
`failed_open` for failures), and the time spent on waiting for all agents in `agent_ms`. Decisions are
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
            when,
            reason,
            obeys_failure_mode,
            breaker,
        } = outcome.row();
        let refused = reason.map(|reason| {
            let status = reason.status().as_u16();
            format!("{status}, `{}`", reason.as_str())
        });
        let closed = refused.unwrap_or_else(|| "goes on as decided".to_owned());
        let open = if obeys_failure_mode {
            "goes on"
        } else {
            "the same"
        };
        let breaker = match breaker {
            BreakerResult::Success => "success",
            BreakerResult::Failure => "failure",
            BreakerResult::Nothing => "–",
        };
        // Writing into a String cannot fail.
        writeln!(page, "| {name} | {when} | {closed} | {open} | {breaker} |").unwrap_or_default();
    }
    page
}
