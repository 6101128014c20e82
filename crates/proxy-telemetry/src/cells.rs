//! Numbers that one thread writes and every thread may read: no lock, no locked instruction.
//!
//! A worker owns its cells; nobody else writes to them. The scraper adds the workers up. Cells
//! of different workers never share a cache line.

mod agent;
mod cell;
mod dense;
mod histogram;
mod quantile;
mod route;
pub(crate) mod tally;
mod target;
mod upstream;
mod worker;

pub use agent::{AgentCells, AgentTotal};
pub use cell::{Counter, GaugeCell, SharedCounter};
pub(crate) use histogram::BOUNDS_TEXT;
pub use histogram::{BOUNDS_NS, Histogram, HistogramTotal};
pub use route::{Outcome, RouteCells, RouteTotal};
pub use target::{TargetCells, TargetTotal};
pub use upstream::{UpstreamCells, UpstreamTotal};
pub use worker::{WorkerCells, WorkerTotal};

/// Cells of one kind, and what they add up to over workers.
pub(crate) trait Cells: Default {
    /// The sum of such cells.
    type Total: Clone + Default;

    /// Adds what these cells hold now.
    fn add_to(&self, total: &mut Self::Total);
}
