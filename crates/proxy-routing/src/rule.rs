//! One route's conditions.

use crate::{HeaderCondition, HostPattern, PathPattern, QueryCondition};
use http::Method;

/// The priority of a rule that names none.
pub const DEFAULT_PRIORITY: i32 = 50;

/// What a request must be like to belong to a route.
///
/// Of several conditions of one kind one must hold; of each kind that has conditions, one must
/// hold. A rule without conditions accepts everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The route's name, as in the configuration.
    pub id: String,
    /// Higher wins over lower, before anything else is compared.
    pub priority: i32,
    /// Hosts of which the request must name one.
    pub hosts: Vec<HostPattern>,
    /// Paths of which the request must have one.
    pub paths: Vec<PathPattern>,
    /// Header fields of which the request must have one.
    pub headers: Vec<HeaderCondition>,
    /// Methods of which the request must use one, in their exact case; `GET` does not stand for
    /// `HEAD`.
    pub methods: Vec<Method>,
    /// Query parameters of which the request must have one.
    pub query_params: Vec<QueryCondition>,
}

impl Rule {
    /// A rule of [`DEFAULT_PRIORITY`] without conditions.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            priority: DEFAULT_PRIORITY,
            hosts: Vec::new(),
            paths: Vec::new(),
            headers: Vec::new(),
            methods: Vec::new(),
            query_params: Vec::new(),
        }
    }
}
