//! Services, upstreams and certificates: what bundles are compiled from.

pub(crate) mod certificates;
pub(crate) mod services;
pub(crate) mod upstreams;
