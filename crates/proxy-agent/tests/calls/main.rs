//! Calls of agents over real sockets, without a proxy around them.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "tests may fail loudly, and look at some kinds of events"
)]

mod ext_authz;
mod fake;
mod native;
mod support;
