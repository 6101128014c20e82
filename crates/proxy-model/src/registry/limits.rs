//! The `limits` block.

use super::number::{Decimal, Integer, Size, Time};
use super::spec::{DefaultValue, Unset};
use super::table::{decimal, flag, integer, settings, size, time};
use super::word::Flag;
use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const MAX_COUNT: u32 = 10_000_000;

settings! {
    /// Total size of a request's header fields as HTTP/1.1 has them: names, values, separators and line
    /// ends. Above it: 429 `LIMIT_EXCEEDED`,
    /// or 431 with `standard-statuses`.
    MAX_HEADER_SIZE: Size, DefaultValue<u64> = size("limits.max-header-size-bytes", 256, MIB)
        .or(8_192)
        .enforced("proxy-pipeline", "too_large_heads_are_answered_429_and_logged_as_limits");
    /// Number of a request's header fields. Above it: 429, or 431 with `standard-statuses`.
    MAX_HEADER_COUNT: Integer<u32>, DefaultValue<u32> =
        integer("limits.max-header-count", 1, 10_000, "fields")
            .or(100)
            .enforced("proxy-pipeline", "too_large_heads_are_answered_429_and_logged_as_limits");
    /// Size of one header name. Above it: 429, or 431 with `standard-statuses`.
    MAX_HEADER_NAME: Size, DefaultValue<u64> = size("limits.max-header-name-bytes", 16, 32 * KIB)
        .or(256)
        .enforced("proxy-pipeline", "too_large_heads_are_answered_429_and_logged_as_limits");
    /// Size of one header value. Above it: 429, or 431 with `standard-statuses`.
    MAX_HEADER_VALUE: Size, DefaultValue<u64> = size("limits.max-header-value-bytes", 64, MIB)
        .or(4_096)
        .enforced("proxy-pipeline", "too_large_heads_are_answered_429_and_logged_as_limits");
    /// Size of a request body, unless its route sets another limit. 0 refuses every body. Above it:
    /// 413.
    MAX_BODY_SIZE: Size, DefaultValue<u64> = size("limits.max-body-size-bytes", 0, TIB)
        .or(10_485_760)
        .enforced("proxy-pipeline", "a_body_with_a_too_large_content_length_is_refused_unread");
    /// Maximum size of one buffered body on routes with `buffer-requests` or `buffer-responses`; in total at
    /// most this much for each of `max-in-flight-requests`.
    MAX_BODY_BUFFER: Size, DefaultValue<u64> = size("limits.max-body-buffer-bytes", 0, GIB)
        .or(1_048_576)
        .enforced("proxy-pipeline", "a_body_larger_than_the_buffer_is_refused_or_passed_on");
    /// Bytes of one body that agents inspect.
    MAX_BODY_INSPECTION: Size, DefaultValue<u64> = size("limits.max-body-inspection-bytes", 0, GIB)
        .or(1_048_576)
        .enforced("proxy-pipeline", "a_body_larger_than_the_agent_may_see_is_refused_or_passes_as_written");
    /// Ratio of decompressed to compressed size.
    MAX_DECOMPRESSION_RATIO: Decimal, DefaultValue<f64> =
        decimal("limits.max-decompression-ratio", 1.0, 10_000.0, "")
            .or(100.0)
            .enforced("proxy-pipeline", "a_body_that_grows_beyond_its_limits_is_refused_though_larger_ones_pass");
    /// Size of a decompressed body.
    MAX_DECOMPRESSED_SIZE: Size, DefaultValue<u64> = size("limits.max-decompressed-size-bytes", KIB, TIB)
        .or(104_857_600)
        .enforced("proxy-pipeline", "a_body_that_grows_beyond_its_limits_is_refused_though_larger_ones_pass");
    /// Connections from one client address; IPv6 counts by /64. Over it new ones are answered 503 and
    /// closed; with TLS they are closed before the handshake, without an answer. Peers among `trusted-proxies` are not limited: a PROXY protocol header names the client
    /// that is. A tunnel through a stream of HTTP/2 counts as one connection more.
    MAX_CONNECTIONS_PER_CLIENT: Integer<u32>, DefaultValue<u32> =
        integer("limits.max-connections-per-client", 1, MAX_COUNT, "connections")
            .or(100)
            .enforced("proxy-server", "a_client_has_its_share_of_connections_and_others_have_theirs");
    /// Concurrent connections with an active request of one route. Above it, requests are answered
    /// 503 with `Retry-After`. Builtin handlers are exempt. The last ones, a ninth of the second half of a
    /// limit above 32, are for clients without a connection among that half.
    MAX_CONNECTIONS_PER_ROUTE: Integer<u32>, DefaultValue<u32> =
        integer("limits.max-connections-per-route", 1, MAX_COUNT, "connections")
            .or(1_000)
            .enforced("proxy-pipeline", "a_route_has_a_maximum_of_connections_and_other_routes_continue");
    /// Connections from all clients. Above it, new ones are answered 503 and closed; on listeners
    /// with TLS or the PROXY protocol they are closed at once, without a response. The limit is
    /// capped at the process's file descriptors less 100, or half of fewer than 200. A value above
    /// the descriptors less 100 causes a warning.
    MAX_TOTAL_CONNECTIONS: Integer<u32>, DefaultValue<u32> =
        integer("limits.max-total-connections", 1, MAX_COUNT, "connections")
            .or(10_000)
            .enforced("proxy-server", "connections_over_the_limit_are_answered_503_and_closed");
    /// Idle connections kept to all targets of an upstream together, unless the upstream sets
    /// `max-idle`, which is for each target. 0 disables it.
    MAX_IDLE_CONNECTIONS_PER_UPSTREAM: Integer<u32>, DefaultValue<u32> =
        integer("limits.max-idle-connections-per-upstream", 0, 1_000_000, "connections")
            .or(100)
            .enforced("proxy-pool", "idle_connections_are_limited_for_all_upstreams_together");
    /// Requests in flight, without tunnels. Above it, requests are queued within
    /// `max-queued-requests`, else answered 503 with `Retry-After`. Builtin handlers are exempt. In
    /// the second half of the places each route, upstream and client has a fair share: at most
    /// eight times the free places, or 16.
    MAX_IN_FLIGHT_REQUESTS: Integer<u32>, DefaultValue<u32> =
        integer("limits.max-in-flight-requests", 1, MAX_COUNT, "requests")
            .or(10_000)
            .enforced(
                "proxy-pipeline",
                "requests_over_the_limit_are_answered_503_until_there_is_room",
            );
    /// Requests in flight in one worker, without tunnels. Above it, as for
    /// `max-in-flight-requests`, with the same fair shares.
    MAX_IN_FLIGHT_REQUESTS_PER_WORKER: Integer<u32>, DefaultValue<u32> =
        integer("limits.max-in-flight-requests-per-worker", 1, MAX_COUNT, "requests")
            .or(1_000)
            .enforced("proxy-pipeline", "one_worker_serves_so_many_requests_at_once");
    /// Requests queued for a place in flight: routes in rotation, and the clients of a route in
    /// rotation. A request for a route with fewer waiting ones replaces the newest of the route
    /// with the most; within one route the same applies to clients. Above it: 503 with
    /// `Retry-After`. 0 disables the queue.
    MAX_QUEUED_REQUESTS: Integer<u32>, DefaultValue<u32> =
        integer("limits.max-queued-requests", 0, MAX_COUNT, "requests")
            .or(1_000)
            .enforced("proxy-pipeline", "a_request_over_the_queue_is_answered_503_and_the_queued_are_served");
    /// Maximum time of a request in the queue for a place; then 503 with `Retry-After`. Accuracy: a
    /// tenth of a second. The wait counts against the route's `request-secs`.
    MAX_QUEUE_WAIT: Time, DefaultValue<Duration> = time("limits.max-queue-wait-secs", Duration::from_hours(1))
        .or(Duration::from_secs(1))
        .enforced("proxy-pipeline", "a_request_waits_in_the_queue_up_to_the_maximum_time");
    /// Requests waiting for one agent, shared fairly among clients: at the maximum, a client with
    /// fewer replaces the newest request of the client with the most.
    MAX_AGENT_QUEUE_DEPTH: Integer<u32>, DefaultValue<u32> =
        integer("limits.max-agent-queue-depth", 1, 1_000_000, "requests")
            .or(100)
            .enforced("proxy-pipeline", "no_more_calls_wait_for_an_agent_than_its_queue_allows");
    /// Bytes of one body sent to agents.
    MAX_AGENT_BODY: Size, DefaultValue<u64> = size("limits.max-agent-body-bytes", 0, GIB)
        .or(1_048_576)
        .enforced("proxy-pipeline", "a_body_larger_than_the_agent_may_see_is_refused_or_passes_as_written");
    /// Size of an agent's response.
    MAX_AGENT_RESPONSE: Size, DefaultValue<u64> = size("limits.max-agent-response-bytes", KIB, 16 * MIB)
        .or(10_240)
        .enforced("proxy-pipeline", "an_answer_larger_than_the_limit_is_refused");
    /// Requests per second of all clients on all routes; bursts may be 10 times as large. Above it:
    /// 429 `RATE_LIMIT_EXCEEDED`. Builtin handlers are exempt.
    MAX_REQUESTS_PER_SECOND_GLOBAL: Integer<u32>, Unset =
        integer("limits.max-requests-per-second-global", 1, MAX_COUNT, "requests a second")
            .optional("no limit")
            .enforced("proxy-pipeline", "all_clients_together_have_a_rate");
    /// Requests a second of one client address, IPv6 by /64; bursts may be 10 times as many. Over it:
    /// 429. Builtin handlers are exempt.
    MAX_REQUESTS_PER_SECOND_PER_CLIENT: Integer<u32>, Unset =
        integer("limits.max-requests-per-second-per-client", 1, MAX_COUNT, "requests a second")
            .optional("no limit")
            .enforced("proxy-pipeline", "each_client_has_a_rate_of_its_own");
    /// Requests a second on one route; bursts may be 10 times as many. Over it: 429. Builtin handlers
    /// are exempt.
    MAX_REQUESTS_PER_SECOND_PER_ROUTE: Integer<u32>, Unset =
        integer("limits.max-requests-per-second-per-route", 1, MAX_COUNT, "requests a second")
            .optional("no limit")
            .enforced("proxy-pipeline", "each_route_has_a_rate_of_its_own");
    /// Resident memory of the process. Above it, new connections are answered 503 and closed (with
    /// TLS or the PROXY protocol closed without a response), waiting requests are answered 503,
    /// idle connections to targets are closed, and an alert is logged and set in
    /// `proxy_memory_shedding`, until usage is below 90 %. Bodies are buffered while usage is below
    /// 85 %; above it the largest are answered 503, and responses stream.
    MAX_MEMORY: Size, Unset = size("limits.max-memory-bytes", 16 * MIB, 1_024 * TIB)
        .optional("no limit")
        .enforced("proxy-server", "connections_are_refused_while_memory_is_short");
    /// `max-memory-bytes` in percent of the machine's memory, or of the process's control group if that
    /// is less. The smaller limit applies.
    MAX_MEMORY_PERCENT: Decimal, Unset =
        decimal("limits.max-memory-percent", 1.0, 100.0, "percent")
            .optional("no limit")
            .enforced("proxy-server", "a_share_of_the_memory_is_a_limit_in_bytes");
    /// Answers requests with too many or too large headers 431 instead of 429.
    STANDARD_STATUSES: Flag, DefaultValue<bool> = flag("limits.standard-statuses")
        .or(false)
        .enforced("proxy-pipeline", "standard_statuses_answer_431");
}
