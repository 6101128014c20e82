//! External agents: their decisions and their failures, over real sockets.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "tests may fail loudly, and look at some kinds of events"
)]

mod support;

mod bodies;
mod decisions;
mod examples;
mod ext_authz;
mod failures;
mod forward_auth;
mod heads;
mod phases;
mod responses;
