//! Numbers that one thread writes and every thread may read: no lock, no locked instruction.
//!
//! A worker owns its cells; nobody else writes to them. The scraper adds the workers up. Cells
//! of different workers never share a cache line.

mod agent;
mod cell;
mod enum_counters;
mod histogram;
mod quantile;
pub(crate) mod reason_counters;
mod route;
mod target;
mod upstream;
mod worker;

pub use agent::{AgentMetrics, AgentTotal};
pub use cell::{Counter, Gauge, SharedCounter};
pub(crate) use histogram::BOUNDS_TEXT;
pub use histogram::{BOUNDS_NS, Histogram, HistogramTotal};
pub use route::{Outcome, RouteMetrics, RouteTotal};
pub use target::{TargetMetrics, TargetTotal};
pub use upstream::{UpstreamMetrics, UpstreamTotal};
pub use worker::{WorkerMetrics, WorkerTotal};

/// Cells of one kind, and what they add up to over workers.
pub(crate) trait MetricGroup: Default {
    /// The sum of such cells.
    type Total: Clone + Default;

    /// Adds what these cells hold now.
    fn add_to(&self, total: &mut Self::Total);
}
