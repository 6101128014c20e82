//! The targets behind a name, and which is next.
//!
//! A [`TargetState`] is what all workers know of one target; a [`HealthyTargets`] list is one worker's view of
//! the targets that take requests. A [`LoadBalancer`] picks one of them by turn, load, weight, latency or
//! client, out of what a [`BalancerState`] shows.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod balancer_state;
mod healthy_targets;
mod identity;
mod latency;
mod load_balancer;
mod rendezvous;
mod slow_start;
mod sticky;
mod target;
mod target_load;

pub use balancer_state::{BalancerState, BalancingRequest, Rotation};
pub use healthy_targets::HealthyTargets;
pub use identity::TargetId;
pub use latency::{LATENCY_DECAY, LatencyEwma};
pub use load_balancer::LoadBalancer;
pub use rendezvous::{client_hash, target_hash};
pub use slow_start::{WHOLE_SHARE, slow_start_share};
pub use sticky::{STICKY_VALUE_BYTES, StickyKey, StickyToken};
pub use target::{TargetState, Unhealthy};
pub use target_load::{ActiveRequest, TargetLoad};
