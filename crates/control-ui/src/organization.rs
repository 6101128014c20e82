//! Pages of an organization: people, keys, the audit log.

pub(crate) mod api_keys;
pub(crate) mod audit;
pub(crate) mod members;
pub(crate) mod signing_keys;
