//! `opentelemetry.proto.metrics.v1` and its collector service.

use super::common::{InstrumentationScope, KeyValue, Resource};

/// The body of `POST /v1/metrics`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportMetricsServiceRequest {
    /// Metrics by resource.
    #[prost(message, repeated, tag = "1")]
    pub resource_metrics: Vec<ResourceMetrics>,
}

/// The body of its response.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportMetricsServiceResponse {
    /// Present if some points were rejected, or with a warning.
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<ExportMetricsPartialSuccess>,
}

/// Points that the collector rejected.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportMetricsPartialSuccess {
    /// Number of rejected points.
    #[prost(int64, tag = "1")]
    pub rejected_data_points: i64,
    /// Reason of the rejection, for the log.
    #[prost(string, tag = "2")]
    pub error_message: String,
}

/// Metrics of a resource.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResourceMetrics {
    /// Process that the metrics belong to.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// Metrics by scope.
    #[prost(message, repeated, tag = "2")]
    pub scope_metrics: Vec<ScopeMetrics>,
}

/// Metrics of a scope.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScopeMetrics {
    /// Program that counted the metrics.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    /// Its metrics.
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<Metric>,
}

/// A metric.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Metric {
    /// Name as in `/metrics`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Description as in `/metrics`.
    #[prost(string, tag = "2")]
    pub description: String,
    /// Its unit, of UCUM.
    #[prost(string, tag = "3")]
    pub unit: String,
    /// Points by kind of metric.
    #[prost(oneof = "Data", tags = "5, 7, 9")]
    pub data: Option<Data>,
}

/// The points of a metric by its kind.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Data {
    /// Rises and falls.
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    /// Only rises.
    #[prost(message, tag = "7")]
    Sum(Sum),
    /// Durations in buckets.
    #[prost(message, tag = "9")]
    Histogram(Histogram),
}

/// The points of a gauge.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Gauge {
    /// One for each set of attributes.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
}

/// The points of a sum.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sum {
    /// One for each set of attributes.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
    /// 2: counted since the start of the process.
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
    /// True if the value never falls.
    #[prost(bool, tag = "3")]
    pub is_monotonic: bool,
}

/// The points of a histogram.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Histogram {
    /// One for each set of attributes.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<HistogramDataPoint>,
    /// 2: counted since the start of the process.
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
}

/// A number.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NumberDataPoint {
    /// Nanoseconds since 1970; 0 for gauges.
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    /// Nanoseconds since 1970.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    /// Value at that time.
    #[prost(oneof = "Number", tags = "4, 6")]
    pub value: Option<Number>,
    /// Labels with their values.
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<KeyValue>,
}

/// A number by its type.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Number {
    /// A number.
    #[prost(double, tag = "4")]
    Decimal(f64),
    /// A whole number.
    #[prost(sfixed64, tag = "6")]
    Integer(i64),
}

/// Durations in buckets.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HistogramDataPoint {
    /// Nanoseconds since 1970.
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    /// Nanoseconds since 1970.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    /// Number of durations.
    #[prost(fixed64, tag = "4")]
    pub count: u64,
    /// Their sum, in seconds.
    #[prost(double, optional, tag = "5")]
    pub sum: Option<f64>,
    /// Number of durations in each bucket, not cumulative: one more than bounds.
    #[prost(fixed64, repeated, tag = "6")]
    pub bucket_counts: Vec<u64>,
    /// Upper bounds, inclusive, in seconds.
    #[prost(double, repeated, tag = "7")]
    pub explicit_bounds: Vec<f64>,
    /// Requests in the buckets.
    #[prost(message, repeated, tag = "8")]
    pub exemplars: Vec<Exemplar>,
    /// The labels.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
}

/// One request in a bucket.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Exemplar {
    /// Nanoseconds since 1970.
    #[prost(fixed64, tag = "2")]
    pub time_unix_nano: u64,
    /// Value of the request, in the unit of the metric.
    #[prost(oneof = "ExemplarValue", tags = "3")]
    pub value: Option<ExemplarValue>,
    /// 8 bytes.
    #[prost(bytes = "vec", tag = "4")]
    pub span_id: Vec<u8>,
    /// 16 bytes.
    #[prost(bytes = "vec", tag = "5")]
    pub trace_id: Vec<u8>,
}

/// The value of an exemplar.
#[derive(Clone, Copy, PartialEq, prost::Oneof)]
pub enum ExemplarValue {
    /// In seconds.
    #[prost(double, tag = "3")]
    Decimal(f64),
}
