//! Tests of the real program over real sockets.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]
#![expect(
    clippy::let_underscore_must_use,
    let_underscore_drop,
    reason = "what matters to some tests is that an answer comes, not which"
)]
#![expect(
    clippy::format_collect,
    clippy::large_stack_arrays,
    clippy::mem_forget,
    reason = "tests are read more often than they run"
)]

mod installed;
mod support;

mod admin_targets;
mod agent_check;
mod balancing;
mod bookkeeping;
mod breakers;
mod cache;
mod cache_conformance;
mod command_line;
mod config_tests;
mod connection_limits;
mod contract;
mod diff;
mod dns;
mod doctor;
mod events;
mod full_disk;
mod health;
mod health_checks;
mod limits;
mod listeners;
mod logs;
mod memory;
mod metrics;
mod open_connections;
mod otlp;
mod outliers;
mod pools;
mod predecessors;
mod reachability;
mod recording;
mod relays;
mod reload;
mod settings;
mod shadow;
mod shared_limits;
mod shutdown;
mod splicing;
mod streaming;
mod streams_after_reloads;
mod systemd;
mod target_identity;
mod timeouts;
mod top;
mod tunnels;
mod unix_sockets;
mod upgrade;
mod upgrade_failures;
mod workers;
