//! Messages of OTLP: the fields that are written here, by their numbers in `opentelemetry-proto` 1.x.

mod common;
mod metrics;
mod trace;

pub use common::{AnyValue, InstrumentationScope, KeyValue, Resource, Value};
pub use metrics::{
    Data, Exemplar, ExemplarValue, ExportMetricsPartialSuccess, ExportMetricsServiceRequest,
    ExportMetricsServiceResponse, Gauge, Histogram, HistogramDataPoint, Metric, Number,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
pub use trace::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
    ResourceSpans, ScopeSpans, Span, Status,
};
