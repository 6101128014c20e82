//! The `health-check` block of an upstream.

use super::kind::Block;
use super::number::{Integer, Time};
use super::spec::{Given, Many, Required, Unset};
use super::table::{choice, integer, settings, time, word, words, written};
use super::text::{Text, Written};
use super::word::{Choice, Meaning};
use crate::health::HealthCheckType;
use std::time::Duration;

const BLOCK: &[&str] = &["upstreams.upstream.health-check"];

const TYPES: &[Meaning<HealthCheckType>] = &[
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

settings! {
    /// Active health checks of the targets.
    HEALTH_CHECK: Block, Unset = super::table::block("upstreams.upstream.health-check")
        .optional("targets are taken to be well")
        .not_yet("resilience");
    /// The probe, with its own settings in braces: `type "http" { path "/healthz" }`, or
    /// `health-check type="http"`.
    TYPE: Choice<HealthCheckType>, Required =
        choice("upstreams.upstream.health-check.type", TYPES).not_yet("resilience");
    /// Path of an `http` check.
    PATH: Text<String>, Given<Written<String>> =
        words("upstreams.upstream.health-check.type.path", "a path", "/healthz")
            .or(written("/", || "/".to_owned()))
            .also(BLOCK)
            .not_yet("resilience");
    /// The status of a successful `http` check.
    EXPECTED_STATUS: Integer<u16>, Given<u16> =
        integer("upstreams.upstream.health-check.type.expected-status", 100, 599, "")
            .or(200)
            .also(BLOCK)
            .not_yet("resilience");
    /// The `Host` header of an `http` check.
    HOST: Text<String>, Unset =
        words("upstreams.upstream.health-check.type.host", "a host", "app.internal")
            .optional("the target's address")
            .also(BLOCK)
            .not_yet("resilience");
    /// The service named in a `grpc` check.
    SERVICE: Text<String>, Unset =
        words("upstreams.upstream.health-check.type.service", "a gRPC service", "shop.Cart")
            .optional("the server as a whole")
            .also(BLOCK)
            .not_yet("resilience");
    /// Path of the list of models.
    ENDPOINT: Text<String>, Given<Written<String>> =
        words("upstreams.upstream.health-check.type.endpoint", "a path", "/v1/models")
            .or(written("/v1/models", || "/v1/models".to_owned()))
            .also(BLOCK)
            .not_yet("resilience");
    /// Models that the list must contain; a name also matches longer names that begin with it.
    EXPECTED_MODELS: Text<String>, Many = words(
        "upstreams.upstream.health-check.type.expected-models",
        "a model's name",
        "llama3",
    )
    .many()
    .also(BLOCK)
    .not_yet("resilience");
    /// Interval between two probes of a target.
    INTERVAL: Time, Given<Duration> =
        time("upstreams.upstream.health-check.interval-secs", Duration::from_hours(24))
            .or(Duration::from_secs(10))
            .not_yet("resilience");
    /// Maximum time for a probe.
    TIMEOUT: Time, Given<Duration> =
        time("upstreams.upstream.health-check.timeout-secs", Duration::from_hours(1))
            .or(Duration::from_secs(5))
            .not_yet("resilience");
    /// Consecutive successful probes that make a target healthy.
    HEALTHY_THRESHOLD: Integer<u32>, Given<u32> =
        integer("upstreams.upstream.health-check.healthy-threshold", 1, 1_000, "answers")
            .or(2)
            .not_yet("resilience");
    /// Consecutive failed probes that make a target unhealthy.
    UNHEALTHY_THRESHOLD: Integer<u32>, Given<u32> =
        integer("upstreams.upstream.health-check.unhealthy-threshold", 1, 1_000, "answers")
            .or(3)
            .not_yet("resilience");
}
