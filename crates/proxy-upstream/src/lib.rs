//! Targets of an upstream, and load balancing.
//!
//! A [`TargetState`] is the state of one target shared by all workers; a [`HealthyTargets`] list is
//! one worker's list of usable targets; [`LoadBalancer`] selects one of them by load, weight, latency
//! or client, as reported by a [`BalancerState`].

mod balancer_state;
mod healthy_targets;
mod identity;
mod latency;
mod load_balancer;
mod rendezvous;
mod resolved_address;
mod slow_start;
mod sticky;
mod target;
mod target_changes;
mod target_load;

pub use balancer_state::{BalancerState, BalancingRequest, Rotation};
pub use healthy_targets::{CandidateTarget, HealthyTargets};
pub use identity::TargetId;
pub use latency::{LATENCY_DECAY, LatencyEwma};
pub use load_balancer::LoadBalancer;
pub use rendezvous::{client_hash, target_hash};
pub use resolved_address::ResolvedAddress;
pub use slow_start::{WHOLE_SHARE, slow_start_share};
pub use sticky::{STICKY_VALUE_BYTES, StickyKey, StickyToken};
pub use target::{TargetState, Unhealthy};
pub use target_changes::TargetChanges;
pub use target_load::{ActiveRequest, TargetLoad};
