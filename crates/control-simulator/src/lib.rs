//! A fleet of simulated nodes, each with the real client of the control plane, and planted faults.

mod fault;
mod fleet;
mod host;
mod metrics;
mod operator;
mod rollout;

pub use fault::{Fault, PlantedFault, Share, planted_faults};
pub use fleet::{FleetOptions, SimulatedFleet};
pub use metrics::{Measurement, Usage, quantile};
pub use operator::Operator;
pub use rollout::{Plan, RolloutOutcome, RolloutPace};
