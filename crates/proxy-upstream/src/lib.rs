//! The targets behind a name, and which is next.
//!
//! A [`TargetState`] is what all workers know of one target; a [`HealthyTargets`] list is one worker's view of
//! the targets that may be called; [`LoadBalancer`] picks one of them. A [`LoadBalancingPolicy`] picks
//! by load, weight, latency and client too, out of a [`TargetSet`].
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod healthy_targets;
mod identity;
mod latency;
mod load_balancer;
mod policy;
mod rendezvous;
mod slow_start;
mod sticky;
mod target;
mod target_set;

pub use healthy_targets::HealthyTargets;
pub use identity::TargetId;
pub use latency::{LATENCY_DECAY, LatencyEwma};
pub use load_balancer::LoadBalancer;
pub use policy::LoadBalancingPolicy;
pub use rendezvous::{client_hash, target_hash};
pub use slow_start::{WHOLE_SHARE, slow_start_share};
pub use sticky::{STICKY_VALUE_BYTES, StickyKey, StickyToken};
pub use target::{TargetState, Unhealthy};
pub use target_set::{BalancingRequest, Rotation, TargetSet};
