//! Match conditions of a route.

use crate::place::Setting;
use http::Method;
use proxy_routing::{HeaderCondition, HostPattern, PathPattern, QueryCondition};

/// Conditions of a route. Several of one kind are alternatives; different kinds must all hold. A
/// route without conditions matches every request.
#[derive(Clone, Debug, Default)]
pub struct Matches {
    /// Exact hosts and wildcards.
    pub hosts: Vec<Setting<HostPattern>>,
    /// Exact paths, prefixes and regular expressions.
    pub paths: Vec<Setting<PathPattern>>,
    /// Conditions on request headers.
    pub headers: Vec<Setting<HeaderCondition>>,
    /// Methods.
    pub methods: Vec<Setting<Method>>,
    /// Conditions on query parameters.
    pub query_params: Vec<Setting<QueryCondition>>,
}
