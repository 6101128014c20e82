//! One route's conditions.

use crate::head::Head;
use crate::header_condition::HeaderCondition;
use crate::host_pattern::HostPattern;
use crate::path_pattern::PathPattern;
use crate::query_condition::QueryCondition;
use crate::rank::narrow;
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

    /// Whether host and path are all that the rule looks at.
    pub(crate) fn is_bare(&self) -> bool {
        self.headers.is_empty() && self.methods.is_empty() && self.query_params.is_empty()
    }

    pub(crate) fn host_holds(&self, head: &Head<'_>) -> bool {
        holds(&self.hosts, |host| host.matches(head.host))
    }

    pub(crate) fn path_holds(&self, head: &Head<'_>) -> bool {
        holds(&self.paths, |path| path.matches(head.path))
    }

    pub(crate) fn method_holds(&self, head: &Head<'_>) -> bool {
        holds(&self.methods, |method| method == head.method)
    }

    pub(crate) fn header_holds(&self, head: &Head<'_>) -> bool {
        holds(&self.headers, |header| header.holds(head.headers))
    }

    pub(crate) fn query_holds(&self, head: &Head<'_>) -> bool {
        holds(&self.query_params, |parameter| parameter.holds(head.query))
    }

    /// How many header conditions hold; `None` if a method, header or query condition does not.
    pub(crate) fn headers_held(&self, head: &Head<'_>) -> Option<u32> {
        if !self.method_holds(head) {
            return None;
        }
        let holding = self
            .headers
            .iter()
            .filter(|header| header.holds(head.headers));
        let count = holding.count();
        let fits = (self.headers.is_empty() || 0 < count) && self.query_holds(head);
        fits.then_some(narrow(count))
    }

    /// Drops repeated conditions, which say nothing but would count.
    pub(crate) fn without_repeats(mut self) -> Self {
        let mut headers = Vec::with_capacity(self.headers.len());
        for header in self.headers {
            if !headers.contains(&header) {
                headers.push(header);
            }
        }
        self.headers = headers;
        self
    }
}

fn holds<T>(conditions: &[T], holds: impl FnMut(&T) -> bool) -> bool {
    conditions.is_empty() || conditions.iter().any(holds)
}
