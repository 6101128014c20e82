//! Traces and metrics for an OpenTelemetry collector, by OTLP/HTTP with protobuf.

mod backoff;
mod collector;
mod metrics;
mod resource;
mod trace;

pub mod proto;

pub use backoff::Backoff;
pub use collector::{Collector, CollectorError, CollectorSettings, ExportResult, Signal};
pub use metrics::encode_metrics;
pub use resource::Resource;
pub use trace::encode_spans;
