//! State of a worker: its plan, connections, clocks, and views for load balancing.

pub(crate) mod active_plan;
pub(crate) mod balancer_view;
pub(crate) mod cache_counters;
pub(crate) mod challenge_tokens;
pub(crate) mod connection_info;
pub(crate) mod connection_terms;
pub(crate) mod date;
pub(crate) mod disk;
pub(crate) mod fair_queue;
pub(crate) mod head_recording;
pub(crate) mod password_checks;
pub(crate) mod plan_parts;
pub(crate) mod removed_parts;
pub(crate) mod shadow_counters;
pub(crate) mod state;
pub(crate) mod time;
