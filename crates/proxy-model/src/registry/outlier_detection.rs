//! The `outlier-detection` block of an upstream.

use super::kind::Block;
use super::number::{Integer, Time};
use super::spec::{DefaultValue, Unset};
use super::table::{block, integer, settings, time};
use std::time::Duration;

const HOUR: Duration = Duration::from_hours(1);

settings! {
    /// Ejects a target for a time after requests to it have failed: no connection, a timeout, a broken
    /// response or a 5xx.
    OUTLIER_DETECTION: Block, Unset = block("upstreams.upstream.outlier-detection")
        .optional("no target is ejected for its answers")
        .enforced("proxy-pipeline", "a_target_that_fails_in_a_row_is_ejected_for_a_time");
    /// Consecutive failures that eject it. 0 disables it.
    CONSECUTIVE_FAILURES: Integer<u32>, DefaultValue<u32> =
        integer("upstreams.upstream.outlier-detection.consecutive-failures", 0, 10_000, "failures")
            .or(5)
            .enforced("proxy-pipeline", "a_target_that_fails_in_a_row_is_ejected_for_a_time");
    /// Share of failures among the requests of an interval that ejects it.
    FAILURE_PERCENT: Integer<u32>, Unset =
        integer("upstreams.upstream.outlier-detection.failure-percent", 1, 100, "percent")
            .optional("the share does not matter")
            .enforced("proxy-pipeline", "a_target_that_fails_too_often_is_ejected");
    /// Minimum number of requests in an interval to judge the share of failures.
    MIN_REQUESTS: Integer<u32>, DefaultValue<u32> =
        integer("upstreams.upstream.outlier-detection.min-requests", 1, 1_000_000, "requests")
            .or(20)
            .enforced("proxy-pipeline", "a_target_that_fails_too_often_is_ejected");
    /// Interval in which the share is counted.
    INTERVAL: Time, DefaultValue<Duration> =
        time("upstreams.upstream.outlier-detection.interval-secs", HOUR)
            .or(Duration::from_secs(10))
            .enforced("proxy-pipeline", "a_target_that_fails_too_often_is_ejected");
    /// Duration of the first ejection; the second lasts twice as long, the third three times.
    BASE_EJECTION: Time, DefaultValue<Duration> =
        time("upstreams.upstream.outlier-detection.base-ejection-secs", HOUR)
            .or(Duration::from_secs(30))
            .enforced("proxy-pipeline", "a_target_that_fails_in_a_row_is_ejected_for_a_time");
    /// Maximum duration of an ejection.
    MAX_EJECTION: Time, DefaultValue<Duration> =
        time("upstreams.upstream.outlier-detection.max-ejection-secs", Duration::from_hours(24))
            .or(Duration::from_mins(5))
            .enforced("proxy-pipeline", "a_target_that_fails_in_a_row_is_ejected_for_a_time");
    /// Maximum share of targets ejected at the same time.
    MAX_EJECTED_PERCENT: Integer<u32>, DefaultValue<u32> =
        integer("upstreams.upstream.outlier-detection.max-ejected-percent", 0, 100, "percent")
            .or(50)
            .enforced("proxy-pipeline", "at_most_the_written_share_of_an_upstream_is_ejected");
}
