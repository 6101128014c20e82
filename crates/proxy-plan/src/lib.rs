//! A compiled configuration and its decisions.
//!
//! A [`Plan`] is made once from a model and never changes. [`Plan::decide`] is the one decision
//! that the running proxy executes, that `explain` shows and that tests verify: a pure function of
//! the request's head, a [`BalancerState`] and the time.

mod balancer_state;
mod compile;
mod decide;
pub mod explain;
mod listener;
mod plan;
mod registry;
pub mod render;
mod route;
mod targets;
mod upstream;

pub use balancer_state::{AssumeHealthy, BalancerState};
pub use decide::{Decision, Outcome, RequestHead};
pub use explain::{ExplainError, ExplainRequest, Explanation};
pub use listener::ListenerPlan;
pub use plan::Plan;
pub use registry::{StateRegistry, StateTransaction};
pub use route::{RoutePlan, RouteTimes, Service};
pub use targets::{TargetIdentity, TargetRegistry, TargetTransaction};
pub use upstream::{TargetPlan, UpstreamPlan};
