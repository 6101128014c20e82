//! Services, upstreams and certificates: the inputs of compiled bundles.

pub(crate) mod certificates;
pub(crate) mod services;
pub(crate) mod upstreams;
