//! Every metric name and log record, once.
#![doc = include_str!("../README.md")]

pub mod names;

mod cells;
mod exposition;
mod lifecycle;
mod log;
mod metric;
mod process;
mod record;
pub mod reference;
mod registry;
mod route_table;
mod snapshot;
mod stats;
mod vocabulary;

pub use cells::{
    AgentCells, AgentTotal, BOUNDS_NS, Counter, GaugeCell, Histogram, HistogramTotal, Outcome,
    RouteCells, RouteTotal, SharedCounter, TargetCells, TargetTotal, UpstreamCells, UpstreamTotal,
    WorkerCells, WorkerTotal,
};
pub use exposition::{Build, Format, Scrape};
pub use lifecycle::{Lifecycle, timestamp};
pub use log::{Destination, EventLog, LogCounters, LogCounts, LogFault, LogWriter, WorkerLog};
pub use metric::{CounterOf, GaugeOf, Kind, Metric};
pub use process::Process;
pub use record::{
    AccessFormat, AccessRecord, ErrorRecord, EventFields, EventRecord, Level, LimitRecord,
    OptionalField, Phrase, Phrases, RequestFacts, RequestNote,
};
pub use registry::{DEFAULT_MAX_SERIES, Registry, RegistrySettings};
pub use route_table::{RouteTable, UNMATCHED};
pub use snapshot::{Snapshot, TargetName};
pub use stats::{LimitUse, MemoryUse};
pub use vocabulary::{AgentDecision, AgentEvent, Limit, Protocol};
