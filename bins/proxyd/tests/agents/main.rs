//! External agents over real sockets: decisions and failures.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "tests may fail loudly, and look at some kinds of events"
)]

mod stage;
mod support;

#[path = "../edge/support/http2.rs"]
#[expect(dead_code, reason = "another suite needs more of it")]
mod http2_client;
#[path = "../edge/support/runtime.rs"]
mod runtime;

mod bodies;
mod decisions;
mod examples;
mod ext_authz;
mod failures;
mod foreign;
mod forward_auth;
mod heads;
mod http2;
mod login_servers;
mod observation;
mod phases;
mod responses;
