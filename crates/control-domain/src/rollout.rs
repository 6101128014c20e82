//! A rollout: deployment of a bundle to nodes in batches.

mod advance;
mod command;
mod condition;
pub(crate) mod figures;
pub(crate) mod gate;
pub(crate) mod reason;
pub(crate) mod route_names;
pub(crate) mod served;
mod state;
mod strategy;
pub(crate) mod weighing;

pub use advance::{BatchCounts, Observation, Rejection, RevertCounts, RevertProgress};
pub use command::{Batch, BatchState, NewRollout, Rollout, RolloutChange, RolloutCommand};
pub use condition::{MetricAnswer, MetricCondition};
pub use state::{ROLLOUT_TRANSITIONS, RolloutEvent, RolloutState};
pub use strategy::{BatchSize, OnFailure, Strategy};
