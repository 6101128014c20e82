//! Settings and caches for managed certificates.

pub(crate) mod authorities;
pub(crate) mod plain_hosts;
