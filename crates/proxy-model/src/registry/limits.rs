//! The `limits` block.

use super::number::{Decimal, Integer, Size};
use super::spec::{Given, Unset};
use super::table::{decimal, flag, integer, settings, size};
use super::word::Flag;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const MAX_COUNT: u32 = 10_000_000;

settings! {
    /// Total size of a request's header fields, names and values. Above it: 429 `LIMIT_EXCEEDED`,
    /// or 431 with `standard-statuses`.
    MAX_HEADER_SIZE: Size, Given<u64> = size("limits.max-header-size-bytes", 256, MIB)
        .or(8_192)
        .enforced("proxy-pipeline", "too_large_heads_are_answered_429_and_logged_as_limits");
    /// Number of a request's header fields. Above it: 429, or 431 with `standard-statuses`.
    MAX_HEADER_COUNT: Integer<u32>, Given<u32> =
        integer("limits.max-header-count", 1, 10_000, "fields")
            .or(100)
            .enforced("proxy-pipeline", "too_large_heads_are_answered_429_and_logged_as_limits");
    /// Size of one header name. Above it: 429, or 431 with `standard-statuses`.
    MAX_HEADER_NAME: Size, Given<u64> = size("limits.max-header-name-bytes", 16, 32 * KIB)
        .or(256)
        .enforced("proxy-pipeline", "too_large_heads_are_answered_429_and_logged_as_limits");
    /// Size of one header value. Above it: 429, or 431 with `standard-statuses`.
    MAX_HEADER_VALUE: Size, Given<u64> = size("limits.max-header-value-bytes", 64, MIB)
        .or(4_096)
        .enforced("proxy-pipeline", "too_large_heads_are_answered_429_and_logged_as_limits");
    /// Size of a request body, unless its route sets another limit. 0 refuses every body. Above it:
    /// 413.
    MAX_BODY_SIZE: Size, Given<u64> = size("limits.max-body-size-bytes", 0, TIB)
        .or(10_485_760)
        .enforced("proxy-pipeline", "a_body_announced_too_large_is_refused_before_it_comes");
    /// Bytes buffered of one body.
    MAX_BODY_BUFFER: Size, Given<u64> = size("limits.max-body-buffer-bytes", 0, GIB)
        .or(1_048_576)
        .not_yet("limits");
    /// Bytes of one body that agents inspect.
    MAX_BODY_INSPECTION: Size, Given<u64> = size("limits.max-body-inspection-bytes", 0, GIB)
        .or(1_048_576)
        .not_yet("agents");
    /// Ratio of decompressed to compressed size.
    MAX_DECOMPRESSION_RATIO: Decimal, Given<f64> =
        decimal("limits.max-decompression-ratio", 1.0, 10_000.0, "")
            .or(100.0)
            .not_yet("agents");
    /// Size of a decompressed body.
    MAX_DECOMPRESSED_SIZE: Size, Given<u64> = size("limits.max-decompressed-size-bytes", KIB, TIB)
        .or(104_857_600)
        .not_yet("agents");
    /// Connections from one client address; IPv6 is counted by /64.
    MAX_CONNECTIONS_PER_CLIENT: Integer<u32>, Given<u32> =
        integer("limits.max-connections-per-client", 1, MAX_COUNT, "connections")
            .or(100)
            .not_yet("limits");
    /// Concurrent connections served by one route.
    MAX_CONNECTIONS_PER_ROUTE: Integer<u32>, Given<u32> =
        integer("limits.max-connections-per-route", 1, MAX_COUNT, "connections")
            .or(1_000)
            .not_yet("limits");
    /// Connections from all clients. Above it a new one is answered 503 and closed. Should not
    /// exceed the process's limit of file descriptors, less 100.
    MAX_TOTAL_CONNECTIONS: Integer<u32>, Given<u32> =
        integer("limits.max-total-connections", 1, MAX_COUNT, "connections")
            .or(10_000)
            .enforced("proxy-server", "connections_over_the_limit_are_answered_503_and_closed");
    /// Idle connections kept to one target, unless its upstream sets another number. 0 keeps none.
    MAX_IDLE_CONNECTIONS_PER_UPSTREAM: Integer<u32>, Given<u32> =
        integer("limits.max-idle-connections-per-upstream", 0, 1_000_000, "connections")
            .or(100)
            .enforced("proxy-pool", "idle_connections_are_limited_for_all_upstreams_together");
    /// Concurrent requests of the process. Above it: 503 with `Retry-After`.
    MAX_IN_FLIGHT_REQUESTS: Integer<u32>, Given<u32> =
        integer("limits.max-in-flight-requests", 1, MAX_COUNT, "requests")
            .or(10_000)
            .enforced(
                "proxy-pipeline",
                "requests_over_the_limit_are_answered_503_until_there_is_room",
            );
    /// Concurrent requests of one worker.
    MAX_IN_FLIGHT_REQUESTS_PER_WORKER: Integer<u32>, Given<u32> =
        integer("limits.max-in-flight-requests-per-worker", 1, MAX_COUNT, "requests")
            .or(1_000)
            .not_yet("limits");
    /// Requests waiting to be admitted.
    MAX_QUEUED_REQUESTS: Integer<u32>, Given<u32> =
        integer("limits.max-queued-requests", 0, MAX_COUNT, "requests")
            .or(1_000)
            .not_yet("limits");
    /// Requests waiting for one agent.
    MAX_AGENT_QUEUE_DEPTH: Integer<u32>, Given<u32> =
        integer("limits.max-agent-queue-depth", 1, 1_000_000, "requests")
            .or(100)
            .not_yet("agents");
    /// Bytes of one body sent to agents.
    MAX_AGENT_BODY: Size, Given<u64> = size("limits.max-agent-body-bytes", 0, GIB)
        .or(1_048_576)
        .not_yet("agents");
    /// Size of an agent's response.
    MAX_AGENT_RESPONSE: Size, Given<u64> = size("limits.max-agent-response-bytes", 64, 16 * MIB)
        .or(10_240)
        .not_yet("agents");
    /// Requests per second of all clients on all routes; a burst may be 10 times as large.
    MAX_REQUESTS_PER_SECOND_GLOBAL: Integer<u32>, Unset =
        integer("limits.max-requests-per-second-global", 1, MAX_COUNT, "requests a second")
            .optional("no limit")
            .not_yet("limits");
    /// Requests per second of one client address; a burst may be 10 times as large.
    MAX_REQUESTS_PER_SECOND_PER_CLIENT: Integer<u32>, Unset =
        integer("limits.max-requests-per-second-per-client", 1, MAX_COUNT, "requests a second")
            .optional("no limit")
            .not_yet("limits");
    /// Requests per second on one route; a burst may be 10 times as large.
    MAX_REQUESTS_PER_SECOND_PER_ROUTE: Integer<u32>, Unset =
        integer("limits.max-requests-per-second-per-route", 1, MAX_COUNT, "requests a second")
            .optional("no limit")
            .not_yet("limits");
    /// Memory of the process.
    MAX_MEMORY: Size, Unset = size("limits.max-memory-bytes", 16 * MIB, 1_024 * TIB)
        .optional("no limit")
        .not_yet("limits");
    /// Memory of the process, in percent of the host's.
    MAX_MEMORY_PERCENT: Decimal, Unset =
        decimal("limits.max-memory-percent", 1.0, 100.0, "percent")
            .optional("no limit")
            .not_yet("limits");
    /// Whether requests with too many or too large headers are answered 431 instead of 429.
    STANDARD_STATUSES: Flag, Given<bool> = flag("limits.standard-statuses")
        .or(false)
        .enforced("proxy-pipeline", "standard_statuses_answer_431");
}
