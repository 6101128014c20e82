//! Limits on requests: in flight, per route, shared by several proxies.

pub(crate) mod admission;
pub(crate) mod in_flight_limit;
pub(crate) mod request_permits;
pub(crate) mod route_limits;
pub(crate) mod shared_limit;
