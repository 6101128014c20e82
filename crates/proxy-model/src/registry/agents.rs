//! The `agents` block.

use super::kind::Block;
use super::number::{Integer, Time};
use super::spec::{Given, Many, Required, Unset};
use super::table::{block, choice, file, integer, named, settings, time, word};
use super::text::Text;
use super::word::{Choice, Meaning};
use crate::agent::{AgentEncoding, AgentTransport, FailureMode};
use std::path::PathBuf;
use std::time::Duration;

const MODES: &[Meaning<FailureMode>] = &[
    word("open", FailureMode::Open, "requests go on without it"),
    word("closed", FailureMode::Closed, "requests are refused"),
];

const ENCODINGS: &[Meaning<AgentEncoding>] = &[
    word("json", AgentEncoding::Json, "JSON"),
    word(
        "message-pack",
        AgentEncoding::MessagePack,
        "MessagePack, where the agent agrees",
    ),
];

const TRANSPORTS: &[Meaning<AgentTransport>] = &[word(
    "unix_socket",
    AgentTransport::UnixSocket,
    "a Unix socket; with `path`",
)];

settings! {
    /// An external agent.
    AGENT: Block, Many = named("agents.agent", "a name").many().not_yet("agents");
    /// The agent's socket: `unix-socket "/run/waf.sock"` or `unix-socket path="/run/waf.sock"`.
    UNIX_SOCKET: Text<PathBuf>, Unset =
        file("agents.agent.unix-socket", "a socket", "/run/waf.sock")
            .optional("there must be a `transport`")
            .not_yet("agents");
    /// The agent's socket, in the form `transport "unix_socket" { path "/run/waf.sock" }`.
    TRANSPORT: Choice<AgentTransport>, Unset = choice("agents.agent.transport", TRANSPORTS)
        .optional("there must be a `unix-socket`")
        .not_yet("agents");
    /// Path of the agent's socket.
    PATH: Text<PathBuf>, Required = file("agents.agent.transport.path", "a socket", "/run/waf.sock")
        .also(&["agents.agent.unix-socket"])
        .not_yet("agents");
    /// Treatment of requests while the agent is unavailable. Required, because neither choice is a
    /// safe default.
    FAILURE_MODE: Choice<FailureMode>, Required =
        choice("agents.agent.failure-mode", MODES).not_yet("agents");
    /// Maximum time for one decision. Then 504.
    TIMEOUT: Time, Given<Duration> = time("agents.agent.timeout-ms", Duration::from_mins(1))
        .or(Duration::from_secs(1))
        .not_yet("agents");
    /// Encoding offered to the agent.
    ENCODING: Choice<AgentEncoding>, Given<AgentEncoding> =
        choice("agents.agent.encoding", ENCODINGS)
            .or(AgentEncoding::Json)
            .not_yet("agents");
    /// Stops calling an agent that fails, and tries again later.
    CIRCUIT_BREAKER: Block, Unset = block("agents.agent.circuit-breaker")
        .optional("it is always asked")
        .not_yet("agents");
    /// Consecutive failures that open the breaker.
    FAILURE_THRESHOLD: Integer<u32>, Given<u32> =
        integer("agents.agent.circuit-breaker.failure-threshold", 1, 1_000_000, "failures")
            .or(5)
            .not_yet("agents");
    /// Time for which the breaker stays open.
    BREAKER_TIMEOUT: Time, Given<Duration> =
        time("agents.agent.circuit-breaker.timeout-seconds", Duration::from_hours(1))
            .or(Duration::from_secs(30))
            .not_yet("agents");
}
