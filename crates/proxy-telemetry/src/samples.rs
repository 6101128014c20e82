//! Samples of the metrics of each part.

pub(crate) mod agents;
pub(crate) mod process;
pub(crate) mod routes;
pub(crate) mod upstreams;
pub(crate) mod workers;
