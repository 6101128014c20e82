//! Background work for targets: DNS look-ups, health checks, reconnects and key sets; and the
//! settings of their connection pools.

pub(crate) mod breaker_states;
pub(crate) mod connectors;
pub(crate) mod dns;
pub(crate) mod key_sets;
pub(crate) mod pools;
pub(crate) mod probes;
pub(crate) mod reconnection;
pub(crate) mod target_event;
pub(crate) mod target_health;
