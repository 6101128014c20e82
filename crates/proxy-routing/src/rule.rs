//! The conditions of one route.

use crate::head::Head;
use crate::header_condition::HeaderCondition;
use crate::host_pattern::HostPattern;
use crate::path_pattern::PathPattern;
use crate::query_condition::QueryCondition;
use crate::rank::narrow;
use http::Method;

/// The priority of a rule without one.
pub const DEFAULT_PRIORITY: i32 = 50;

/// The conditions under which a request belongs to a route.
///
/// Conditions of one kind are alternatives; of each kind that has conditions, one must hold. A rule
/// without conditions matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The route's id in the configuration.
    pub id: String,
    /// The higher priority wins, before anything else is compared.
    pub priority: i32,
    /// Hosts, of which the request must have one.
    pub hosts: Vec<HostPattern>,
    /// Paths, of which the request must have one.
    pub paths: Vec<PathPattern>,
    /// Header conditions, of which one must hold.
    pub headers: Vec<HeaderCondition>,
    /// Methods, of which the request must have one; case-sensitive, and `GET` does not include
    /// `HEAD`.
    pub methods: Vec<Method>,
    /// Query conditions, of which one must hold.
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

    /// Whether the rule has no conditions other than on host and path.
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

    /// Number of header conditions that hold; `None` if a method, header or query condition does
    /// not.
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

    /// Without repeated conditions, which would count twice.
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
