//! The `circuit-breaker` block of a route.

use super::kind::Block;
use super::number::{Integer, Time};
use super::spec::{DefaultValue, Unset};
use super::table::{block, integer, settings, time};
use std::time::Duration;

settings! {
    /// Stops sending requests to a failing upstream, and tries again later.
    CIRCUIT_BREAKER: Block, Unset = block("routes.route.circuit-breaker")
        .optional("no circuit breaker")
        .also(&["routes.route.policies"])
        .enforced("proxy-pipeline", "a_breaker_opens_after_its_failures_and_closes_again");
    /// Consecutive failures (no connection, timeout, 5xx) that open the breaker.
    FAILURE_THRESHOLD: Integer<u32>, DefaultValue<u32> =
        integer("routes.route.circuit-breaker.failure-threshold", 1, 1_000_000, "failures")
            .or(5)
            .enforced("proxy-pipeline", "a_breaker_opens_after_its_failures_and_closes_again");
    /// Open time of the breaker. In that time requests are answered 503 `CIRCUIT_BREAKER_OPEN`.
    TIMEOUT: Time, DefaultValue<Duration> =
        time("routes.route.circuit-breaker.timeout-seconds", Duration::from_hours(1))
            .or(Duration::from_secs(30))
            .enforced("proxy-pipeline", "a_breaker_opens_after_its_failures_and_closes_again");
    /// Consecutive successes that close the breaker.
    SUCCESS_THRESHOLD: Integer<u32>, DefaultValue<u32> =
        integer("routes.route.circuit-breaker.success-threshold", 1, 1_000, "successes")
            .or(1)
            .enforced("proxy-pipeline", "a_half_open_breaker_admits_the_configured_number_of_probes");
    /// Concurrent trial requests while the breaker is half-open.
    HALF_OPEN_MAX_REQUESTS: Integer<u32>, DefaultValue<u32> =
        integer("routes.route.circuit-breaker.half-open-max-requests", 1, 1_000, "requests")
            .or(1)
            .enforced("proxy-pipeline", "a_half_open_breaker_admits_the_configured_number_of_probes");
}
