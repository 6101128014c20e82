//! The `agents` block.

use super::kind::Block;
use super::number::{Integer, Time};
use super::spec::{DefaultValue, MachinePart, Repeatable, Required, Unset};
use super::table::{
    block, choice, file, integer, named, origin_path, settings, text, time, word, words, written,
};
use super::text::{Text, Written};
use super::word::{Choice, ChoiceWord};
use crate::agent::{
    AgentEncoding, AgentEventKind, AgentProtocol, AgentTransport, FailureMode, OversizeMode,
};
use http::HeaderName;
use proxy_framing::is_host;
use std::path::PathBuf;
use std::time::Duration;

const MODES: &[ChoiceWord<FailureMode>] = &[
    word("open", FailureMode::Open, "requests go on without it"),
    word("closed", FailureMode::Closed, "requests are refused"),
];

const ENCODINGS: &[ChoiceWord<AgentEncoding>] = &[
    word("json", AgentEncoding::Json, "JSON"),
    word(
        "message-pack",
        AgentEncoding::MessagePack,
        "MessagePack, where the agent agrees",
    ),
];

const PROTOCOLS: &[ChoiceWord<AgentProtocol>] = &[
    word(
        "native",
        AgentProtocol::Native,
        "the protocol of `agent-protocol.md`",
    ),
    word(
        "ext-authz",
        AgentProtocol::ExtAuthz,
        "`envoy.service.auth.v3.Authorization/Check`, gRPC over HTTP/2",
    ),
    word(
        "forward-auth",
        AgentProtocol::ForwardAuth,
        "a GET over HTTP/1.1: 2xx allows, any other answer is the client's",
    ),
];

const EVENT_KINDS: &[ChoiceWord<AgentEventKind>] = &[
    word(
        "request-headers",
        AgentEventKind::RequestHeaders,
        "the request's head",
    ),
    word(
        "request-body",
        AgentEventKind::RequestBody,
        "the request's body",
    ),
    word(
        "response-headers",
        AgentEventKind::ResponseHeaders,
        "the response's head",
    ),
    word(
        "response-body",
        AgentEventKind::ResponseBody,
        "the response's body, with its head",
    ),
];

const OVERSIZE: &[ChoiceWord<OversizeMode>] = &[
    word(
        "block",
        OversizeMode::Block,
        "the request is answered 413, a response 502",
    ),
    word(
        "pass",
        OversizeMode::Pass,
        "the agent sees the beginning, and the rest passes",
    ),
];

const TRANSPORTS: &[ChoiceWord<AgentTransport>] = &[word(
    "unix_socket",
    AgentTransport::UnixSocket,
    "a Unix socket; with `path`",
)];

fn header_name(text: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(text.as_bytes()).map_err(|error| error.to_string())
}

/// A host, with a port if it is not the scheme's own.
fn host(text: &str) -> Result<String, String> {
    if is_host(text.as_bytes()) {
        return Ok(text.to_owned());
    }
    Err("write a host, and a port if it has one".to_owned())
}

