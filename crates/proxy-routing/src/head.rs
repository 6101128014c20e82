//! The part of a request that routes look at.

use http::{HeaderMap, Method};

/// What a request says about itself, borrowed and already brought into one form.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The request's method.
    pub method: &'a Method,
    /// The host as [`normal_host`](crate::normal_host) gives it: lower case, no port. Empty when
    /// the request names none; then only rules without a host condition match.
    pub host: &'a str,
    /// The path as [`canonical_path`](crate::canonical_path) gives it.
    pub path: &'a str,
    /// The query without its `?`, as the client sent it; empty when there is none.
    pub query: &'a str,
    /// The request's header fields.
    pub headers: &'a HeaderMap,
}
