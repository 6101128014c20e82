//! All metrics of the control plane: name, kind, labels and meaning.

use control_domain::RolloutEvent;
use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use std::fmt::Write as _;

/// Kind of a metric: how its value changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A count that only grows, from 0 at each start.
    Counter,
    /// A value that rises and falls.
    Gauge,
    /// Observations counted in buckets.
    Histogram,
}

/// Definition of a metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The name, with the prefix `control_`.
    pub name: &'static str,
    /// Kind of the metric.
    pub kind: MetricKind,
    /// Names of its labels, in the order of their values.
    pub labels: &'static [&'static str],
    /// Help text of the exposition.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($constant:ident $name:literal $kind:ident [$($label:literal),*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: &str = $name;
        )*

        /// Every metric, in the order of the page.
        pub const METRICS: &[Metric] = &[$(Metric {
            name: $name,
            kind: MetricKind::$kind,
            labels: &[$($label),*],
            help: $help,
        },)*];
    };
}

metrics! {
    BUILD_INFO "control_build_info" Gauge ["version"] "1, with the version of the program.";
    START_TIME "control_start_time_seconds" Gauge [] "When the program started, in Unix time.";
    PROCESS_CPU "control_process_cpu_seconds" Gauge [] "Processor time that the program has used.";
    PROCESS_MEMORY "control_process_resident_memory_bytes" Gauge [] "Resident memory of the program.";
    PROCESS_FDS "control_process_open_fds" Gauge [] "File descriptors that the program has open.";
    REQUESTS "control_requests_total" Counter ["route", "status"] "Requests that were answered.";
    REQUEST_DURATION "control_request_duration_seconds" Histogram ["route"] "From a request's head to its answer's head.";
    REQUESTS_IN_FLIGHT "control_requests_in_flight" Gauge [] "Requests that have no answer yet, long polls included.";
    LONG_POLLS "control_long_polls" Gauge [] "Requests of nodes that wait for a change.";
    RATE_LIMITED "control_rate_limited_total" Counter ["class"] "Requests that were refused by a rate limit.";
    AUTHENTICATION_FAILURES "control_authentication_failures_total" Counter [] "Credentials that were not accepted.";
    CONNECTIONS_OPEN "control_connections_open" Gauge [] "Connections of clients.";
    CONNECTIONS_REFUSED "control_connections_refused_total" Counter [] "Connections that were closed at once because `max-connections` were open, or because their peer may not speak without TLS.";
    TLS_HANDSHAKE_FAILURES "control_tls_handshake_failures_total" Counter [] "Connections that ended before TLS was agreed on.";
    TLS_NOT_AFTER "control_tls_certificate_not_after_seconds" Gauge [] "When the certificate ends, in Unix time.";
    DATABASE_CONNECTIONS "control_database_connections" Gauge ["state"] "Connections to the database, `idle` and `used`.";
    DATABASE_UP "control_database_up" Gauge [] "1 while the database answers and takes writes, else 0.";
    CLOCK_OFFSET "control_clock_offset_seconds" Gauge [] "How far the clock of this replica is ahead of the database's, negative if behind; PostgreSQL only.";
    ROWS_WRITTEN "control_rows_written_total" Counter [] "Rows of the database that this process has inserted, updated or deleted.";
    AUDIT_ENTRIES "control_audit_entries" Gauge [] "The number of the audit log's newest entry.";
    BACKGROUND_FAILURES "control_background_failures_total" Counter ["task"] "Rounds of background work that failed.";
    ROLLOUT_EVENTS "control_rollout_events_total" Counter ["event"] "Steps of rollouts, by the event of the state machine.";
    ROLLOUT_STEP_DURATION "control_rollout_step_duration_seconds" Histogram [] "Duration of one scheduler step of a rollout.";
    DRIFT_EVENTS "control_drift_events_total" Counter ["event"] "Drifts that were `opened` and `resolved`.";
    NODE_DUPLICATES "control_node_duplicates_total" Counter [] "Nodes of which a second running process was noticed: a copied data folder.";
    NODES_WITHOUT_WAY_BACK "control_nodes_without_way_back_total" Counter [] "Nodes that keep a revoked bundle, because they ran no other one that is signed still.";
    ARCHIVES_SWEPT "control_archives_swept_total" Counter [] "Archives that were deleted because no bundle refers to them.";
    STORED_ROWS "control_stored_rows" Gauge ["table"] "Rows of the tables that grow with use, counted every five minutes.";
    DATABASE_BYTES "control_database_bytes" Gauge [] "Size of the database, measured every five minutes; space that deleted rows left is included.";
    ARCHIVE_BYTES "control_archive_bytes" Gauge [] "Size of the archives of all bundles, measured every five minutes; bundles of the same bytes count each.";
    TRAFFIC_BYTES "control_traffic_bytes" Gauge [] "Size of the requests by steps of time, measured every five minutes; without indexes and pages.";
    ACME_ORDERS "control_acme_orders_total" Counter ["result"] "Attempts to obtain or renew a certificate by ACME that were a `success` or a `failure`.";
    WEBHOOK_DELIVERIES "control_webhook_deliveries_total" Counter ["result"] "Attempts to deliver an event to a webhook that were `delivered`, are `retried`, or have `failed` for good, and events that were `dropped` because a queue was full.";
    HOUSEKEEPING_DELETED "control_housekeeping_deleted_total" Counter [] "Rows that housekeeping has deleted.";
}

