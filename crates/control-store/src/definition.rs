//! Definitions that bundles refer to: services, upstreams, certificates.

pub(crate) mod certificate;
pub(crate) mod managed_certificate;
pub(crate) mod service;
pub(crate) mod upstream;
