//! Database rows of the installation as a whole: leases, rate limits, stored replies, secrets.

pub(crate) mod lease;
pub(crate) mod rate_limit;
pub(crate) mod reply;
pub(crate) mod secret;