settings! {
    /// An external agent.
    AGENT: Block, Repeatable = named("agents.agent", "a name").many().enforced("proxy-pipeline", "an_agent_sees_the_head_and_the_request_continues");
    /// The agent's socket: `unix-socket "/run/waf.sock"` or `unix-socket path="/run/waf.sock"`.
    UNIX_SOCKET: Text<PathBuf>, Unset =
        file("agents.agent.unix-socket", "a socket", "/run/waf.sock")
            .optional("there must be a `transport` or an `upstream`")
            .names(MachinePart::Socket)
            .enforced("proxy-pipeline", "an_agent_sees_the_head_and_the_request_continues");
    /// The agent's socket, in the form `transport "unix_socket" { path "/run/waf.sock" }`.
    TRANSPORT: Choice<AgentTransport>, Unset = choice("agents.agent.transport", TRANSPORTS)
        .optional("there must be a `unix-socket` or an `upstream`")
        .enforced("proxy-pipeline", "a_transport_is_another_spelling_of_the_socket");
    /// The upstream with the agent as its targets, over TCP or, with its `tls` block, over TLS:
    /// instead of a Unix socket, for `forward-auth` and `ext-authz`. Targets that its health checks
    /// find unhealthy are not called, and connections are kept for its `idle-timeout-secs`.
    /// `ext-authz` needs its `protocol "h2"`.
    UPSTREAM: Text<String>, Unset = words("agents.agent.upstream", "the name of an upstream", "other")
        .optional("there must be a `unix-socket`")
        .enforced("proxy-agent", "an_agent_behind_an_upstream_is_called_over_tcp");
    /// Path of the agent's socket.
    PATH: Text<PathBuf>, Required = file("agents.agent.transport.path", "a socket", "/run/waf.sock")
        .also(&["agents.agent.unix-socket"])
        .names(MachinePart::Socket)
        .enforced("proxy-pipeline", "a_transport_is_another_spelling_of_the_socket");
    /// Treatment of requests while the agent is unavailable. Required, because neither choice is a
    /// safe default.
    FAILURE_MODE: Choice<FailureMode>, Required =
        choice("agents.agent.failure-mode", MODES).enforced("proxy-pipeline", "requests_pass_a_failing_agent_with_failure_mode_open");
    /// The agent's protocol. `ext-authz` and `forward-auth` decide only about the heads of
    /// requests.
    PROTOCOL: Choice<AgentProtocol>, DefaultValue<AgentProtocol> =
        choice("agents.agent.protocol", PROTOCOLS)
            .or(AgentProtocol::Native)
            .enforced("proxy-agent", "an_allowing_call_edits_the_request_and_the_response");
    /// Events that the agent may receive in addition to `request-headers`, which it always
    /// receives. An agent that requests further events is not used; it receives only events that it
    /// requests. A body for an agent is decompressed, and no byte is forwarded before the agent has
    /// decided about it.
    EVENTS: Choice<AgentEventKind>, Repeatable = choice("agents.agent.events", EVENT_KINDS)
        .many()
        .enforced("proxy-pipeline", "an_agent_that_asks_for_events_it_may_not_have_is_not_used");
    /// Treatment of bodies above the agent's inspection limit.
    ON_OVERSIZE: Choice<OversizeMode>, DefaultValue<OversizeMode> =
        choice("agents.agent.on-oversize", OVERSIZE)
            .or(OversizeMode::Block)
            .enforced("proxy-pipeline", "a_body_larger_than_the_agent_may_see_is_refused_or_passes_as_written");
    /// The path of the request to a `forward-auth` agent.
    REQUEST_PATH: Text<String>, DefaultValue<Written<String>> =
        origin_path("agents.agent.request-path", "/verify")
            .or(written("/", || "/".to_owned()))
            .enforced("proxy-agent", "a_2xx_allows_and_its_named_headers_replace_the_clients");
    /// The `Host` of the request to a `forward-auth` agent, for one that other hosts share an address with.
    REQUEST_HOST: Text<String>, Unset =
        text("agents.agent.request-host", "a host", "auth.example.com", host)
            .optional("the client's `Host`")
            .enforced("proxy-agent", "an_agent_gets_the_host_that_is_written");
    /// Headers of a `forward-auth` agent's 2xx response that replace the request's. The client's
    /// own are always removed.
    COPY_HEADERS: Text<HeaderName>, Repeatable =
        text("agents.agent.copy-headers", "a header name", "x-user", header_name)
            .many()
            .enforced("proxy-agent", "a_2xx_allows_and_its_named_headers_replace_the_clients");
    /// The headers of a `forward-auth` agent's 2xx answer that are added to the response, such as
    /// `Set-Cookie` of a session that the agent renews.
    COPY_RESPONSE_HEADERS: Text<HeaderName>, Repeatable =
        text("agents.agent.copy-response-headers", "a header name", "set-cookie", header_name)
            .many()
            .enforced("proxy-agent", "a_renewed_session_cookie_reaches_the_client");
    /// Maximum time for one decision, kept to a tenth of a second. Then 504.
    TIMEOUT: Time, DefaultValue<Duration> = time("agents.agent.timeout-ms", Duration::from_mins(1))
        .or(Duration::from_secs(1))
        .enforced("proxy-pipeline", "an_agent_takes_no_more_than_its_time_and_less_if_the_request_has_less");
    /// Encoding offered to the agent.
    ENCODING: Choice<AgentEncoding>, DefaultValue<AgentEncoding> =
        choice("agents.agent.encoding", ENCODINGS)
            .or(AgentEncoding::Json)
            .enforced("proxy-pipeline", "a_reload_keeps_the_connections_of_an_agent_with_the_same_settings");
    /// Stops calling a failing agent, and tries again later.
    CIRCUIT_BREAKER: Block, Unset = block("agents.agent.circuit-breaker")
        .optional("it is always called")
        .enforced("proxy-pipeline", "a_breaker_stops_calling_an_agent_that_fails_and_tries_again");
    /// Consecutive failures that open the breaker.
    FAILURE_THRESHOLD: Integer<u32>, DefaultValue<u32> =
        integer("agents.agent.circuit-breaker.failure-threshold", 1, 1_000_000, "failures")
            .or(5)
            .enforced("proxy-pipeline", "a_breaker_stops_calling_an_agent_that_fails_and_tries_again");
    /// Open time of the breaker.
    BREAKER_TIMEOUT: Time, DefaultValue<Duration> =
        time("agents.agent.circuit-breaker.timeout-seconds", Duration::from_hours(1))
            .or(Duration::from_secs(30))
            .enforced("proxy-pipeline", "a_breaker_stops_calling_an_agent_that_fails_and_tries_again");
}
