//! Metrics and logs of the proxy: all metric names, the registry of metrics, the metrics page, log
//! records, and the thread that writes logs.

pub mod names;

mod exposition;
mod lifecycle;
mod limit_use;
mod log;
mod metrics;
mod process;
mod record;
pub mod reference;
mod registry;
mod route_table;
mod samples;
mod scrape;
mod stats;
mod vocabulary;

pub use exposition::{Build, Format, MetricPoints, Scrape};
pub use lifecycle::{
    FetchedKeySet, Lifecycle, ObtainedCertificate, ObtainingFailure, UptimeClock, timestamp,
};
pub use limit_use::{LimitSetting, LimitUse, Quantity};
pub use log::{
    Destination, EventLog, LineRing, LogCounters, LogCounts, LogError, LogWriter, Repeated,
    Repetitions, RingWriter, SpanQueue, Windows, WorkerLog,
};
pub use metrics::{
    AgentMetrics, AgentTotal, BOUNDS_NS, Counter, Exemplar, Gauge, Histogram, HistogramTotal,
    Outcome, RouteMetrics, RouteTotal, SharedCounter, TargetMetrics, TargetTotal, UpstreamMetrics,
    UpstreamTotal, WorkerMetrics, WorkerTotal,
};
pub use names::metric::{CounterOf, GaugeOf, Kind, Metric};
pub use process::{Process, resident_memory_bytes};
pub use record::{
    AccessFormat, AccessLogHead, AccessLogRequest, AccessRecord, AgentFields, AgentMetadata,
    AttemptSpan, ErrorRecord, EscapedField, EscapedFields, EventFields, EventRecord, Level,
    LimitRecord, LineFormat, LineSyntax, OptionalField, RecordedFields, RecordingFormat,
    RequestSpan,
};
pub use registry::{DEFAULT_MAX_SERIES, GaugeSource, LimitSource, Registry, RegistrySettings};
pub use route_table::{RouteTable, UNMATCHED};
pub use scrape::points::{HistogramPoint, Point, PointValue};
pub use scrape::snapshot::{Snapshot, TargetName};
pub use stats::MemoryUse;
pub use vocabulary::{AgentDecision, Protocol, SpanId, TraceId};
