//! What a request counts towards while it lasts.

use crate::limits::admission::Place;
use proxy_limits::Permit;
use std::rc::Rc;

/// What a request holds of the limits on how many; given back on drop.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) in_flight: Option<Place>,
    pub(crate) route: Option<RoutePermit>,
}

/// A connection's place among those that a route serves.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
pub(crate) enum RoutePermit {
    /// Of the one request that the connection carries at a time.
    Own(Permit),
    /// Of all requests of the route that the connection carries just now.
    Shared(Rc<Permit>),
}
