//! Permits of concurrency limits that a request holds.

use crate::limits::admission::InFlightPermit;
use proxy_limits::{ClientPermit, ClientSharePermit, Permit};
use std::rc::Rc;

/// Permits that a request holds; released on drop.
#[derive(Debug, Default)]
pub(crate) struct RequestPermits {
    pub(crate) in_flight: Option<InFlightPermit>,
    pub(crate) route: Option<RoutePermit>,
    /// `None` unless the request asks for a tunnel through a stream of HTTP/2.
    pub(crate) tunnel: Option<Box<TunnelPermits>>,
}

/// The permits of a tunnel as a connection.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
pub(crate) struct TunnelPermits {
    pub(crate) connection: Permit,
    /// `None` for a tunnel through a trusted proxy.
    pub(crate) client: Option<ClientPermit>,
}

/// A connection's permit of its route's connection limit.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
pub(crate) enum RoutePermit {
    /// Held by one request: the connection carries one at a time.
    Own(ClientSharePermit),
    /// Shared by all requests of the route on the connection.
    Shared(Rc<ClientSharePermit>),
}
