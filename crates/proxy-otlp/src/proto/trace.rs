//! `opentelemetry.proto.trace.v1` and its collector service.

use super::common::{InstrumentationScope, KeyValue, Resource};

/// The body of `POST /v1/traces`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportTraceServiceRequest {
    /// Spans by resource.
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

/// The body of its response.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportTraceServiceResponse {
    /// Present if some spans were rejected, or with a warning.
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<ExportTracePartialSuccess>,
}

/// Spans that the collector rejected.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportTracePartialSuccess {
    /// Number of rejected spans.
    #[prost(int64, tag = "1")]
    pub rejected_spans: i64,
    /// Reason of the rejection, for the log.
    #[prost(string, tag = "2")]
    pub error_message: String,
}

/// Spans of a resource.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResourceSpans {
    /// Process that the spans belong to.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// Spans by scope.
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

/// Spans of a scope.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScopeSpans {
    /// Program that made the spans.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    /// Its spans.
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<Span>,
}

/// A span.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Span {
    /// 16 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    /// 8 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
    /// 8 bytes; empty for the first span of a trace.
    #[prost(bytes = "vec", tag = "4")]
    pub parent_span_id: Vec<u8>,
    /// Low-cardinality name, such as `GET route`.
    #[prost(string, tag = "5")]
    pub name: String,
    /// 2 for a server, 3 for a client.
    #[prost(int32, tag = "6")]
    pub kind: i32,
    /// Nanoseconds since 1970.
    #[prost(fixed64, tag = "7")]
    pub start_time_unix_nano: u64,
    /// Nanoseconds since 1970.
    #[prost(fixed64, tag = "8")]
    pub end_time_unix_nano: u64,
    /// Attributes by the semantic conventions for HTTP.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    /// Absent if the span has no error.
    #[prost(message, optional, tag = "15")]
    pub status: Option<Status>,
    /// The trace flags; bits 8 and 9: the parent is known to be remote, or not.
    #[prost(fixed32, tag = "16")]
    pub flags: u32,
}

/// The status of a span.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Status {
    /// A message for people.
    #[prost(string, tag = "2")]
    pub message: String,
    /// 2 for an error.
    #[prost(int32, tag = "3")]
    pub code: i32,
}