/// Values of the label `class`.
pub const RATE_CLASSES: &[&str] = &["general", "strict", "report_bytes"];
/// Values of the label `task`.
pub const BACKGROUND_TASKS: &[&str] = &[
    "archives",
    "audit",
    "certificates",
    "drift",
    "housekeeping",
    "recall",
    "refusals",
    "relay",
    "rollouts",
    "storage",
    "traffic",
    "webhooks",
];
/// Values of the label `result`.
pub const WEBHOOK_RESULTS: &[&str] = &["delivered", "retried", "failed", "dropped"];

/// Registers the descriptions of metrics, and starts the metrics of the process.
#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float; seconds fit"
)]
pub fn describe_metrics(version: &'static str, now: jiff::Timestamp) {
    for metric in METRICS {
        let Metric {
            name,
            kind,
            labels: _,
            help,
        } = *metric;
        let unit = match name.rsplit_once('_') {
            Some((_, "seconds")) => Unit::Seconds,
            Some((_, "bytes")) => Unit::Bytes,
            Some(_) | None => Unit::Count,
        };
        match kind {
            MetricKind::Counter => describe_counter!(name, unit, help),
            MetricKind::Gauge => describe_gauge!(name, unit, help),
            MetricKind::Histogram => describe_histogram!(name, unit, help),
        }
    }
    gauge!(BUILD_INFO, "version" => version).set(1.0);
    gauge!(LONG_POLLS).set(0.0);
    gauge!(START_TIME).set(now.as_second() as f64);
    // Starts at 0: a series that begins with its first event shows no increase to alert on.
    drop(histogram!(ROLLOUT_STEP_DURATION));
    for event in RolloutEvent::ALL {
        counter!(ROLLOUT_EVENTS, "event" => event.name()).increment(0);
    }
    for counter in [
        AUTHENTICATION_FAILURES,
        CONNECTIONS_REFUSED,
        TLS_HANDSHAKE_FAILURES,
        ROWS_WRITTEN,
        NODE_DUPLICATES,
        NODES_WITHOUT_WAY_BACK,
        ARCHIVES_SWEPT,
        HOUSEKEEPING_DELETED,
    ] {
        counter!(counter).increment(0);
    }
    for result in ["success", "failure"] {
        counter!(ACME_ORDERS, "result" => result).increment(0);
    }
    for result in WEBHOOK_RESULTS {
        counter!(WEBHOOK_DELIVERIES, "result" => *result).increment(0);
    }
    for class in RATE_CLASSES {
        counter!(RATE_LIMITED, "class" => *class).increment(0);
    }
    for task in BACKGROUND_TASKS {
        counter!(BACKGROUND_FAILURES, "task" => *task).increment(0);
    }
    for event in ["opened", "resolved"] {
        counter!(DRIFT_EVENTS, "event" => event).increment(0);
    }
}

/// Text of the page `docs/reference/control-metrics.md`.
pub fn metrics_md() -> String {
    let mut page = "\
# Metrics of the control plane

<!-- Written by `cargo xtask reference` from the table in the code; changes here are lost. -->

`GET /metrics` of `controld`, in the Prometheus text format 0.0.4. No name of a user, node or project is ever a
label.

| metric | kind | labels | meaning |
|---|---|---|---|
"
    .to_owned();
    for metric in METRICS {
        let Metric {
            name,
            kind,
            labels,
            help,
        } = *metric;
        let kind = format!("{kind:?}").to_lowercase();
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = labels.join(", ");
        writeln!(page, "| `{name}` | {kind} | {labels} | {help} |").unwrap_or_default();
    }
    page
}
