//! Tests of the whole proxy in the test's own process: its plan, workers, pipeline, pools and
//! upstream connections, without a listener, a signal or a file of logs.
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
    reason = "tests are read more often than they run"
)]

mod support;

mod aborts;
mod access;
mod agent_fields;
mod answers;
mod backup_targets;
mod basic_auth;
mod blame;
mod bodies;
mod buffers;
mod builtins;
mod cache;
mod cache_guards;
mod coded_bodies;
mod compression;
mod correlation;
mod cors;
mod denials;
mod error_forms;
mod error_pages;
mod expectations;
mod fair_places;
mod forwarding;
mod header_edits;
mod jwt;
mod keep_alive;
mod paths;
mod proxy_protocol;
mod queue;
mod rate_limits;
mod reachability;
mod retries;
mod retry_policies;
mod rewrites;
mod routing;
mod send_proxy;
mod server_handle;
mod trace_context;
mod upstream_failures;
mod versions;
