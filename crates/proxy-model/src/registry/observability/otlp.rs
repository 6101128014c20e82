//! The `otlp` block.

use crate::observability::{OtlpCompression, OtlpEndpoint};
use crate::registry::kind::{Block, Pair};
use crate::registry::number::{Integer, Time};
use crate::registry::spec::{DefaultValue, MachinePart, Repeatable, Required, Unset};
use crate::registry::table::{
    block, choice, file, flag, integer, pair, settings, text, time_from, word, words, written,
};
use crate::registry::text::{Text, Written};
use crate::registry::word::{Choice, ChoiceWord, Flag};
use std::path::PathBuf;
use std::time::Duration;

const BY: &str = "proxyd";

const COMPRESSIONS: &[ChoiceWord<OtlpCompression>] = &[
    word("none", OtlpCompression::None, "bodies are sent unchanged"),
    word("gzip", OtlpCompression::Gzip, "`Content-Encoding: gzip`"),
];

settings! {
    /// Export of traces and metrics to an OpenTelemetry collector, by OTLP/HTTP with protobuf. A
    /// background task sends them, so that no request waits for the collector.
    OTLP: Block, Unset = block("observability.otlp")
        .optional("nothing is exported")
        .enforced(BY, "a_sampled_request_is_a_server_span_with_a_client_span");
    /// Base URL of the collector; `/v1/traces` and `/v1/metrics` are appended. With `https`, its
    /// certificate is verified by the system's roots, or by `ca-file`. Redirects are not followed.
    ENDPOINT: Text<OtlpEndpoint>, Required = text(
        "observability.otlp.endpoint",
        "an http or https URL",
        "https://collector.example:4318",
        str::parse::<OtlpEndpoint>,
    )
    .names(MachinePart::PeerAddress)
    .enforced(BY, "a_sampled_request_is_a_server_span_with_a_client_span");
    /// A field of each request to the collector, such as its credential: `header "Authorization"
    /// "Bearer {$OTLP_TOKEN}"`. Its value is never shown.
    HEADER: Pair, Repeatable = pair(
        "observability.otlp.header",
        "a header name and a value",
        "\"Authorization\" \"Bearer {$OTLP_TOKEN}\"",
    )
    .many()
    .enforced(BY, "requests_to_the_collector_have_its_fields_and_are_compressed");
    /// PEM file of the roots that the collector's certificate is verified by. Read again at each
    /// reload.
    OTLP_CA_FILE: Text<PathBuf>, Unset =
        file("observability.otlp.ca-file", "certificates", "collector-ca.pem")
            .optional("the system's roots")
            .enforced(BY, "a_collector_is_verified_by_the_roots_of_its_file");
    /// `service.name` of the exported resource. `service.version` is the program's, and
    /// `service.instance.id` is made at each start.
    SERVICE_NAME: Text<String>, DefaultValue<Written<String>> =
        words("observability.otlp.service-name", "a name", "edge")
            .or(written("proxyd", || "proxyd".to_owned()))
            .enforced(BY, "a_sampled_request_is_a_server_span_with_a_client_span");
    /// Compression of requests to the collector.
    COMPRESSION: Choice<OtlpCompression>, DefaultValue<OtlpCompression> =
        choice("observability.otlp.compression", COMPRESSIONS)
            .or(OtlpCompression::None)
            .enforced(BY, "requests_to_the_collector_have_its_fields_and_are_compressed");
    /// Maximum time of one request to the collector, with its connection and its response. One that
    /// fails, or is answered 429, 502, 503 or 504, is sent at most five times.
    OTLP_TIMEOUT: Time, DefaultValue<Duration> = time_from(
        "observability.otlp.timeout-secs",
        Duration::from_secs(1),
        Duration::from_mins(1),
    )
    .or(Duration::from_secs(10))
    .enforced(BY, "a_collector_that_hangs_costs_spans_and_no_request");
    /// Exports a span for each request of a sampled trace, and one for each attempt at a target. A trace is sampled by
    /// the flag of its `traceparent`, or begun here by `trace-context { begin }`. The `traceparent` sent to the target
    /// has the ID of the attempt's span as parent.
    TRACES: Flag, DefaultValue<bool> = flag("observability.otlp.traces")
        .or(true)
        .enforced(BY, "signals_that_are_off_are_not_exported");
    /// Spans that may wait for the collector, of up to 4 KiB each. Further ones are dropped, and
    /// counted in `proxy_otlp_spans_dropped_total`.
    QUEUE_SPANS: Integer<u32>, DefaultValue<u32> =
        integer("observability.otlp.queue-spans", 64, 65_536, "spans")
            .or(2_048)
            .enforced(BY, "a_collector_that_hangs_costs_spans_and_no_request");
    /// Exports every metric of `/metrics`, with the same names and values.
    METRICS: Flag, DefaultValue<bool> = flag("observability.otlp.metrics")
        .or(true)
        .enforced(BY, "signals_that_are_off_are_not_exported");
    /// Time between two exports of metrics.
    INTERVAL: Time, DefaultValue<Duration> = time_from(
        "observability.otlp.interval-secs",
        Duration::from_secs(1),
        Duration::from_hours(1),
    )
    .or(Duration::from_mins(1))
    .enforced(BY, "exported_metrics_have_the_values_of_the_metrics_page");
}
