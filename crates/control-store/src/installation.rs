//! Rows of the whole installation: leases, rate limits, replies, secrets.

pub(crate) mod lease;
pub(crate) mod rate_limit;
pub(crate) mod reply;
pub(crate) mod secret;
