//! Targets between plans: names, health checks, pools, circuit breakers.

pub(crate) mod breaker_states;
pub(crate) mod connectors;
pub(crate) mod dns;
pub(crate) mod key_sets;
pub(crate) mod pools;
pub(crate) mod probes;
pub(crate) mod reconnection;
pub(crate) mod target_event;
pub(crate) mod target_health;
