//! Metrics of the export by OTLP.

use crate::names::metric::CounterOf;

/// Spans that the collector has accepted.
pub const OTLP_SPANS_EXPORTED_TOTAL: CounterOf<0> = CounterOf::new(
    "proxy_otlp_spans_exported_total",
    &[],
    "Spans that the collector has accepted; only with otlp.",
);
/// Spans that were dropped.
pub const OTLP_SPANS_DROPPED_TOTAL: CounterOf<1> = CounterOf::new(
    "proxy_otlp_spans_dropped_total",
    &["reason"],
    "Spans that were dropped: queue_full, unavailable after all repetitions, or refused by the collector; only with \
     otlp.",
);
/// Requests to the collector.
pub const OTLP_EXPORTS_TOTAL: CounterOf<2> = CounterOf::new(
    "proxy_otlp_exports_total",
    &["signal", "result"],
    "Requests to the collector, by signal (traces, metrics) and result (success, failure); only with otlp.",
);
