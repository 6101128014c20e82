//! The parts of a request that routing depends on.

use http::{HeaderMap, Method};

/// The parts of a request that routing depends on, borrowed and normalized.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The name of the request's listener; empty if there is none.
    pub listener: &'a str,
    /// The request's method.
    pub method: &'a Method,
    /// The host as returned by [`normal_host`](crate::host::normal_host): lower case, no port.
    /// Empty if the request has none; then only rules without a host condition match.
    pub host: &'a str,
    /// The path as returned by [`canonical_path`](crate::path::canonical_path).
    pub path: &'a str,
    /// The query without its `?`, as sent; empty if there is none.
    pub query: &'a str,
    /// The request's header fields.
    pub headers: &'a HeaderMap,
}
