//! Which requests a route takes.

use crate::place::Setting;
use http::Method;
use proxy_routing::{HeaderCondition, HostPattern, PathPattern, QueryCondition};

/// Conditions of a route. Several of one kind are alternatives; different kinds must all hold;
/// none at all holds for every request.
#[derive(Clone, Debug, Default)]
pub struct Matches {
    /// Hosts, exact or wildcards.
    pub hosts: Vec<Setting<HostPattern>>,
    /// Exact paths, prefixes and regular expressions.
    pub paths: Vec<Setting<PathPattern>>,
    /// Request headers.
    pub headers: Vec<Setting<HeaderCondition>>,
    /// Methods.
    pub methods: Vec<Setting<Method>>,
    /// Query parameters.
    pub query_params: Vec<Setting<QueryCondition>>,
}
