//! The `health-check` block of an upstream.

use super::kind::Block;
use super::number::{Integer, Time};
use super::spec::{DefaultValue, Repeatable, Required, Unset};
use super::table::{
    choice, integer, origin_path, settings, statuses, text, time, word, words, written,
};
use super::text::{Statuses, Text, Written};
use super::word::{Choice, ChoiceWord};
use crate::health::{HealthCheckType, StatusRange};
use proxy_framing::is_host;
use proxy_health::CheckProfile;
use std::time::Duration;

/// Parses a host with an optional port, as in the `Host` field.
fn host(text: &str) -> Result<String, String> {
    if is_host(text.as_bytes()) {
        return Ok(text.to_owned());
    }
    Err("write a host, and a port if it has one".to_owned())
}

const BLOCK: &[&str] = &["upstreams.upstream.health-check"];

const TYPES: &[ChoiceWord<HealthCheckType>] = &[
    word(
        "http",
        HealthCheckType::Http,
        "a GET; with `path`, `expected-status`, `host`",
    ),
    word("tcp", HealthCheckType::Tcp, "a connection"),
    word(
        "grpc",
        HealthCheckType::Grpc,
        "the gRPC health protocol; with `service`",
    ),
    word(
        "inference",
        HealthCheckType::Inference,
        "a model server's list of models; with `endpoint`, `expected-models`",
    ),
];

const PROFILES: &[ChoiceWord<CheckProfile>] = &[
    word("default", CheckProfile::Default, "10 s, 5 s, 2, 3"),
    word(
        "fast-failover",
        CheckProfile::FastFailover,
        "5 s, 2 s, 2, 2",
    ),
    word("stable", CheckProfile::Stable, "30 s, 10 s, 3, 5"),
    word(
        "slow-backends",
        CheckProfile::SlowBackends,
        "30 s, 15 s, 2, 3",
    ),
];

settings! {
    /// Active health checks of the targets.
    HEALTH_CHECK: Block, Unset = super::table::block("upstreams.upstream.health-check")
        .optional("targets count as healthy")
        .enforced("proxy-probe", "checks_remove_and_restore_a_target");
    /// The probe, with its own settings in braces: `type "http" { path "/healthz" }`, or
    /// `health-check type="http"`.
    TYPE: Choice<HealthCheckType>, Required =
        choice("upstreams.upstream.health-check.type", TYPES).enforced("proxy-probe", "checks_remove_and_restore_a_target");
    /// Path of an `http` check.
    PATH: Text<String>, DefaultValue<Written<String>> =
        origin_path("upstreams.upstream.health-check.type.path", "/healthz")
            .or(written("/", || "/".to_owned()))
            .also(BLOCK)
            .enforced("proxy-probe", "checks_remove_and_restore_a_target");
    /// The status of a successful `http` check, or a range of them: `200`, `"200-399"`.
    EXPECTED_STATUS: Statuses, DefaultValue<StatusRange> =
        statuses("upstreams.upstream.health-check.type.expected-status")
            .or(StatusRange { first: 200, last: 200 })
            .also(BLOCK)
            .enforced("proxy-probe", "the_status_the_host_and_the_path_of_a_check_are_as_written");
    /// The `Host` header of an `http` check.
    HOST: Text<String>, Unset =
        text("upstreams.upstream.health-check.type.host", "a host", "app.internal", host)
            .optional("the target's address")
            .also(BLOCK)
            .enforced("proxy-probe", "the_status_the_host_and_the_path_of_a_check_are_as_written");
    /// The service named in a `grpc` check.
    SERVICE: Text<String>, Unset =
        words("upstreams.upstream.health-check.type.service", "a gRPC service", "shop.Cart")
            .optional("the server as a whole")
            .also(BLOCK)
            .enforced("proxy-probe", "a_grpc_check_asks_about_its_service");
    /// Path of the list of models.
    ENDPOINT: Text<String>, DefaultValue<Written<String>> =
        origin_path("upstreams.upstream.health-check.type.endpoint", "/v1/models")
            .or(written("/v1/models", || "/v1/models".to_owned()))
            .also(BLOCK)
            .enforced("proxy-probe", "a_model_server_without_an_expected_model_is_not_called");
    /// Models that the list must contain; a name also matches longer names that begin with it.
    EXPECTED_MODELS: Text<String>, Repeatable = words(
        "upstreams.upstream.health-check.type.expected-models",
        "a model's name",
        "llama3",
    )
    .many()
    .also(BLOCK)
    .enforced("proxy-probe", "a_model_server_without_an_expected_model_is_not_called");
    /// The figures that hold where they are not written: interval, timeout, healthy and unhealthy threshold.
    PROFILE: Choice<CheckProfile>, DefaultValue<CheckProfile> =
        choice("upstreams.upstream.health-check.profile", PROFILES)
            .or(CheckProfile::Default)
            .enforced("proxy-probe", "a_profile_gives_the_figures_that_are_not_written");
    /// Interval between two probes of a target. While all targets of the upstream are unhealthy, it is 250 ms at first and grows to this value with the length of the outage. Without it, and with a `timeout-secs` longer than the profile's interval, it is that time-out.
    INTERVAL: Time, DefaultValue<Duration> =
        time("upstreams.upstream.health-check.interval-secs", Duration::from_hours(24))
            .or(Duration::from_secs(10))
            .enforced("proxy-probe", "checks_remove_and_restore_a_target");
    /// Maximum time for a probe, of at most the interval. Without it, and with an `interval-secs` shorter than the profile's time-out, it is that interval.
    TIMEOUT: Time, DefaultValue<Duration> =
        time("upstreams.upstream.health-check.timeout-secs", Duration::from_hours(1))
            .or(Duration::from_secs(5))
            .enforced("proxy-probe", "a_target_that_answers_its_checks_late_is_not_called");
    /// Consecutive successful probes that make a target healthy.
    HEALTHY_THRESHOLD: Integer<u32>, DefaultValue<u32> =
        integer("upstreams.upstream.health-check.healthy-threshold", 1, 1_000, "answers")
            .or(2)
            .enforced("proxy-probe", "checks_remove_and_restore_a_target");
    /// Consecutive failed probes that make a target unhealthy.
    UNHEALTHY_THRESHOLD: Integer<u32>, DefaultValue<u32> =
        integer("upstreams.upstream.health-check.unhealthy-threshold", 1, 1_000, "answers")
            .or(3)
            .enforced("proxy-probe", "checks_remove_and_restore_a_target");
}
