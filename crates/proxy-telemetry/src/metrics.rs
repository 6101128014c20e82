//! Metrics that one thread writes and every thread may read: no lock, no locked instruction.
//!
//! A worker is the only writer of its metrics; a scrape adds up all workers. Metrics of different
//! workers never share a cache line.

mod agent;
mod cell;
mod enum_counters;
mod exemplars;
mod group;
mod histogram;
mod quantile;
pub(crate) mod reason_counters;
mod route;
mod target;
mod upstream;
mod worker;

pub use agent::{AgentMetrics, AgentTotal};
pub use cell::{Counter, Gauge, SharedCounter};
pub use exemplars::Exemplar;
pub(crate) use exemplars::{BucketExemplars, Exemplars};
pub(crate) use group::MetricGroup;
pub(crate) use histogram::BOUNDS_TEXT;
pub use histogram::{BOUNDS_NS, Histogram, HistogramTotal};
pub use route::{Outcome, RouteMetrics, RouteTotal};
pub use target::{TargetMetrics, TargetTotal};
pub use upstream::{UpstreamMetrics, UpstreamTotal};
pub use worker::{WorkerMetrics, WorkerTotal};
