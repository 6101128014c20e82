//! Permits of the concurrency limits that a request counts towards.

use crate::limits::admission::Place;
use proxy_limits::Permit;
use std::rc::Rc;

/// Permits that a request holds; released on drop.
#[derive(Debug, Default)]
pub(crate) struct RequestPermits {
    pub(crate) in_flight: Option<Place>,
    pub(crate) route: Option<RoutePermit>,
}

/// A connection's permit of its route's connection limit.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
pub(crate) enum RoutePermit {
    /// Held by one request: the connection carries one at a time.
    Own(Permit),
    /// Shared by all requests of the route on the connection.
    Shared(Rc<Permit>),
}
