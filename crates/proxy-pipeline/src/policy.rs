//! Policies, called by name from the pipeline.

pub(crate) mod admission;
pub(crate) mod circuit_breaker;
pub(crate) mod client_certificate;
pub(crate) mod compression;
pub(crate) mod credentials;
pub(crate) mod expectation;
pub(crate) mod grpc_timeout;
pub(crate) mod http2_head;
pub(crate) mod in_flight;
pub(crate) mod max_forwards;
pub(crate) mod misdirected;
pub(crate) mod rate_limit;
pub(crate) mod route_connections;
pub(crate) mod sticky_cookie;
pub(crate) mod token;
pub(crate) mod tunnel_connections;
